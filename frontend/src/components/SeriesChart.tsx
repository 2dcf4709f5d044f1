import { useContext, useEffect, useId, useMemo, useState } from "preact/hooks";
import { fetchSeries, type Range } from "../api";
import { allowsLog, type Curve, columnsOf, labelsOf, nearest, type Panel, panelsOf, roleOf, wantsLog, writtenAs } from "../chart/curves";
import { Plot, type Pointed } from "../chart/Plot";
import { count, integer, list } from "../format";
import type { Cell, Entry, SeriesExhibit, Severity } from "../report";
import { Session } from "../session";
import { DataTable } from "./DataTable";

const CHART_HEIGHT = 248;
const STRIP_HEIGHT = 80;
const AXIS_HEIGHT = 28;

interface Props {
  readonly exhibit: SeriesExhibit;
  /** Whose colour the marked steps have. */
  readonly severity: Severity;
  readonly entry: Entry;
}

/** The curves of a diagnosis: a chart, strips below it for what has another unit, or the same numbers as a table. */
export function SeriesChart({ exhibit, severity, entry }: Props) {
  const [range, setRange] = useState<Range | null>(null);
  const [pointed, setPointed] = useState<Pointed | null>(null);
  const [asTable, setAsTable] = useState(false);
  const [log, setLog] = useState<boolean | null>(null);
  const syncKey = useId();
  const { curves, error } = useCurves(exhibit, entry, range);
  const panels = useMemo(() => panelsOf(curves ?? []), [curves]);

  if (error !== null) return <figcaption class="error">The curves could not be fetched: {error}</figcaption>;
  if (curves === null) return <div class="plot-placeholder" style={{ height: `${CHART_HEIGHT + AXIS_HEIGHT}px` }} aria-busy="true" />;

  const main = panels[0];
  const shownRange = range ?? rangeOf(curves);
  if (!main || shownRange === null) return <figcaption>No points between these steps.</figcaption>;
  const canBeLog = allowsLog(main.curves);
  const isLog = canBeLog && (log ?? wantsLog(main.curves));
  const best = entry.job?.best;

  return (
    <>
      <figcaption class="chart-head">
        <span class="chart-title">{main.title}</span>
        <span class="grow" />
        {range !== null && (
          <button type="button" class="button small" onClick={() => setRange(null)}>
            All steps
          </button>
        )}
        {canBeLog && (
          <button type="button" class="button small" aria-pressed={isLog} onClick={() => setLog(!isLog)}>
            Log scale
          </button>
        )}
        <button type="button" class="button small" aria-pressed={asTable} onClick={() => setAsTable(!asTable)}>
          Table
        </button>
      </figcaption>
      {asTable ? (
        <Numbers curves={curves} exhibit={exhibit} jobName={entry.name} />
      ) : (
        <div class="panels" onMouseLeave={() => setPointed(null)}>
          {panels.map((panel, i) => (
            <div key={i} class="panel">
              {i > 0 && <span class="strip-title">{panel.title}</span>}
              <Plot
                curves={panel.curves}
                jobName={entry.name}
                marks={exhibit.marks}
                severity={severity}
                best={best && typeof best.value === "number" ? { ...best, value: best.value } : null}
                log={i === 0 && isLog}
                height={(i === 0 ? CHART_HEIGHT : STRIP_HEIGHT) + (i === panels.length - 1 ? AXIS_HEIGHT : 0)}
                range={shownRange}
                isStrip={i > 0}
                isLowest={i === panels.length - 1}
                syncKey={syncKey}
                label={describe(panel, exhibit, entry.name)}
                onZoom={setRange}
                onPoint={setPointed}
              />
            </div>
          ))}
          {pointed && <Readout pointed={pointed} panels={panels} jobName={entry.name} />}
        </div>
      )}
      <p class="note chart-note">{noteOf(curves)}</p>
    </>
  );
}

