import { useContext, useEffect, useRef } from "preact/hooks";
import uPlot from "uplot";
import type { Range } from "../api";
import { integer } from "../format";
import { Session } from "../session";
import { type Column, type Curve, columnsOf, isBytes, writtenAs } from "./curves";
import { color, curveColor, type Drawn, drawLabels, drawMarks, fontFamily, LABEL_WIDTH } from "./draw";

/** What the pointer is on: a row of the panel's columns, at `left` pixels of its `width`. */
export interface Pointed {
  readonly step: number;
  readonly left: number;
  readonly width: number;
}

export interface PlotProps extends Drawn {
  readonly log: boolean;
  readonly height: number;
  readonly range: Range;
  readonly syncKey: string;
  readonly label: string;
  readonly onZoom: (range: Range | null) => void;
  readonly onPoint: (pointed: Pointed | null) => void;
}

const LEFT = 56;
const AXIS = 28;

/** One panel of curves, drawn by uPlot, with the marked steps behind it and the names of the curves at their ends. */
export function Plot(props: PlotProps) {
  const { dark } = useContext(Session);
  const box = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot | null>(null);
  const latest = useRef(props);
  latest.current = props;
  const { curves, log, height, range, isStrip, isLowest } = props;

  useEffect(() => {
    const element = box.current;
    if (!element) return undefined;
    const columns = columnsOf(curves);
    const lines = columns.lines.map((line) => (log ? line.values.map(onlyPositive) : line.values));
    const drawn = new uPlot(
      optionsOf(
        latest.current,
        columns.lines.map((line) => line.curve),
        element.clientWidth,
      ),
      [columns.steps, ...lines] as uPlot.AlignedData,
      element,
    );
    plot.current = drawn;
    // TensorBoard hides the tab by making its frame 0 pixels high: nothing to fit into then.
    const observer = new ResizeObserver(() => {
      if (element.clientWidth > 0) drawn.setSize({ width: element.clientWidth, height });
    });
    observer.observe(element);
    return () => {
      observer.disconnect();
      drawn.destroy();
      plot.current = null;
    };
  }, [curves, log, height, range[0], range[1], isStrip, isLowest]);

  useEffect(() => plot.current?.redraw(false), [dark]);

  return (
    <div
      ref={box}
      class="plot"
      role="img"
      tabIndex={isStrip ? -1 : 0}
      aria-label={props.label}
      onKeyDown={(event) => walk(event, plot.current)}
    />
  );
}

function onlyPositive(value: number | null | undefined): number | null | undefined {
  return typeof value === "number" && value <= 0 ? null : value;
}

/** Arrow keys walk the logged steps. */
function walk(event: KeyboardEvent, plot: uPlot | null): void {
  const by = event.key === "ArrowRight" ? 1 : event.key === "ArrowLeft" ? -1 : 0;
  const steps = plot?.data[0];
  if (by === 0 || !plot || !steps) return;
  event.preventDefault();
  const from = plot.cursor.idx ?? (by > 0 ? -1 : steps.length);
  const step = steps[Math.min(steps.length - 1, Math.max(0, from + by))];
  if (step !== undefined) plot.setCursor({ left: plot.valToPos(step, "x"), top: 0 });
}

function optionsOf(props: PlotProps, lines: readonly Curve[], width: number): uPlot.Options {
  const { log, height, isStrip, isLowest, range } = props;
  const axisFont = `12px ${fontFamily()}`;
  const written = writtenAs(props.curves);
  return {
    width: Math.max(width, 200),
    height,
    padding: [isStrip ? 18 : 10, LABEL_WIDTH, isLowest ? 0 : 6, 0],
    legend: { show: false },
    cursor: {
      y: false,
      points: { size: 8, width: 2, stroke: () => color("--bg"), fill: (_u, i) => curveColor(lines[i - 1]) },
      drag: { x: true, y: false, setScale: false },
      sync: { key: props.syncKey, setSeries: false },
      bind: {
        dblclick: () => () => {
          props.onZoom(null);
          return null;
        },
      },
    },
    scales: {
      x: { time: false, range: () => [range[0], range[1]] },
      y: { distr: log ? 3 : 1, ...(log ? {} : { range: (_u, min, max) => padded(min, max, isStrip) }) },
    },
    axes: [
      {
        show: true,
        size: isLowest ? AXIS : 0,
        stroke: () => color("--fg-2"),
        font: axisFont,
        grid: { show: false },
        ticks: { show: isLowest, stroke: () => color("--axis"), width: 1, size: 4 },
        border: { show: true, stroke: () => color("--axis"), width: 1 },
        incrs: INCREMENTS,
        values: (_u, splits) => splits.map((step) => (isLowest ? integer(step) : "")),
        space: 80,
        gap: 4,
      },
      {
        size: LEFT,
        stroke: () => color("--fg-2"),
        font: axisFont,
        grid: { stroke: () => color("--grid"), width: 1 },
        ticks: { show: false },
        values: (_u, splits) => splits.map((value) => written(value)),
        ...(isBytes(props.curves) && !log ? { incrs: BINARY_INCREMENTS } : {}),
        space: isStrip ? 28 : 40,
        gap: 8,
      },
    ],
    series: [
      {},
      ...lines.map(
        (curve, i): uPlot.Series => ({
          scale: "y",
          stroke: () => curveColor(curve),
          width: curve.split === "validation" ? 1.75 : 1.5,
          pxAlign: 0,
          points: { show: (u) => showsPoints(u, i + 1), size: 4, fill: () => curveColor(curve), width: 0 },
        }),
      ),
    ],
    hooks: {
      drawClear: [(u) => drawMarks(u, props)],
      draw: [(u) => drawLabels(u, props)],
      setSelect: [
        (u) => {
          const { left, width: selected } = u.select;
          if (selected < 4) return;
          props.onZoom([Math.floor(u.posToVal(left, "x")), Math.ceil(u.posToVal(left + selected, "x"))]);
        },
      ],
      setCursor: [
        (u) => {
          // The cursors of all panels move together: one of them speaks.
          if (isStrip) return;
          const { idx } = u.cursor;
          const step = idx === null || idx === undefined ? undefined : u.data[0][idx];
          const left = step === undefined ? 0 : u.valToPos(step, "x");
          props.onPoint(step === undefined ? null : { step, left: LEFT + left, width: u.width });
        },
      ],
    },
  };
}

// Steps are whole numbers: no ticks between them.
const INCREMENTS = Array.from({ length: 13 }, (_, power) => [1, 2, 5].map((factor) => factor * 10 ** power)).flat();

const BINARY_INCREMENTS = Array.from({ length: 50 }, (_, power) => 2 ** power);

function padded(min: number, max: number, isStrip: boolean): uPlot.Range.MinMax {
  if (min === null || max === null) return [0, 1];
  if (min === max) return min === 0 ? [-1, 1] : [Math.min(0, min * 1.25), Math.max(0, max * 1.25)];
  const room = (max - min) * (isStrip ? 0.15 : 0.06);
  // Losses are read against zero: keep it in sight where it is near.
  return [min >= 0 && min < 0.5 * max ? 0 : min - room, max + room];
}

/** Points stay drawn where they can be told apart, and where a line cannot be seen: between two gaps. */
function showsPoints(u: uPlot, index: number): boolean {
  const values = u.data[index] as Column;
  const drawn = values.filter((value) => typeof value === "number").length;
  return drawn > 0 && u.bbox.width / uPlot.pxRatio / drawn > 14;
}
