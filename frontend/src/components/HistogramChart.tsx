import { useContext, useEffect, useRef, useState } from "preact/hooks";
import { fetchHistogram } from "../api";
import { color, edgeOf } from "../chart/draw";
import { columnsOf, type Heat, quantile, roundWithin } from "../chart/heat";
import { count, integer, number, percent } from "../format";
import type { Finding, HistogramExhibit } from "../report";
import { Session } from "../session";
import { DataTable } from "./DataTable";

const HEIGHT = 240;
const [LEFT, RIGHT, TOP, BOTTOM] = [56, 8, 8, 24];
const QUARTILES = [0.01, 0.25, 0.5, 0.75, 0.99];

interface Props {
  readonly exhibit: HistogramExhibit;
  readonly finding: Finding;
}

/** How the values of a tensor are spread, over steps: the darker, the larger the share of them; or quantiles as a table. */
export function HistogramChart({ exhibit, finding }: Props) {
  const { heat, error } = useHeat(exhibit);
  const [asTable, setAsTable] = useState(false);
  if (error !== null) return <figcaption class="error">The histograms could not be fetched: {error}</figcaption>;
  if (heat === null) return <div class="plot-placeholder" style={{ height: `${HEIGHT}px` }} aria-busy="true" />;
  const shown = heat.steps.length < heat.total ? `${integer(heat.steps.length)} of ${count(heat.total, "histogram")}` : "";
  return (
    <>
      <figcaption class="chart-head">
        <span class="chart-title">{exhibit.tag}</span>
        <span class="grow" />
        <button type="button" class="button small" aria-pressed={asTable} onClick={() => setAsTable(!asTable)}>
          Table
        </button>
      </figcaption>
      {asTable ? (
        <DataTable
          title="Values by step"
          columns={["step", "1%", "25%", "median", "75%", "99%"]}
          rows={heat.steps.map((step, i) => [step, ...QUARTILES.map((share) => quantile(heat.shares[i] ?? [], heat.edges, share))])}
        />
      ) : (
        <HeatMap heat={heat} finding={finding} />
      )}
      <p class="note chart-note">{shown || count(heat.total, "histogram")}. The darker, the larger the share of the values at that step.</p>
    </>
  );
}

interface Cell {
  readonly column: number;
  readonly bin: number;
  readonly left: number;
}

function HeatMap({ heat, finding }: { readonly heat: Heat; readonly finding: Finding }) {
  const { dark } = useContext(Session);
  const canvas = useRef<HTMLCanvasElement>(null);
  const [width, setWidth] = useState(0);
  const [cell, setCell] = useState<Cell | null>(null);
  const columns = columnsOf(heat.steps);
  const bins = heat.edges.length - 1;
  const inner = width - LEFT - RIGHT;
  const depth = HEIGHT - TOP - BOTTOM;
  const { severity, onset_step: onset } = finding.diagnosis;

  useEffect(() => {
    const box = canvas.current?.parentElement;
    if (!box) return undefined;
    const observer = new ResizeObserver(() => {
      if (box.clientWidth > 0) setWidth(box.clientWidth);
    });
    observer.observe(box);
    return () => observer.disconnect();
  }, []);

  useEffect(() => {
    const context = canvas.current?.getContext("2d");
    if (!canvas.current || !context || width === 0) return;
    const ratio = window.devicePixelRatio;
    canvas.current.width = width * ratio;
    canvas.current.height = HEIGHT * ratio;
    context.scale(ratio, ratio);
    drawHeat(context, heat, columns, inner, depth);
    drawAxes(context, heat, inner, depth);
    const [first, last] = [heat.steps[0] ?? 0, heat.steps.at(-1) ?? 0];
    if (onset !== null && last > first && onset >= first && onset <= last) {
      // At the left edge of the first cell that is marked: cells reach half-way to their neighbours.
      const marked = heat.steps.findIndex((step) => step >= onset);
      const x = Math.round(LEFT + (columns[marked]?.[0] ?? 0) * inner) + 0.5;
      stroke(context, color(edgeOf(severity)), [x, TOP, x, TOP + depth]);
    }
  }, [heat, width, dark, onset, severity]);

  const point = (event: MouseEvent): void => {
    const [x, y] = [(event.offsetX - LEFT) / inner, (event.offsetY - TOP) / depth];
    const column = columns.findIndex(([from, to]) => x >= from && x <= to);
    const bin = Math.floor((1 - y) * bins);
    setCell(column >= 0 && bin >= 0 && bin < bins ? { column, bin, left: event.offsetX } : null);
  };
  const middle = heat.shares.map((shares) => quantile(shares, heat.edges, 0.5));
  const label = `Values of ${heat.tag} over ${count(heat.steps.length, "step")}: median ${number(middle[0] ?? null)} at first, ${number(middle.at(-1) ?? null)} at last`;

  return (
    <div class="heat" onMouseLeave={() => setCell(null)}>
      <canvas ref={canvas} role="img" aria-label={label} style={{ width: "100%", height: `${HEIGHT}px` }} onMouseMove={point} />
      {cell && <Readout heat={heat} cell={cell} width={width} />}
    </div>
  );
}

