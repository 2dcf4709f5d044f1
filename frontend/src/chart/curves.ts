// From the server's points to the columns that a chart draws. Pure.

import type { Points } from "../api";
import { type Num, number, size } from "../format";
import type { Job, RunTag } from "../report";

export type Split = "training" | "validation" | null;

/** One curve of an exhibit: what it is, and its points once they have come. */
export interface Curve {
  readonly run: string;
  readonly tag: string;
  readonly role: string | null;
  readonly split: Split;
  readonly points: Points;
}

/** Curves that share a y axis. The first panel of an exhibit is its chart, the others are strips below it. */
export interface Panel {
  readonly title: string;
  readonly curves: readonly Curve[];
}

/** A stretch of a curve whose values are not finite; `start` is its first step. */
export interface Hole {
  readonly start: number;
  readonly end: number;
  readonly value: string;
}

/** One line to draw: `undefined` where the line has no point at that step, null where its value is not finite. */
export type Column = (number | null | undefined)[];

export interface Columns {
  readonly steps: number[];
  readonly lines: readonly { readonly curve: Curve; readonly values: Column; readonly isLast: boolean }[];
}

/** Role and split of a series in its job: `training_loss` is the loss of training. */
export function roleOf(job: Job | null, [run, tag]: RunTag): { role: string | null; split: Split } {
  for (const [role, members] of Object.entries(job?.roles ?? {})) {
    if (!members.some(([itsRun, itsTag]) => itsRun === run && itsTag === tag)) continue;
    for (const split of ["training", "validation"] as const) {
      if (role.startsWith(`${split}_`)) return { role: role.slice(split.length + 1), split };
    }
    return { role, split: null };
  }
  return { role: null, split: null };
}

/** Curves of one role share a panel; those without a role share it by tag. */
export function panelsOf(curves: readonly Curve[]): Panel[] {
  const panels = new Map<string, Curve[]>();
  for (const curve of curves) {
    const key = curve.role ?? `tag ${curve.tag}`;
    panels.set(key, [...(panels.get(key) ?? []), curve]);
  }
  return [...panels.values()].map((its) => {
    const tags = new Set(its.map((curve) => curve.tag));
    const first = its[0];
    return { title: tags.size === 1 || !first?.role ? (first?.tag ?? "") : first.role.replaceAll("_", " "), curves: its };
  });
}

/** The shortest names that tell the curves of a panel apart. */
export function labelsOf(curves: readonly Curve[], jobName: string): string[] {
  const run = (curve: Curve): string => runWithin(curve.run, jobName);
  const ways: ((curve: Curve) => string)[] = [
    (curve) => curve.split ?? "",
    (curve) => curve.tag,
    run,
    (curve) => `${run(curve)} ${curve.tag}`,
  ];
  const distinct = ways.map((way) => curves.map(way)).find((labels) => new Set(labels).size === labels.length);
  return distinct ?? curves.map((curve) => `${curve.run} ${curve.tag}`);
}

/** The name of a run as seen from its job: `train` for `exp/train` of the job `exp`. */
export function runWithin(run: string, jobName: string): string {
  return run.startsWith(`${jobName}/`) ? run.slice(jobName.length + 1) : run;
}

/**
 * The curves on one axis of steps. A curve whose steps go back (a restart) becomes several lines, so that no line runs backwards;
 * a step that was logged twice stands twice.
 */
export function columnsOf(curves: readonly Curve[]): Columns {
  const pieces = curves.flatMap((curve) => {
    const parts = partsOf(curve.points.steps);
    return parts.map(([from, to], i) => ({ curve, from, to, isLast: i === parts.length - 1 }));
  });
  const copies = new Map<number, number>();
  for (const { curve, from, to } of pieces) {
    const here = new Map<number, number>();
    for (const step of curve.points.steps.slice(from, to)) {
      const n = (here.get(step) ?? 0) + 1;
      here.set(step, n);
      if (n > (copies.get(step) ?? 0)) copies.set(step, n);
    }
  }
  const steps: number[] = [];
  const firstRow = new Map<number, number>();
  for (const step of [...copies.keys()].sort((a, b) => a - b)) {
    firstRow.set(step, steps.length);
    for (let i = 0; i < (copies.get(step) ?? 0); i++) steps.push(step);
  }
  const lines = pieces.map(({ curve, from, to, isLast }) => {
    const values: Column = new Array<undefined>(steps.length).fill(undefined);
    for (let i = from; i < to; i++) {
      let row = firstRow.get(curve.points.steps[i] ?? 0) ?? 0;
      while (values[row] !== undefined) row++;
      values[row] = curve.points.values[i] ?? null;
    }
    return { curve, values, isLast };
  });
  return { steps, lines };
}

function partsOf(steps: readonly number[]): [from: number, to: number][] {
  const parts: [number, number][] = [];
  let from = 0;
  for (let i = 1; i <= steps.length; i++) {
    if (i === steps.length || (steps[i] ?? 0) < (steps[i - 1] ?? 0)) {
      parts.push([from, i]);
      from = i;
    }
  }
  return parts;
}

/** Where the values of a curve are not finite: these have no place on the y axis and are marked on the x axis instead. */
export function holesOf(points: Points): Hole[] {
  const holes: Hole[] = [];
  const names = points.non_finite[Symbol.iterator]();
  let inside = false;
  points.values.forEach((value, i) => {
    if (value !== null) {
      inside = false;
      return;
    }
    const step = points.steps[i] ?? 0;
    const name = (names.next().value as { value: Num } | undefined)?.value ?? "NaN";
    const last = holes.at(-1);
    if (inside && last) holes[holes.length - 1] = { ...last, end: step };
    else holes.push({ start: step, end: step, value: number(name) });
    inside = true;
  });
  return holes;
}

/** Whether a logarithmic axis hides no more than zeros. */
export function allowsLog(curves: readonly Curve[]): boolean {
  const values = curves.flatMap((curve) => curve.points.values.filter((value) => value !== null));
  return values.every((value) => value >= 0) && values.some((value) => value > 0);
}

/** Whether only a logarithmic axis shows the small values too: all are positive, and the largest is far above the usual one. */
export function wantsLog(curves: readonly Curve[]): boolean {
  const values = curves.flatMap((curve) => curve.points.values.filter((value) => value !== null)).sort((a, b) => a - b);
  const [least, median, most] = [values[0], values[Math.floor(values.length / 2)], values.at(-1)];
  return least !== undefined && median !== undefined && most !== undefined && least > 0 && most / median > 200;
}

/** How the values of a panel are written: in bytes where its tags say so. */
export function writtenAs(curves: readonly Curve[]): (value: Num | null) => string {
  return isBytes(curves) ? size : number;
}

export function isBytes(curves: readonly Curve[]): boolean {
  return curves.every((curve) => /(^|[^a-z])bytes([^a-z]|$)/i.test(curve.tag));
}

/** The place in `steps` that is nearest to `step`. */
export function nearest(steps: readonly number[], step: number): number {
  let best = -1;
  steps.forEach((one, i) => {
    if (best < 0 || Math.abs(one - step) < Math.abs((steps[best] ?? 0) - step)) best = i;
  });
  return best;
}

/** The last value that a curve has, NaN included. */
export function lastOf(points: Points): Num | null {
  if (points.values.length === 0) return null;
  return points.values.at(-1) ?? points.non_finite.at(-1)?.value ?? "NaN";
}
