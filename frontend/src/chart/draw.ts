// What a chart shows besides its lines: marked steps, holes, and the names of the curves at their ends. Drawn on uPlot's canvas, whose
// lengths are device pixels.

import uPlot from "uplot";
import { integer } from "../format";
import type { Mark, Severity } from "../report";
import { type Curve, holesOf, labelsOf, lastOf, writtenAs } from "./curves";
import { holeLabelsOf, rowsOf, spread } from "./labels";

export interface Drawn {
  readonly curves: readonly Curve[];
  readonly jobName: string;
  readonly marks: readonly Mark[];
  readonly severity: Severity;
  readonly best: { readonly run: string; readonly tag: string; readonly step: number; readonly value: number } | null;
  /** A strip below the chart: fewer grid lines, no labels of marks. */
  readonly isStrip: boolean;
  /** Whether the axis of steps is drawn. */
  readonly isLowest: boolean;
}

/** Room for the curves' names at the right of the plot, in CSS pixels. */
export const LABEL_WIDTH = 148;

export function drawMarks(u: uPlot, { marks, severity, curves }: Drawn): void {
  const { ctx, bbox } = u;
  ctx.save();
  ctx.beginPath();
  ctx.rect(bbox.left, bbox.top, bbox.width, bbox.height);
  ctx.clip();
  for (const mark of marks) {
    const [from, to] = [u.valToPos(mark.start, "x", true), u.valToPos(mark.end, "x", true)];
    ctx.fillStyle = color(`--${tone(severity)}-tint`);
    ctx.fillRect(from, bbox.top, Math.max(to - from, uPlot.pxRatio), bbox.height);
    vertical(u, from, color(edgeOf(severity)));
  }
  for (const hole of curves.flatMap((curve) => holesOf(curve.points))) {
    const [from, to] = [u.valToPos(hole.start, "x", true), u.valToPos(hole.end, "x", true)];
    hatch(u, from, to);
    vertical(u, from, color("--error"));
  }
  ctx.restore();
}

function vertical(u: uPlot, x: number, stroke: string): void {
  u.ctx.strokeStyle = stroke;
  u.ctx.lineWidth = uPlot.pxRatio;
  u.ctx.beginPath();
  u.ctx.moveTo(Math.round(x) + 0.5, u.bbox.top);
  u.ctx.lineTo(Math.round(x) + 0.5, u.bbox.top + u.bbox.height);
  u.ctx.stroke();
}

function hatch(u: uPlot, from: number, to: number): void {
  const { ctx, bbox } = u;
  const { pxRatio } = uPlot;
  if (to - from < 2) return;
  ctx.save();
  ctx.beginPath();
  ctx.rect(from, bbox.top, to - from, bbox.height);
  ctx.clip();
  ctx.strokeStyle = color("--hatch");
  ctx.lineWidth = 1.2 * pxRatio;
  ctx.beginPath();
  for (let x = from - bbox.height; x < to; x += 8 * pxRatio) {
    ctx.moveTo(x, bbox.top + bbox.height);
    ctx.lineTo(x + bbox.height, bbox.top);
  }
  ctx.stroke();
  ctx.restore();
}

interface Label {
  readonly text: string;
  readonly x: number;
  readonly y: number;
  readonly color: string;
}

