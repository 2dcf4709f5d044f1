// A real TensorBoard on a log directory, and small log directories to show.

import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { existsSync, mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";

const VENV_PYTHON = resolve("../.venv/bin/python");
export const PYTHON = process.env.ADVISOR_PYTHON ?? (existsSync(VENV_PYTHON) ? VENV_PYTHON : "python3");

export interface TensorBoard {
  /** Without a slash at the end. */
  readonly url: string;
  readonly stop: () => void;
}

/** Starts TensorBoard and waits until the Advisor has read everything. */
export async function startTensorBoard(logdir: string, ...flags: string[]): Promise<TensorBoard> {
  const child = spawn(PYTHON, ["-m", "tensorboard.main", "--logdir", logdir, "--host", "127.0.0.1", "--port", "0", ...flags], {
    stdio: ["ignore", "pipe", "pipe"],
  });
  const url = (await addressOf(child)).replace(/\/$/, "");
  const stop = (): void => void child.kill();
  process.once("exit", stop);
  for (let tries = 0; tries < 300; tries++) {
    const response = await fetch(`${url}/data/plugin/advisor/report?generation=0`);
    if (!response.ok) break;
    const { state } = (await response.json()) as { state: string };
    if (state !== "reading") return { url, stop };
    await sleep(200);
  }
  stop();
  throw new Error(`the Advisor at ${url} did not become ready`);
}

function addressOf(child: ChildProcess): Promise<string> {
  return new Promise((found, failed) => {
    let output = "";
    const read = (chunk: Buffer): void => {
      output += chunk.toString();
      const address = /TensorBoard \S+ at (http\S+)/.exec(output)?.[1];
      if (address) found(address);
    };
    child.stdout?.on("data", read);
    child.stderr?.on("data", read);
    child.on("exit", (code) => failed(new Error(`TensorBoard ended with ${code}:\n${output}`)));
  });
}

/** Scalars by run and tag, one value a step. */
export type Scalars = Readonly<Record<string, Readonly<Record<string, readonly number[]>>>>;

const WRITE = `
import json, sys
from pathlib import Path
from tensorboard.compat.proto.event_pb2 import Event
from tensorboard.compat.proto.summary_pb2 import Summary
from tensorboard.summary.writer.record_writer import RecordWriter

for run, tags in json.load(sys.stdin).items():
    directory = Path(sys.argv[1]) / run
    directory.mkdir(parents=True)
    with open(directory / "events.out.tfevents.1700000000.test", "wb") as file:
        writer = RecordWriter(file)
        writer.write(Event(wall_time=1.7e9, file_version="brain.Event:2").SerializeToString())
        for tag, values in tags.items():
            for step, value in enumerate(values):
                summary = Summary(value=[Summary.Value(tag=tag, simple_value=float(value))])
                writer.write(Event(wall_time=1.7e9 + 60 * step, step=step, summary=summary).SerializeToString())
`;

/** A new log directory with these scalars. */
export function writeLogs(runs: Scalars): string {
  const logdir = mkdtempSync(join(tmpdir(), "advisor-"));
  // JSON has no NaN; Python's float() reads the words.
  const input = JSON.stringify(runs, (_, value: unknown) => (typeof value === "number" && !Number.isFinite(value) ? String(value) : value));
  if (Object.keys(runs).length > 0) execFileSync(PYTHON, ["-c", WRITE, logdir], { input });
  return logdir;
}