/** The curves of the exhibit, fetched again for another range and after new data. What is shown stays until then. */
function useCurves(exhibit: SeriesExhibit, entry: Entry, range: Range | null): { curves: readonly Curve[] | null; error: string | null } {
  const { generation } = useContext(Session);
  const [curves, setCurves] = useState<readonly Curve[] | null>(null);
  const [error, setError] = useState<string | null>(null);
  useEffect(() => {
    let current = true;
    const fetched = exhibit.run_tags.map(async ([run, tag]): Promise<Curve> => {
      const points = await fetchSeries(run, tag, { points: 800, marks: exhibit.marks, range });
      return { run, tag, ...roleOf(entry.job, [run, tag]), points };
    });
    Promise.all(fetched)
      .then((all) => {
        if (!current) return;
        setCurves(all);
        setError(null);
      })
      .catch((reason: unknown) => {
        if (current) setError(reason instanceof Error ? reason.message : String(reason));
      });
    return () => {
      current = false;
    };
  }, [generation, entry.name, range?.[0], range?.[1], JSON.stringify(exhibit)]);
  return { curves, error };
}

function rangeOf(curves: readonly Curve[]): Range | null {
  let [from, to] = [Infinity, -Infinity];
  for (const step of curves.flatMap((curve) => curve.points.steps)) {
    from = Math.min(from, step);
    to = Math.max(to, step);
  }
  if (from > to) return null;
  return from === to ? [from - 1, to + 1] : [from, to];
}

function noteOf(curves: readonly Curve[]): string {
  const total = curves.reduce((sum, curve) => sum + curve.points.total, 0);
  const drawn = curves.reduce((sum, curve) => sum + curve.points.steps.length, 0);
  const points = drawn < total ? `${integer(drawn)} of ${count(total, "point")}, every extreme among them` : count(total, "point");
  return `${points}. Drag to zoom, double click for all steps.`;
}

function describe(panel: Panel, exhibit: SeriesExhibit, jobName: string): string {
  const names = labelsOf(panel.curves, jobName).filter(Boolean);
  const marks = exhibit.marks.map((mark) => `${mark.label} from step ${integer(mark.start)} to ${integer(mark.end)}`);
  return [`${panel.title} over steps${names.length > 0 ? `: ${list(names)}` : ""}`, ...marks].join("; ");
}

function Readout({ pointed, panels, jobName }: { readonly pointed: Pointed; readonly panels: readonly Panel[]; readonly jobName: string }) {
  const rows = panels.flatMap((panel) => {
    const names = labelsOf(panel.curves, jobName);
    const written = writtenAs(panel.curves);
    return panel.curves.flatMap(({ points, split }, i) => {
      const at = nearest(points.steps, pointed.step);
      if (at < 0) return [];
      const value = points.values[at] ?? points.non_finite.find((point) => point.step === points.steps[at])?.value ?? null;
      return [{ name: names[i] || panel.title, split, value: written(value) }];
    });
  });
  const isRight = pointed.left > pointed.width - 340;
  const style = isRight ? { right: `${pointed.width - pointed.left + 12}px` } : { left: `${pointed.left + 12}px` };
  return (
    <div class="readout" style={style} aria-live="polite">
      <b>step {integer(pointed.step)}</b>
      <dl>
        {rows.map((row) => (
          <div key={row.name} class={row.split ?? ""}>
            <dt>{row.name}</dt>
            <dd>{row.value}</dd>
          </div>
        ))}
      </dl>
    </div>
  );
}

function Numbers({
  curves,
  exhibit,
  jobName,
}: {
  readonly curves: readonly Curve[];
  readonly exhibit: SeriesExhibit;
  readonly jobName: string;
}) {
  const names = labelsOf(curves, jobName);
  const { steps, lines } = columnsOf(curves);
  const nonFinite = curves.map((curve) => new Map(curve.points.non_finite.map((point) => [point.step, point.value])));
  const rows = steps.map((step, row): Cell[] => [
    step,
    ...curves.map((curve, i): Cell => {
      const line = lines.find((one) => one.curve === curve && one.values[row] !== undefined);
      const value = line?.values[row];
      return value === null ? (nonFinite[i]?.get(step) ?? "NaN") : (value ?? null);
    }),
  ]);
  const isMarked = (step: number): boolean => exhibit.marks.some((mark) => step >= mark.start && step <= mark.end);
  const marked = new Set(steps.flatMap((step, row) => (isMarked(step) ? [row] : [])));
  return (
    <DataTable
      title="Values by step"
      columns={["step", ...names.map((name, i) => name || (curves[i]?.tag ?? ""))]}
      rows={rows}
      marked={marked}
    />
  );
}