export function drawLabels(u: uPlot, props: Drawn): void {
  const { ctx, bbox } = u;
  const { pxRatio } = uPlot;
  const { severity, marks, curves, isStrip, jobName } = props;
  const written = writtenAs(curves);
  ctx.save();
  ctx.font = `500 ${12 * pxRatio}px ${fontFamily()}`;
  ctx.textBaseline = "middle";
  ctx.textAlign = "left";
  ctx.lineJoin = "round";
  const inside = (x: number): boolean => x >= bbox.left - 1 && x <= bbox.left + bbox.width + 1;
  const right = bbox.left + bbox.width;

  const tops: Label[] = [];
  const top = bbox.top + 12 * pxRatio;
  for (const mark of isStrip ? [] : marks) {
    const x = Math.max(bbox.left, u.valToPos(mark.start, "x", true));
    if (inside(x) && u.valToPos(mark.end, "x", true) >= bbox.left) {
      const tint = color(severity === "error" ? "--error" : severity === "warning" ? "--warning" : "--info");
      tops.push({ text: mark.label, x, y: top, color: tint });
    }
  }
  for (const { hole, text } of holeLabelsOf(curves, jobName, marks)) {
    const x = u.valToPos(hole.start, "x", true);
    if (!inside(x)) continue;
    glyph(u, x);
    if (!isStrip && text !== "") tops.push({ text, x, y: top, color: color("--error") });
  }
  tops.sort((a, b) => a.x - b.x);
  const boxes = tops.slice(0, 12).map((label) => {
    const width = ctx.measureText(label.text).width;
    const fits = label.x + 8 * pxRatio + width <= right + (LABEL_WIDTH - 8) * pxRatio;
    const from = Math.max(bbox.left, fits ? label.x + 8 * pxRatio : label.x - 8 * pxRatio - width);
    return { label, from, to: from + width };
  });
  const rows = rowsOf(boxes);
  for (const [i, { label, from }] of boxes.entries()) {
    halo(ctx, label.text, from, label.y + 16 * pxRatio * (rows[i] ?? 0), label.color, pxRatio);
  }

  const { best } = props;
  const bestCurve = best && curves.find((curve) => curve.run === best.run && curve.tag === best.tag);
  if (best && bestCurve) {
    const [x, y] = [u.valToPos(best.step, "x", true), u.valToPos(best.value, "y", true)];
    if (inside(x)) {
      dot(u, x, y, curveColor(bestCurve));
      const text = `best ${written(best.value)} at step ${integer(best.step)}`;
      const left = x + 8 * pxRatio;
      // Near the end there is no room beside the curves' names, which give nearly the same value.
      if (left + ctx.measureText(text).width <= right) halo(ctx, text, left, y - 14 * pxRatio, curveColor(bestCurve), pxRatio);
    }
  }

  if (props.isLowest) {
    ctx.save();
    ctx.font = `${12 * pxRatio}px ${fontFamily()}`;
    ctx.textAlign = "right";
    ctx.fillStyle = color("--fg-2");
    ctx.fillText("step", bbox.left - 8 * pxRatio, bbox.top + bbox.height + 14 * pxRatio);
    ctx.restore();
  }

  const names = labelsOf(curves, jobName);
  const ends = curves.flatMap((curve, i): Label[] => {
    const last = lastOf(curve.points);
    const finite = curve.points.values.findLast((value) => value !== null);
    if (finite === undefined || finite === null) return [];
    const y = Math.min(bbox.top + bbox.height, Math.max(bbox.top, u.valToPos(finite, "y", true)));
    const text = `${names[i] ?? ""} ${written(last)}`.trim();
    return [{ text, x: right + 8 * pxRatio, y, color: curveColor(curve) }];
  });
  ends.sort((a, b) => a.y - b.y);
  const heights = spread(
    ends.map((label) => label.y),
    15 * pxRatio,
    bbox.top + bbox.height,
  );
  for (const [i, label] of ends.entries()) {
    halo(ctx, fitted(ctx, label.text, (LABEL_WIDTH - 12) * pxRatio), label.x, heights[i] ?? label.y, label.color, pxRatio);
  }
  ctx.restore();
}

function fitted(ctx: CanvasRenderingContext2D, text: string, width: number): string {
  if (ctx.measureText(text).width <= width) return text;
  // The value at the end matters more than the whole name.
  const value = text.slice(text.lastIndexOf(" "));
  let name = text.slice(0, -value.length);
  while (name && ctx.measureText(`${name}…${value}`).width > width) name = name.slice(0, -1);
  return `${name}…${value}`;
}

function halo(ctx: CanvasRenderingContext2D, text: string, x: number, y: number, fill: string, pxRatio: number): void {
  ctx.strokeStyle = color("--bg");
  ctx.lineWidth = 4 * pxRatio;
  ctx.globalAlpha = 0.85;
  ctx.strokeText(text, x, y);
  ctx.globalAlpha = 1;
  ctx.fillStyle = fill;
  ctx.fillText(text, x, y);
}

function dot(u: uPlot, x: number, y: number, fill: string): void {
  const { ctx } = u;
  const { pxRatio } = uPlot;
  ctx.beginPath();
  ctx.arc(x, y, 4.5 * pxRatio, 0, 2 * Math.PI);
  ctx.fillStyle = fill;
  ctx.fill();
  ctx.strokeStyle = color("--bg");
  ctx.lineWidth = 2 * pxRatio;
  ctx.stroke();
}

/** A triangle on the axis: the sign of a value that has no place on it. */
function glyph(u: uPlot, x: number): void {
  const { ctx, bbox } = u;
  const { pxRatio } = uPlot;
  const y = bbox.top + bbox.height;
  ctx.beginPath();
  ctx.moveTo(x, y - 9 * pxRatio);
  ctx.lineTo(x + 5.5 * pxRatio, y);
  ctx.lineTo(x - 5.5 * pxRatio, y);
  ctx.closePath();
  ctx.fillStyle = color("--error");
  ctx.fill();
}

export function curveColor(curve: Curve | undefined): string {
  return color(curve?.split === "validation" ? "--accent" : "--slate");
}

function tone(severity: Severity): "error" | "warning" {
  return severity === "error" ? "error" : "warning";
}

export function edgeOf(severity: Severity): string {
  return severity === "error" ? "--error" : severity === "warning" ? "--warning-mark" : "--info";
}

export function color(variable: string): string {
  return getComputedStyle(document.documentElement).getPropertyValue(variable).trim();
}

export function fontFamily(): string {
  return color("--font");
}
