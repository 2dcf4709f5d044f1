// How fast the tab is on 500 jobs: `npm run measure`. Prints what the browser's own performance entries say; judges nothing.

import { execFileSync } from "node:child_process";
import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it } from "vitest";
import { openTab, startBrowser } from "./browser";
import { PYTHON, startTensorBoard } from "./tensorboard";

const MAKE =
  "import sys; from pathlib import Path; from tests.benchmarks.logdirs import make; print(make('t', Path(sys.argv[1]), float(sys.argv[2]))[0])";
const SCALE = process.env.ADVISOR_SCALE ?? "1";

it("measures the overview", { timeout: 600_000 }, async () => {
  const cache = process.env.ADVISOR_CACHE ?? mkdtempSync(join(tmpdir(), "advisor-"));
  const logdir = execFileSync(PYTHON, ["-c", MAKE, cache, SCALE], { encoding: "utf8", cwd: ".." }).trim();
  const server = await startTensorBoard(logdir);
  const browser = await startBrowser();
  const rounds: { paint: number; delay: number; heap: number }[] = [];
  for (let round = 0; round < 5; round++) {
    const { page, frame } = await openTab(browser, server.url);
    const client = await page.context().newCDPSession(page);
    await frame.waitForSelector("table.jobs tbody tr");
    const paint = await frame.evaluate(
      () =>
        new Promise<number>((done) => {
          new PerformanceObserver((list) => done(list.getEntries().at(-1)?.startTime ?? Number.NaN)).observe({
            type: "largest-contentful-paint",
            buffered: true,
          });
        }),
    );
    await frame.evaluate(() => {
      const seen: number[] = [];
      Object.assign(window, { seen });
      new PerformanceObserver((list) => seen.push(...list.getEntries().map((entry) => entry.duration))).observe({
        type: "event",
        durationThreshold: 16,
      } as PerformanceObserverInit);
    });
    const filter = frame.locator(".filter input");
    for (const text of ["run_1", "run_12", "overfit|run", "sweep_3", ""]) {
      await filter.fill("");
      await filter.pressSequentially(text, { delay: 120 });
    }
    await page.waitForTimeout(300);
    const delays = await frame.evaluate(() => (window as unknown as { seen: number[] }).seen);
    await client.send("HeapProfiler.collectGarbage");
    const { metrics } = await client.send("Performance.enable").then(() => client.send("Performance.getMetrics"));
    const heap = metrics.find((metric) => metric.name === "JSHeapUsedSize")?.value ?? Number.NaN;
    rounds.push({ paint, delay: Math.max(0, ...delays), heap: heap / 2 ** 20 });
    await page.close();
  }
  await browser.close();
  server.stop();
  const middle = (of: (round: (typeof rounds)[number]) => number): number => rounds.map(of).toSorted((a, b) => a - b)[2] ?? Number.NaN;
  console.log(`largest contentful paint of the tab's frame: ${middle((r) => r.paint).toFixed(0)} ms`);
  console.log(`slowest interaction to next paint while filtering: ${middle((r) => r.delay).toFixed(0)} ms`);
  console.log(`JS heap of the page with TensorBoard: ${middle((r) => r.heap).toFixed(0)} MiB`);
  expect(rounds).toHaveLength(5);
});
