// What the labels of a chart say, and where there is room for them. Pure.

import { stepRange } from "../format";
import type { Mark } from "../report";
import { type Curve, type Hole, holesOf, labelsOf } from "./curves";

/** The holes of all curves, each with what to say of it; "" where a mark that starts there says it already. */
export function holeLabelsOf(curves: readonly Curve[], jobName: string, marks: readonly Mark[]): { hole: Hole; text: string }[] {
  const names = labelsOf(curves, jobName);
  return curves.flatMap((curve, i) =>
    holesOf(curve.points).map((hole) => {
      const isSaid = marks.some((mark) => mark.start === hole.start);
      const text = `${names[i] ?? ""} ${hole.value} at ${stepRange(hole.start, hole.end)}`.trim();
      return { hole, text: isSaid ? "" : text };
    }),
  );
}

/** The row of each label, from the top, so that none covers another. */
export function rowsOf(labels: readonly { readonly from: number; readonly to: number }[]): number[] {
  const ends: { row: number; from: number; to: number }[] = [];
  for (const { from, to } of labels) {
    let row = 0;
    while (ends.some((other) => other.row === row && other.from < to && from < other.to)) row++;
    ends.push({ row, from, to });
  }
  return ends.map(({ row }) => row);
}

/** Heights in ascending order, pushed at least `apart`: downwards first, then back up from `lowest`. */
export function spread(heights: readonly number[], apart: number, lowest: number): number[] {
  const down: number[] = [];
  for (const y of heights) down.push(Math.max(y, (down.at(-1) ?? -Infinity) + apart));
  const up: number[] = [];
  for (const y of down.toReversed()) up.push(Math.min(y, (up.at(-1) ?? Infinity) - apart, lowest));
  return up.reverse();
}
