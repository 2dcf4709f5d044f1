// A real Chromium, and the tab in it.

import { execFileSync } from "node:child_process";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { homedir } from "node:os";
import { join } from "node:path";
import { type Browser, chromium, type Frame, type Page } from "playwright-core";

const NAMES = ["chromium", "chromium-browser", "google-chrome", "google-chrome-stable"];

export function startBrowser(): Promise<Browser> {
  return chromium.launch({
    executablePath: chromiumPath(),
    // Containers run as root and without a graphics device.
    args: [
      "--no-sandbox",
      "--disable-gpu",
      "--disable-background-networking",
      "--disable-component-update",
      "--disable-sync",
      "--no-first-run",
    ],
  });
}

function chromiumPath(): string {
  const given = process.env.ADVISOR_CHROMIUM;
  if (given) return given;
  for (const name of NAMES) {
    try {
      return execFileSync("which", [name], { encoding: "utf8" }).trim();
    } catch {
      // not on PATH
    }
  }
  const downloads = join(homedir(), ".cache/ms-playwright");
  const builds = existsSync(downloads) ? readdirSync(downloads).filter((name) => name.startsWith("chromium")) : [];
  const downloaded = builds
    .flatMap((build) =>
      ["chrome-linux/chrome", "chrome-linux64/chrome", "chrome-linux/headless_shell"].map((path) => join(downloads, build, path)),
    )
    .find(existsSync);
  if (downloaded) return downloaded;
  throw new Error(`no Chromium: set ADVISOR_CHROMIUM, or install one of ${NAMES.join(", ")}`);
}

/** A page with the Advisor in it, and everything that went wrong there. */
export interface Tab {
  readonly page: Page;
  readonly frame: Frame;
  readonly problems: string[];
}

export interface Opening {
  readonly hash?: string;
  readonly query?: string;
  readonly prepare?: (page: Page) => Promise<unknown>;
}

export async function openTab(browser: Browser, url: string, { hash = "", query = "", prepare }: Opening = {}): Promise<Tab> {
  const page = await browser.newPage({ viewport: { width: 1280, height: 900 } });
  page.setDefaultTimeout(20_000);
  await page.context().grantPermissions(["clipboard-read", "clipboard-write"]);
  const problems: string[] = [];
  page.on("pageerror", (error) => problems.push(error.message));
  page.on("console", (message) => {
    // TensorBoard asks for its own font in a wrong place when it has a path prefix.
    if (message.type() === "error" && !message.location().url.includes("/font-roboto"))
      problems.push(`${message.text()} ${message.location().url}`);
  });
  await prepare?.(page);
  await page.goto(`${url}/${query}#advisor${hash}`);
  return { page, frame: await frameOf(page), problems };
}

/** The Advisor's frame, once it shows something. */
export async function frameOf(page: Page): Promise<Frame> {
  const element = await page.waitForSelector('iframe[src*="name=advisor"]');
  const frame = await element.contentFrame();
  if (!frame) throw new Error("the Advisor has no frame");
  await frame.waitForSelector("h1, table.jobs");
  return frame;
}

const AXE = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

/** What axe finds wrong in the tab, a line each. */
export async function axeFindings(frame: Frame): Promise<string[]> {
  await frame.evaluate(AXE);
  return frame.evaluate(async () => {
    const { axe } = globalThis as unknown as {
      axe: { run: () => Promise<{ violations: { id: string; nodes: { html: string; failureSummary: string }[] }[] }> };
    };
    const { violations } = await axe.run();
    return violations.flatMap(({ id, nodes }) => nodes.map((node) => `${id}: ${node.html} ${node.failureSummary}`));
  });
}
