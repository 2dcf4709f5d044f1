// The curve in a row of the overview, as paths of an SVG. Pure.

import type { Points } from "../api";
import { number } from "../format";

export const SPARK_WIDTH = 152;
export const SPARK_HEIGHT = 24;
const MARGIN = 2;
// The first steps fall so far that they would flatten all that follows.
const WARM_UP = 0.06;

export interface Spark {
  readonly training: string;
  readonly validation: string;
  readonly onset: number | null;
  readonly hole: { readonly x: number; readonly value: string } | null;
}

export function sparklineOf(training: Points | null, validation: Points | null, onsetStep: number | null): Spark | null {
  const all = [training, validation].filter((points) => points !== null);
  const steps = all.flatMap((points) => points.steps);
  if (steps.length < 2) return null;
  const [first, last] = [Math.min(...steps), Math.max(...steps)];
  const x = (step: number): number => MARGIN + ((step - first) / (last - first || 1)) * (SPARK_WIDTH - 2 * MARGIN);

  const settled = valuesFrom(all, first + WARM_UP * (last - first));
  const values = (settled.length > 1 ? settled : valuesFrom(all, first)).sort((a, b) => a - b);
  const [least, median, most] = [values[0], values[Math.floor(values.length / 2)], values.at(-1)];
  if (least === undefined || median === undefined || most === undefined) return null;
  const log = least > 0 && most / median > 20;
  const scale = (value: number): number => (log ? Math.log(Math.max(value, least)) : value);
  const [low, high] = [scale(least), scale(most)];
  const y = (value: number): number => {
    const share = high > low ? (scale(value) - low) / (high - low) : 0.5;
    return SPARK_HEIGHT - MARGIN - Math.min(1, Math.max(0, share)) * (SPARK_HEIGHT - 2 * MARGIN);
  };

  return {
    training: training ? path(training, x, y) : "",
    validation: validation ? path(validation, x, y) : "",
    onset: onsetStep === null || onsetStep < first || onsetStep > last ? null : round(x(onsetStep)),
    hole: holeOf(all, x),
  };
}

function valuesFrom(all: readonly Points[], from: number): number[] {
  return all.flatMap((points) => points.values.filter((value, i): value is number => value !== null && (points.steps[i] ?? 0) >= from));
}

function path(points: Points, x: (step: number) => number, y: (value: number) => number): string {
  let pen = "M";
  let text = "";
  points.values.forEach((value, i) => {
    if (value === null) pen = "M";
    else {
      text += `${pen}${round(x(points.steps[i] ?? 0))} ${round(y(value))}`;
      pen = "L";
    }
  });
  return text;
}

function holeOf(all: readonly Points[], x: (step: number) => number): Spark["hole"] {
  const first = all.flatMap((points) => points.non_finite).sort((a, b) => a.step - b.step)[0];
  if (!first) return null;
  const left = x(first.step);
  return { x: round(left > SPARK_WIDTH - 36 ? left - 4 : left + 6), value: number(first.value) };
}

function round(value: number): number {
  return Math.round(value * 10) / 10;
}
