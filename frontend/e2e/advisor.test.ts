import { cpSync, mkdirSync, mkdtempSync, readFileSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import type { Browser, Frame, Page } from "playwright-core";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import type { Reading } from "../src/api";
import { isShown, type Report } from "../src/report";
import { axeFindings, frameOf, type Opening, openTab, startBrowser, type Tab } from "./browser";
import { startTensorBoard, type TensorBoard, writeLogs } from "./tensorboard";

const LOGDIR = resolve(process.env.ADVISOR_LOGDIR ?? "../demo/logs");
const EXPECTED = JSON.parse(readFileSync(join(LOGDIR, "../expected.json"), "utf8")) as Record<string, string[]>;
// What was found in the jobs of a search together has a row of its own.
const ROWS = [...Object.keys(EXPECTED), "search"];

let browser: Browser;
let demo: TensorBoard;
let tabs: Tab[] = [];
const servers: TensorBoard[] = [];

beforeAll(async () => {
  [browser, demo] = await Promise.all([startBrowser(), serve(LOGDIR)]);
});
afterAll(async () => {
  await browser?.close();
  for (const server of servers) server.stop();
});
// No test leaves an error in the console or a violation of the content security policy behind, whatever it is about.
afterEach(async () => {
  const problems = tabs.flatMap((tab) => tab.problems);
  for (const { page } of tabs) {
    await page.unrouteAll({ behavior: "ignoreErrors" });
    await page.close();
  }
  tabs = [];
  expect(problems).toEqual([]);
});

async function serve(logdir: string, ...flags: string[]): Promise<TensorBoard> {
  const server = await startTensorBoard(logdir, ...flags);
  servers.push(server);
  return server;
}

async function open(opening: Opening = {}, url = demo.url): Promise<Tab> {
  const tab = await openTab(browser, url, opening);
  tabs.push(tab);
  return tab;
}

function openJob(job: string, opening: Opening = {}, url?: string): Promise<Tab> {
  return open({ ...opening, hash: `&p.advisor.job=${encodeURIComponent(job)}` }, url);
}

async function fetchReading(url = demo.url): Promise<Reading & { readonly report: Report }> {
  const response = await fetch(`${url}/data/plugin/advisor/report?generation=-1`);
  return (await response.json()) as Reading & { readonly report: Report };
}

const texts = (frame: Frame, selector: string): Promise<string[]> => frame.locator(selector).allInnerTexts();
const focused = (frame: Frame): Promise<string> => frame.evaluate(() => document.activeElement?.textContent ?? "");

/** How many pixels of the first canvas are drawn on. */
function drawnPixels(frame: Frame): Promise<number> {
  return frame.evaluate(() => {
    const canvas = document.querySelector("canvas");
    const pixels = canvas?.getContext("2d")?.getImageData(0, 0, canvas.width, canvas.height).data ?? [];
    let drawn = 0;
    for (let i = 3; i < pixels.length; i += 4) if (pixels[i] !== 0) drawn++;
    return drawn;
  });
}

describe("the tab", () => {
  it("appears, and shows every job and exactly the expected diagnoses", async () => {
    const { page, frame } = await open();
    expect(await page.locator("[role=tab], mat-tab-header").allInnerTexts()).toContainEqual(expect.stringMatching(/advisor/i));
    expect((await texts(frame, ".row-link")).toSorted()).toEqual(ROWS.toSorted());
    const { report } = await fetchReading();
    const rulesOf = (job: string): string[] =>
      report.outcomes.filter((outcome) => outcome.job === job && outcome.diagnoses.some(isShown)).map((outcome) => outcome.rule);
    const found = report.jobs.map(({ name }) => [name, rulesOf(name).toSorted()]);
    expect(Object.fromEntries(found)).toEqual(EXPECTED);
  });

  it.each(Object.entries(EXPECTED))("shows what was found in %s", async (job, rules) => {
    const { frame } = await openJob(job);
    const cards = frame.locator("main > .diagnosis");
    const before = frame.locator("main > .diagnosis:not(h2.also ~ .diagnosis)");
    const shown: string[] = [];
    for (let i = 0; i < (await before.count()); i++) {
      const header = cards.nth(i).locator(".diagnosis-header");
      if ((await header.getAttribute("aria-expanded")) === "false") await header.click();
      shown.push(await cards.nth(i).locator(".meta span").nth(1).innerText());
    }
    expect(shown.toSorted()).toEqual(rules);
    await expect.poll(() => frame.locator(".nothing").count()).toBe(rules.length === 0 ? 1 : 0);
  });

  it("follows its own link through a reload", async () => {
    const { page, frame } = await open();
    await frame.click(".row-link >> text=overfitting");
    await frame.waitForSelector("h1 >> text=overfitting");
    expect(page.url()).toContain("#advisor&p.advisor.job=overfitting");
    await page.reload();
    expect(await (await frameOf(page)).locator("h1").innerText()).toBe("overfitting");
  });

  it("has its pages in the browser's history, and what is open on them not", async () => {
    const { page, frame } = await open();
    await frame.click(".row-link >> text=overfitting");
    await frame.click(".diagnosis.open .diagnosis-header");
    await frame.waitForSelector(".diagnosis:not(.open)");
    await frame.click(".rail a >> text=nan");
    await frame.waitForSelector("h1 >> text=nan");
    await page.goBack();
    await frame.waitForSelector("h1 >> text=overfitting");
    await expect.poll(() => frame.locator(".diagnosis.open").count()).toBe(0);
    await page.goBack();
    await frame.waitForSelector("table.jobs tr.selected >> text=overfitting");
    await page.goForward();
    await frame.waitForSelector("h1 >> text=overfitting");
    await frame.click("text=All jobs");
    await frame.click(".tally-line a");
    await frame.waitForSelector("h1 >> text=What was checked");
    await page.goBack();
    await frame.waitForSelector("table.jobs");
    await page.goBack();
    await frame.waitForSelector("h1 >> text=overfitting");
  });

  it("says when the job of its address is not there, and leads to those that are", async () => {
    const { frame } = await openJob("nosuchjob");
    await expect.poll(() => frame.locator("h1").innerText()).toBe("There is no job nosuchjob.");
    expect(await axeFindings(frame)).toEqual([]);
    await frame.click("text=All jobs");
    await expect.poll(() => frame.locator(".row-link").count()).toBe(ROWS.length);
  });

  it("opens the job where the diagnosis of its address is not there", async () => {
    const { frame } = await open({ hash: "&p.advisor.job=overfitting&p.advisor.diagnosis=nosuchrule" });
    await expect.poll(() => frame.locator(".diagnosis.open").count()).toBe(1);
  });

  it("asks again when TensorBoard reloads its data", async () => {
    const { page } = await open();
    const asked = page.waitForRequest((request) => request.url().includes("refresh=1"));
    await page.locator("app-header-reload button").click();
    await asked;
  });
});

describe("a chart", () => {
  it("is drawn from all points", async () => {
    const { frame } = await openJob("overfitting");
    await frame.waitForSelector(".plot canvas");
    expect(await drawnPixels(frame)).toBeGreaterThan(5000);
    expect(await frame.locator(".plot").first().getAttribute("aria-label")).toContain("validation");
  });

  it("has its numbers behind a button", async () => {
    const { frame } = await openJob("overfitting");
    await frame.click("text=Table");
    expect(await texts(frame, ".data-table th")).toEqual(["step", "training", "validation"]);
    expect(await frame.locator(".data-table tbody tr").count()).toBeGreaterThan(10);
    await frame.click("text=Table");
    await frame.waitForSelector(".plot canvas");
  });

  it("writes NaN where there is no value", async () => {
    const { frame } = await openJob("nan");
    await frame.click("text=Table");
    expect(await texts(frame, ".data-table td")).toContain("NaN");
  });

  it("shows the values under the pointer, and fetches the steps that are dragged over", async () => {
    const { page, frame } = await openJob("overfitting");
    const plot = frame.locator(".plot .u-over");
    const box = await plot.boundingBox();
    if (!box) throw new Error("no chart");
    await plot.hover({ position: { x: box.width / 2, y: 40 } });
    await expect.poll(() => frame.locator(".readout").innerText()).toMatch(/^step \d+/);
    const fetched = page.waitForRequest((request) => /\/series\?.*from=\d+&to=\d+/.test(request.url()));
    await page.mouse.down();
    await page.mouse.move(box.x + box.width * 0.75, box.y + 60, { steps: 4 });
    await page.mouse.up();
    await fetched;
    await frame.click('button:text("All steps")');
    await expect.poll(() => frame.locator('button:text("All steps")').count()).toBe(0);
  });

  it("shows the steps of a capture as bars", async () => {
    const trace = {
      kind: "trace",
      capture: "a/1",
      tool: "overview_page",
      host: "h",
      steps: [10, 11, 12],
      busy_ms: [28, 30, 29],
      wait_ms: [139, 120, 150],
      wait_label: "waiting for input",
      parts: [
        { name: "device", label: "device at work", ms: [20, 21, 20] },
        { name: "host", label: "host at work", ms: [8, 9, 9] },
        { name: "own", label: "waiting for input", ms: [139, 120, 150] },
      ],
    };
    const { frame } = await open({
      hash: "&p.advisor.job=overfitting",
      prepare: (page) => changeReading(page, (reading) => withExhibit(reading, "overfitting", trace)),
    });
    await frame.waitForSelector("g > .own");
    await expect.poll(() => frame.locator("g > .own").count()).toBe(3);
    const box = await frame.locator("g > .own").first().boundingBox();
    expect(box?.height).toBeGreaterThan(50);
  });

  it("of histograms is a heat map", async () => {
    const { frame } = await openJob("dead-relu");
    expect(await frame.locator(".heat canvas").getAttribute("aria-label")).toMatch(/^Values of sequential\/dense_1\/relu over 10 steps/);
    await expect.poll(() => drawnPixels(frame)).toBeGreaterThan(1000);
    await frame.click("text=Table");
    expect(await frame.locator(".data-table").first().locator("tbody tr").count()).toBe(10);
  });

  it("of a kind that is not known yet is shown as text", async () => {
    const { frame } = await open({
      hash: "&p.advisor.job=overfitting",
      prepare: (page) => changeReading(page, (reading) => withExhibit(reading, "overfitting", { kind: "heatmap", cells: [1] })),
    });
    await expect.poll(() => frame.locator(".lines").innerText()).toContain('"heatmap"');
  });
});

describe("a link", () => {
  it("opens exactly one chart in Time Series, in place, with only these runs", async () => {
    const { page, frame } = await openJob("overfitting", { query: "?darkMode=true" });
    await frame.click(".links a >> text=Time Series");
    await page.waitForSelector("card-view scalar-card");
    await page.waitForFunction(() => document.querySelectorAll("runs-data-table tb-data-table-content-row").length === 2);
    expect(await page.locator("card-view:visible").count()).toBe(1);
    expect(await page.locator("card-view:visible").innerText()).toMatch(/^epoch_loss/);
    expect((await page.locator("runs-data-table tb-data-table-content-row").allInnerTexts()).map((text) => text.trim())).toEqual([
      "overfitting/train",
      "overfitting/validation",
    ]);
    expect(page.url()).toContain("darkMode=true");
    await page.goBack();
    await page.waitForURL(/p\.advisor\.job=overfitting/);
    await expect.poll(() => frame.locator("h1").innerText()).toBe("overfitting");
  });

  it("keeps the job open for a return by its tab, and Back leads on from there", async () => {
    const { page, frame } = await open();
    await frame.click(".row-link >> text=overfitting");
    await frame.click(".links a >> text=Time Series");
    await page.waitForSelector("card-view scalar-card");
    await page.click("mat-tab-header >> text=/advisor/i");
    await page.waitForURL(/p\.advisor\.job=overfitting/);
    await expect.poll(() => frame.locator("h1").innerText()).toBe("overfitting");
    await page.goBack();
    await page.waitForURL(/#timeseries/);
    await page.goBack();
    await page.waitForURL(/p\.advisor\.job=overfitting/);
    await page.waitForFunction(() => (document.querySelector("iframe")?.clientHeight ?? 0) > 0); // the tab is in front again
    await page.goBack();
    await frame.waitForSelector("table.jobs");
  });

  it("has an arrow only where it opens another window", async () => {
    const { frame } = await openJob("overfitting");
    expect((await texts(frame, "a[target=_blank]")).every((text) => text.endsWith("↗"))).toBe(true);
    expect((await texts(frame, "a:not([target=_blank])")).filter((text) => text.includes("↗"))).toEqual([]);
  });

  it("has a full address, for a new window", async () => {
    const { page, frame } = await openJob("overfitting");
    const link = frame.locator(".links a >> text=Time Series");
    const href = await link.getAttribute("href");
    expect(await link.getAttribute("target")).toBe("_parent");
    await page.goto(href ?? "");
    await page.waitForSelector("card-view scalar-card");
    expect(await page.locator("card-view:visible").count()).toBe(1);
  });

  it("opens the histograms of the right run", async () => {
    const { page, frame } = await openJob("overfitting");
    await frame.click(".links a >> text=Histograms");
    await page.waitForSelector("tf-histogram-loader .run");
    expect(new Set(await page.locator("tf-histogram-loader .run").allInnerTexts())).toEqual(new Set(["overfitting/train"]));
  });

  it("opens the right capture and tool in Profile, or says what to install", async () => {
    const { report, profile_tab: hasProfileTab } = await fetchReading();
    const found = report.outcomes.find((outcome) =>
      outcome.diagnoses.some((one) => isShown(one) && one.links.some((link) => link.tab === "profile")),
    );
    const link = found?.diagnoses[0]?.links.find((one) => one.tab === "profile");
    if (!found || !link) throw new Error("no diagnosis of the demo links into Profile");
    const { page, frame } = await openJob(found.job);
    if (!hasProfileTab) {
      await expect.poll(() => frame.locator("aside").innerText()).toContain("pip install xprof");
      return;
    }
    const wanted = new URLSearchParams(link.href.slice(0, link.href.indexOf("#")));
    const asked = page.waitForRequest((request) => {
      const query = new URL(request.url()).searchParams;
      return (
        request.url().includes("/plugin/profile/data") && query.get("run") === wanted.get("run") && query.get("tag") === wanted.get("tool")
      );
    });
    await frame.click(`.links a >> text=${link.label}`);
    await asked;
    // xprof has errors of its own where it cannot reach Google's charts.
    tabs = tabs.filter((tab) => tab.page !== page);
    await page.close();
  });

  it("that opens Profile is the tab's own message where xprof is not installed", async () => {
    const { frame } = await open({
      hash: "&p.advisor.job=overfitting",
      prepare: (page) =>
        changeReading(page, (reading) => ({
          ...withDiagnosis(reading, "overfitting", {
            links: [{ label: "Profile: overview page", tab: "profile", href: "?run=a&tool=b&host=c#profile" }],
          }),
          profile_tab: false,
        })),
    });
    expect(await frame.locator("aside").first().innerText()).toContain(
      "Install xprof to open this capture in the Profile tab: pip install xprof",
    );
    await expect.poll(() => frame.locator(".links a").count()).toBe(0);
  });

  it("works under a path prefix", async () => {
    const prefixed = await serve(LOGDIR, "--path_prefix", "/a/b");
    expect(prefixed.url).toMatch(/\/a\/b$/);
    const { page, frame } = await openJob("overfitting", {}, prefixed.url);
    expect(await frame.locator(".links a").first().getAttribute("href")).toContain("/a/b/?tagFilter=");
    await frame.click(".links a >> text=Time Series");
    await page.waitForSelector("card-view scalar-card");
    expect(new URL(page.url()).pathname).toBe("/a/b/");
    await page.reload();
    await page.waitForSelector("card-view scalar-card");
  });
});

describe("the theme", () => {
  const background = (frame: Frame): Promise<string> => frame.evaluate(() => getComputedStyle(document.documentElement).backgroundColor);

  it("is the one of the address", async () => {
    expect(await background((await open({ query: "?darkMode=true" })).frame)).toBe("rgb(48, 48, 48)");
    expect(await background((await open({ query: "?darkMode=false" })).frame)).toBe("rgb(255, 255, 255)");
  });

  it("follows the toggle at once", async () => {
    const { page, frame } = await open({ query: "?darkMode=false" });
    await page.click("app-header-dark-mode-toggle button");
    await page.click("button[mat-menu-item] >> text=Dark");
    await frame.waitForFunction(() => document.documentElement.classList.contains("dark"));
    expect(await background(frame)).toBe("rgb(48, 48, 48)");
  });
});

describe("accessibility", () => {
  const views = { overview: "", job: "&p.advisor.job=overfitting", coverage: "&p.advisor.view=coverage" };
  const cases = Object.entries(views).flatMap(([view, hash]) => [false, true].map((dark) => ({ view, hash, dark })));

  it.each(cases)("has nothing to complain about in $view, dark: $dark", async ({ hash, dark }) => {
    const { frame } = await open({ hash, query: `?darkMode=${dark}` });
    if (hash.includes("job")) await frame.waitForSelector(".plot canvas");
    for (const summary of await frame.locator("details > summary").all()) await summary.click();
    expect(await axeFindings(frame)).toEqual([]);
  });

  it("walks, opens and goes back with the keyboard", async () => {
    const { page, frame } = await open();
    const rows = await texts(frame, ".row-link");
    await page.keyboard.press("j");
    await expect.poll(() => focused(frame)).toBe(rows[0]);
    await page.keyboard.press("j");
    await page.keyboard.press("j");
    await page.keyboard.press("k");
    await expect.poll(() => focused(frame)).toBe(rows[1]);
    await page.keyboard.press("Enter");
    await expect.poll(() => frame.locator("h1").innerText()).toBe(rows[1]);
    await page.keyboard.press("j");
    await expect.poll(() => frame.locator(".diagnosis.open").count()).toBe(1);
    await page.keyboard.press("Escape");
    await expect.poll(() => frame.locator(".diagnosis.open").count()).toBe(0);
    await page.keyboard.press("Enter");
    await expect.poll(() => frame.locator(".diagnosis.open").count()).toBe(1);
    await page.keyboard.press("Escape");
    await page.keyboard.press("Escape");
    await frame.waitForSelector(".row-link");
    await expect.poll(() => focused(frame)).toBe(rows[1]);
  });

  it("walks from job to job as the hint says", async () => {
    const { page, frame } = await open();
    const [first, second] = await texts(frame, ".row-link");
    await frame.locator(".row-link").first().click();
    await expect.poll(() => frame.locator(".keys").innerText()).toMatch(/J\s*K\s*next, previous job\s*j\s*k\s*next, previous finding/);
    await page.keyboard.press("J");
    await frame.waitForSelector(`h1 >> text=${second}`);
    await page.keyboard.press("K");
    await frame.waitForSelector(`h1 >> text=${first}`);
  });

  it("copies the code of the first fix, and says so", async () => {
    const { page, frame } = await openJob("overfitting");
    const code = await frame.locator(".fix pre").first().innerText();
    await frame.locator(".fix .copy").first().click();
    await frame.waitForSelector(".copy >> text=Copied");
    await expect.poll(() => frame.locator("[aria-live=polite] >> text=Copied").count()).toBe(1);
    expect(await page.evaluate(() => navigator.clipboard.readText())).toBe(code.trim());
  });

  it("filters jobs, and says when none is left", async () => {
    const { page, frame } = await open();
    await frame.locator(".row-link").first().focus();
    await page.keyboard.press("/");
    await page.keyboard.type("^over");
    expect(await texts(frame, ".row-link")).toEqual(["overfitting"]);
    await page.keyboard.type("[(");
    await expect.poll(() => frame.locator(".toolbar [role=status]").innerText()).toBe("“^over[(” is not a valid regular expression");
    expect(await texts(frame, ".row-link")).toEqual(["overfitting"]);
    expect(await axeFindings(frame)).toEqual([]);
    for (const _ of "[(") await page.keyboard.press("Backspace");
    await page.keyboard.type("x");
    await expect.poll(() => frame.locator(".toolbar [role=status]").innerText()).toBe("");
    await expect.poll(() => frame.locator(".blank h2").innerText()).toBe("No job matches “^overx”");
    await frame.click("text=Clear the filter");
    await expect.poll(() => frame.locator(".row-link").count()).toBe(ROWS.length);
  });
});

describe("logs", () => {
  const falling = Array.from({ length: 60 }, (_, step) => 0.05 + Math.exp(-step / 8));
  const rising = Array.from({ length: 60 }, (_, step) => 0.4 + Math.exp(-step / 4) + 0.01 * step);

  it("with hostile names are shown as text", async () => {
    const job = `<img src=x onerror="window.hacked=1"> 'q' & 損失`;
    const tag = 'loss/<script>window.hacked=1<\u2044script>"&é';
    const server = await serve(writeLogs({ [`${job}/train`]: { [tag]: falling }, [`${job}/validation`]: { [tag]: rising } }));
    const { page, frame } = await open({}, server.url);
    expect(await texts(frame, ".row-link")).toEqual([job]);
    await frame.click(".row-link");
    await expect.poll(() => frame.locator("h1").innerText()).toBe(job);
    await frame.waitForSelector(".plot canvas");
    await expect.poll(() => frame.locator(".chart-title").innerText()).toBe(tag);
    expect(await frame.evaluate(() => "hacked" in window)).toBe(false);
    await expect.poll(() => frame.locator("img, body script").count()).toBe(await frame.locator("body > script").count());
    await page.reload();
    expect(await (await frameOf(page)).locator("h1").innerText()).toBe(job);
    await (await frameOf(page)).click(".links a >> text=Time Series");
    await page.waitForSelector("card-view scalar-card");
    expect(await page.locator("card-view:visible").count()).toBe(1);
  });

  it("that are empty lead to the code that writes some", async () => {
    const server = await serve(writeLogs({}));
    const { frame } = await open({}, server.url);
    await expect.poll(() => frame.locator("h1").innerText()).toMatch(/^No runs in /);
    expect(await texts(frame, "pre")).toEqual([
      expect.stringContaining("keras.callbacks.TensorBoard("),
      expect.stringContaining("SummaryWriter("),
    ]);
    expect(await axeFindings(frame)).toEqual([]);
  });

  it("without a fault get a tally", async () => {
    const logdir = mkdtempSync(join(tmpdir(), "advisor-"));
    cpSync(join(LOGDIR, "healthy"), join(logdir, "healthy"), { recursive: true });
    const server = await serve(logdir);
    const { frame } = await open({}, server.url);
    expect((await frame.locator(".all-clear h2").innerText()).trim()).toBe("Nothing found in 1 job");
    await expect
      .poll(() => frame.locator(".all-clear p").innerText())
      .toMatch(/^\d+ checks by \d+ rules are clear\. \d+ could not be made/);
    expect(await axeFindings(frame)).toEqual([]);
  });

  it("of one family name its best job", async () => {
    const logdir = mkdtempSync(join(tmpdir(), "advisor-"));
    for (const seed of ["a", "b"]) cpSync(join(LOGDIR, "healthy"), join(logdir, "seeds", seed), { recursive: true });
    const server = await serve(logdir);
    const { frame } = await open({}, server.url);
    await expect.poll(() => frame.locator(".lead").count()).toBe(1);
    await expect.poll(() => frame.locator(".all-clear p").innerText()).toMatch(/ Best: seeds\/a \(validation loss 0\.\d+ at step \d+\)\./);
  });

  it("of many jobs are drawn as far as they are in sight, and reached by keys", async () => {
    const logdir = writeLogs(
      Object.fromEntries(Array.from({ length: 150 }, (_, i) => [`run_${String(i).padStart(3, "0")}`, { loss: falling }])),
    );
    const server = await serve(logdir);
    const { frame } = await open({}, server.url);
    await expect.poll(() => frame.locator(".row-link").count()).toBeGreaterThan(20);
    expect(await frame.locator(".row-link").count()).toBeLessThan(100);
    await frame.evaluate(() => window.scrollTo(0, document.documentElement.scrollHeight));
    await expect.poll(() => texts(frame, ".row-link").then((names) => names.at(-1))).toBe("run_149");
    await frame.locator(".row-link >> text=run_149").focus();
    await frame.press("body", "k");
    await expect.poll(() => focused(frame)).toBe("run_148");
    await frame.fill(".filter input", "run_00");
    await expect.poll(() => frame.locator(".row-link").count()).toBe(10);
    expect(await axeFindings(frame)).toEqual([]);
  });

  it("of many kinds stand in the table without a number or a status that is cut", async () => {
    const likelihood = falling.map((value) => -12_345 * (1 - value));
    const logdir = writeLogs({
      "elbo/train": { loss: likelihood },
      "elbo/validation": { loss: likelihood },
      "tiny/train": { loss: falling.map((value) => value * 1e-3) },
      gan: { "loss/generator": rising, "loss/discriminator": falling },
      other: { speed: falling },
    });
    mkdirSync(join(logdir, "empty"));
    writeFileSync(join(logdir, "empty/events.out.tfevents.1700000000.test"), "");
    const server = await serve(logdir);
    const { page, frame } = await open({}, server.url);
    expect((await texts(frame, ".status")).toSorted()).toEqual(expect.arrayContaining(["Clear", "Info", "Not read", "Warning"]));
    for (const width of [900, 1400, 1280]) {
      await page.setViewportSize({ width, height: 900 });
      const cut = await frame.evaluate(() =>
        [...document.querySelectorAll(".jobs td:not(.name, .finding)")]
          .filter((cell) => cell.scrollWidth > cell.clientWidth)
          .map((cell) => cell.textContent),
      );
      expect(cut).toEqual([]);
      expect(await frame.evaluate(() => document.documentElement.scrollWidth <= window.innerWidth)).toBe(true);
    }
    const other = frame.locator("tr", { has: frame.locator(".row-link >> text=other") });
    await expect.poll(() => other.locator(".finding").innerText()).toMatch(/^Nothing found in \d checks, \d+ not checked$/);
    await frame.click(".row-link >> text=gan");
    await frame.waitForSelector(".plot canvas");
    expect(await frame.locator(".plot").getAttribute("aria-label")).toContain("loss/discriminator and loss/generator");
    await frame.click(".rail a >> text=empty");
    await expect.poll(() => frame.locator("main .partial").innerText()).toContain("is empty");
    expect(await axeFindings(frame)).toEqual([]);
  });

  it("that cannot be read are not called clear", async () => {
    const logdir = writeLogs({});
    writeFileSync(join(logdir, "events.out.tfevents.1700000000.test"), "no record".repeat(50));
    const server = await serve(logdir);
    const { frame } = await open({}, server.url);
    expect((await frame.locator(".all-clear h2").innerText()).trim()).toBe("Nothing could be checked in 1 job");
    await expect.poll(() => frame.locator(".glyph.clear").count()).toBe(0);
  });

  it("that are only noted do not count as nothing", async () => {
    const { frame } = await openJob("no-validation");
    expect(await frame.locator(".nothing p").first().innerText()).toMatch(
      /^\s*No problem found in \d+ checks(, \d+ not checked)?; 1 note below\.$/,
    );
    await expect.poll(() => frame.locator(".nothing .glyph.clear").count()).toBe(0);
  });
});

describe("states", () => {
  it("show how far reading is, and the jobs that are done", async () => {
    const { frame } = await open({
      prepare: (page) =>
        changeReading(page, (reading) => ({
          ...reading,
          state: "reading",
          progress: { jobs: 9, jobs_total: 14, runs: 12, runs_total: 28, bytes: 31e6, bytes_total: 48e6 },
        })),
    });
    await expect.poll(() => frame.locator(".reading p").innerText()).toBe("Read 9 of 14 jobs, 12 of 28 runs, 31 of 48 MB");
    expect(await frame.locator("[role=progressbar]").getAttribute("aria-valuenow")).toBe("65");
    await expect.poll(() => frame.locator(".row-link").count()).toBe(ROWS.length);
    expect(await axeFindings(frame)).toEqual([]);
  });

  it("name what could not be read", async () => {
    const note = (run: string) => ({ job: "healthy", run, text: "is damaged at byte 1,048,576; 2,310 steps after it are lost." });
    const { frame } = await open({
      prepare: (page) =>
        changeReading(page, (reading) => ({
          ...reading,
          report: { ...reading.report, notes: [note("healthy/train"), note("healthy/validation")] },
        })),
    });
    await expect
      .poll(() => frame.locator(".partial").innerText())
      .toMatch(/^2 of \d+ runs could not be read whole\. healthy\/train: is damaged/);
    await frame.click("text=1 more");
    await expect.poll(() => frame.locator(".partial p").count()).toBe(2);
    expect(await axeFindings(frame)).toEqual([]);
    await frame.click(".row-link >> text=/^healthy$/");
    await expect.poll(() => frame.locator("main .partial").innerText()).toContain("healthy/train: is damaged");
  });

  it("give the message of an error, and another try", async () => {
    const { page, frame } = await open({
      prepare: (page) =>
        changeReading(page, (reading) => ({ ...reading, state: "error", error: "PermissionError: logs cannot be listed" })),
    });
    await expect.poll(() => frame.locator("h1").innerText()).toContain("The report could not be made");
    await expect.poll(() => frame.locator(".blank").innerText()).toContain("PermissionError: logs cannot be listed");
    expect(await axeFindings(frame)).toEqual([]);
    const asked = page.waitForRequest((request) => request.url().includes("refresh=1"));
    await frame.click("text=Try again");
    await asked;
  });

  it("paint what goes wrong in the tab itself", async () => {
    const { frame } = await open({
      hash: "&p.advisor.job=overfitting",
      prepare: (page) => changeReading(page, (reading) => withDiagnosis(reading, "overfitting", { exhibits: null })),
    });
    await expect.poll(() => frame.locator("h1").innerText()).toContain("The report could not be made");
    await expect.poll(() => frame.locator(".blank").innerText()).toContain("TypeError");
  });
});

// Pictures for the README, from the same pages.
describe.runIf(process.env.ADVISOR_SCREENSHOTS === "1")("pictures", () => {
  it.each([
    ["advisor.png", false],
    ["advisor-dark.png", true],
  ])("%s is taken", async (name, dark) => {
    const { page, frame } = await openJob("overfitting", { query: `?darkMode=${dark}` });
    await frame.waitForSelector(".plot canvas");
    await page.waitForTimeout(500);
    await page.screenshot({ path: resolve("../docs/images", name) });
  });
});

type Whole = Reading & { readonly report: Report };

/** Lets the page see another report than the server's. */
function changeReading(page: Page, change: (reading: Whole) => unknown): Promise<unknown> {
  return page.route("**/plugin/advisor/report?*", async (route) => {
    const response = await route.fetch({
      url: route
        .request()
        .url()
        .replace(/generation=\d+/, "generation=-1"),
    });
    await route.fulfill({ json: change((await response.json()) as Whole) });
  });
}

function withDiagnosis(reading: Whole, job: string, change: object): Whole {
  const outcomes = reading.report.outcomes.map((outcome) =>
    outcome.job === job ? { ...outcome, diagnoses: outcome.diagnoses.map((one) => ({ ...one, ...change })) } : outcome,
  );
  return { ...reading, report: { ...reading.report, outcomes } };
}

function withExhibit(reading: Whole, job: string, exhibit: object): Whole {
  return withDiagnosis(reading, job, { exhibits: [exhibit] });
}
