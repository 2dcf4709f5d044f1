import type { ComponentChildren } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import type { Cell } from "../report";
import { DataTable } from "./DataTable";

export const HEIGHT = 244;
export const LEFT = 64;
const [TOP, BOTTOM] = [12, 24];

interface Props {
  readonly title: string;
  readonly legend: ComponentChildren;
  readonly label: string;
  /** From 0 up; the last one is the upper edge. */
  readonly ticks: readonly number[];
  readonly written: (tick: number) => string;
  /** What the lower axis counts. */
  readonly unit: string;
  readonly columns: readonly string[];
  readonly rows: () => readonly (readonly Cell[])[];
  readonly children: (width: number, y: (value: number) => number) => ComponentChildren;
}

/** A chart over an axis that begins at 0, with its legend and its values as a table. */
export function SvgChart({ title, legend, label, ticks, written, unit, columns, rows, children }: Props) {
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
  const y = (value: number): number => TOP + (1 - value / (ticks.at(-1) ?? 1)) * (HEIGHT - TOP - BOTTOM);

  return (
    <>
      <figcaption class="chart-head">
        <span class="chart-title">{title}</span>
        <span class="keys-of-chart">{legend}</span>
        <span class="grow" />
        <button type="button" class="button small" aria-pressed={asTable} onClick={() => setAsTable(!asTable)}>
          Table
        </button>
      </figcaption>
      {asTable ? (
        <DataTable title={title} columns={columns} rows={rows()} />
      ) : (
        <div ref={box}>
          {width > 0 && (
            <svg class="bars" width={width} height={HEIGHT} role="img" aria-label={label}>
              {ticks.map((tick) => (
                <g key={tick}>
                  <path class="grid" d={`M${LEFT} ${y(tick)}H${width}`} />
                  <text x={LEFT - 8} y={y(tick) + 4} text-anchor="end">
                    {written(tick)}
                  </text>
                </g>
              ))}
              {children(width, y)}
              <path class="axis" d={`M${LEFT} ${y(0)}H${width}`} />
              <text x={LEFT - 8} y={HEIGHT - 6} text-anchor="end">
                {unit}
              </text>
            </svg>
          )}
        </div>
      )}
    </>
  );
}