function Readout({ heat, cell, width }: { readonly heat: Heat; readonly cell: Cell; readonly width: number }) {
  const style = cell.left > width - 280 ? { right: `${width - cell.left + 12}px` } : { left: `${cell.left + 12}px` };
  const [from, to] = [heat.edges[cell.bin] ?? 0, heat.edges[cell.bin + 1] ?? 0];
  return (
    <div class="readout" style={style} aria-live="polite">
      <b>step {integer(heat.steps[cell.column] ?? 0)}</b>
      <dl>
        <div>
          <dt>
            {number(from)} to {number(to)}
          </dt>
          <dd>{percent(heat.shares[cell.column]?.[cell.bin] ?? 0)}</dd>
        </div>
      </dl>
    </div>
  );
}

function drawHeat(
  context: CanvasRenderingContext2D,
  heat: Heat,
  columns: readonly (readonly [number, number])[],
  inner: number,
  depth: number,
): void {
  const bins = heat.edges.length - 1;
  const most = Math.max(...heat.shares.map((shares) => Math.max(...shares)));
  context.fillStyle = color("--slate");
  for (const [i, shares] of heat.shares.entries()) {
    const [from, to] = columns[i] ?? [0, 0];
    // Whole pixels: cells that overlap would show as lines.
    const [x, end] = [Math.round(LEFT + from * inner), Math.round(LEFT + to * inner)];
    for (const [bin, share] of shares.entries()) {
      if (share <= 0) continue;
      // The root keeps thin tails in sight beside a bin that holds nearly everything.
      context.globalAlpha = Math.sqrt(share / most);
      const [top, bottom] = [1, 0].map((above) => Math.round(TOP + (1 - (bin + above) / bins) * depth)) as [number, number];
      context.fillRect(x, top, Math.max(1, end - x), bottom - top);
    }
  }
  context.globalAlpha = 1;
}

function drawAxes(context: CanvasRenderingContext2D, heat: Heat, inner: number, depth: number): void {
  const [low, high] = [heat.edges[0] ?? 0, heat.edges.at(-1) ?? 1];
  context.font = `12px ${color("--font")}`;
  context.fillStyle = color("--fg-2");
  context.textBaseline = "middle";
  context.textAlign = "right";
  for (const tick of roundWithin(low, high)) {
    const y = TOP + (1 - (tick - low) / (high - low)) * depth;
    context.fillText(number(tick), LEFT - 8, y);
    stroke(context, color("--axis"), [LEFT - 4, Math.round(y) + 0.5, LEFT, Math.round(y) + 0.5]);
  }
  const bottom = TOP + depth;
  stroke(context, color("--axis"), [LEFT + 0.5, TOP, LEFT + 0.5, bottom + 0.5, LEFT + inner, bottom + 0.5]);
  context.fillText("step", LEFT - 8, bottom + 14);
  const [first, last] = [heat.steps[0] ?? 0, heat.steps.at(-1) ?? 0];
  for (const step of last > first ? roundWithin(first, last) : [first]) {
    const x = LEFT + (last > first ? (step - first) / (last - first) : 0.5) * inner;
    context.textAlign = x > LEFT + inner - 24 ? "right" : "center";
    if (Number.isInteger(step)) context.fillText(integer(step), x, bottom + 14);
  }
}

function stroke(context: CanvasRenderingContext2D, style: string, line: readonly number[]): void {
  context.strokeStyle = style;
  context.lineWidth = 1;
  context.beginPath();
  for (let i = 0; i < line.length; i += 2) context.lineTo(line[i] ?? 0, line[i + 1] ?? 0);
  context.stroke();
}

/** The histograms of the exhibit, fetched again after new data. What is shown stays until then. */
function useHeat({ run, tag }: HistogramExhibit): { heat: Heat | null; error: string | null } {
  const { generation } = useContext(Session);
  const [heat, setHeat] = useState<Heat | null>(null);
  const [error, setError] = useState<string | null>(null);
  useEffect(() => {
    let current = true;
    fetchHistogram(run, tag)
      .then((found) => {
        if (!current) return;
        setHeat(found);
        setError(null);
      })
      .catch((reason: unknown) => {
        if (current) setError(reason instanceof Error ? reason.message : String(reason));
      });
    return () => {
      current = false;
    };
  }, [generation, run, tag]);
  return { heat, error };
}
