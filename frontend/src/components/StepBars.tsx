import { useEffect, useRef, useState } from "preact/hooks";
import { medianOf, ticksOf } from "../chart/bars";
import { count, integer, number } from "../format";
import type { TraceExhibit } from "../report";
import { DataTable } from "./DataTable";

const HEIGHT = 244;
const LEFT = 44;
const [TOP, BOTTOM] = [12, 24];

/** Step times of a capture: computing below, waiting on top, the median dashed. */
export function StepBars({ exhibit }: { readonly exhibit: TraceExhibit }) {
  const box = useRef<HTMLDivElement>(null);
  const [width, setWidth] = useState(0);
  const [asTable, setAsTable] = useState(false);
  useEffect(() => {
    const observer = new ResizeObserver(([entry]) => {
      if (entry && entry.contentRect.width > 0) setWidth(entry.contentRect.width);
    });
    if (box.current) observer.observe(box.current);
    return () => observer.disconnect();
  }, [asTable]);

  const { steps, busy_ms: busy, wait_ms: wait } = exhibit;
  if (steps.length === 0) return <figcaption>The capture {exhibit.capture} has no step markers.</figcaption>;
  const totals = steps.map((_, i) => (busy[i] ?? 0) + (wait[i] ?? 0));
  const median = medianOf(totals);
  const ticks = ticksOf(Math.max(...totals));
  const top = ticks.at(-1) ?? 1;
  const y = (ms: number): number => TOP + (1 - ms / top) * (HEIGHT - TOP - BOTTOM);
  const slot = (width - LEFT - 8) / steps.length;
  const gap = Math.min(12, slot * 0.24);
  const every = Math.ceil(48 / Math.max(slot, 1));

  return (
    <>
      <figcaption class="chart-head">
        <span class="chart-title">Time a step, ms</span>
        <span class="bar-key wait" />
        {exhibit.wait_label}
        <span class="bar-key busy" />
        computing
        <span class="bar-key median" />
        median {number(median)}
        <span class="grow" />
        <button type="button" class="button small" aria-pressed={asTable} onClick={() => setAsTable(!asTable)}>
          Table
        </button>
      </figcaption>
      {asTable ? (
        <DataTable
          title="Time a step, ms"
          columns={["step", exhibit.wait_label, "computing", "in all"]}
          rows={steps.map((step, i) => [step, wait[i] ?? null, busy[i] ?? null, totals[i] ?? null])}
        />
      ) : (
        <div ref={box} class="bars-box">
          {width > 0 && (
            <svg
              class="bars"
              width={width}
              height={HEIGHT}
              role="img"
              aria-label={`Time of ${count(steps.length, "step")}, split into ${exhibit.wait_label} and computing; median ${number(median)} ms`}
            >
              {ticks.map((tick) => (
                <g key={tick}>
                  <path class="grid" d={`M${LEFT} ${y(tick)}H${width}`} />
                  <text x={LEFT - 8} y={y(tick) + 4} text-anchor="end">
                    {number(tick)}
                  </text>
                </g>
              ))}
              {steps.map((step, i) => {
                const x = LEFT + 4 + i * slot + gap / 2;
                const w = Math.max(1, slot - gap);
                return (
                  <g key={step}>
                    <title>{`step ${integer(step)}: ${number(wait[i] ?? 0)} ms ${exhibit.wait_label}, ${number(busy[i] ?? 0)} ms computing`}</title>
                    <rect class="busy" x={x} y={y(busy[i] ?? 0)} width={w} height={y(0) - y(busy[i] ?? 0)} />
                    {(wait[i] ?? 0) > 0 && <rect class="wait" x={x} y={y(totals[i] ?? 0)} width={w} height={y(0) - y(wait[i] ?? 0)} />}
                    {i % every === 0 && (
                      <text x={x + w / 2} y={HEIGHT - 6} text-anchor="middle">
                        {integer(step)}
                      </text>
                    )}
                  </g>
                );
              })}
              <path class="axis" d={`M${LEFT} ${y(0)}H${width}`} />
              <path class="median" d={`M${LEFT} ${y(median)}H${width}`} />
              <text x={LEFT - 8} y={HEIGHT - 6} text-anchor="end">
                step
              </text>
            </svg>
          )}
        </div>
      )}
    </>
  );
}
