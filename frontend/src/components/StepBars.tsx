import { useId } from "preact/hooks";
import { medianOf, stackOf, ticksOf } from "../chart/bars";
import { count, integer, list, number } from "../format";
import type { StepPart, TraceExhibit } from "../report";
import { HEIGHT, LEFT, SvgChart } from "./SvgChart";

// What tells parts from each other beside their order; the rest is plain.
const HATCHES: Readonly<Record<string, string>> = {
  host: "M-1 1l2-2M0 6l6-6M5 7l2-2",
  compile: "M0 3h6",
  communication: "M0 6l6-6M0 0l6 6",
  input: "M3 0v6",
};

/** Step times of a capture, split into their parts: what the diagnosis is about on top, the median dashed. */
export function StepBars({ exhibit }: { readonly exhibit: TraceExhibit }) {
  const id = useId();
  const { steps, wait_ms: cost, wait_label: label, parts } = exhibit;
  const totals = steps.map((_, i) => (exhibit.busy_ms[i] ?? 0) + (cost[i] ?? 0));
  const median = medianOf(totals);
  const ticks = ticksOf(Math.max(...totals));
  const lies = !parts.some((part) => part.name === "own");
  const topDown = parts.toReversed();
  const looks = ({ name }: StepPart) => ({ class: `part ${name}`, style: name in HATCHES ? { fill: `url(#${id}${name})` } : {} });
  const extra = lies ? [label] : [];
  const means = topDown.map((part) => `${number(part.ms.reduce((a, b) => a + b, 0) / steps.length)} ms ${part.label}`);

  return (
    <SvgChart
      title="Time a step, ms"
      label={`Time of ${count(steps.length, "step")}, on average ${list(means)}; median ${number(median)} ms`}
      ticks={ticks}
      written={number}
      unit="step"
      columns={["step", ...topDown.map((part) => part.label), "in all", ...extra]}
      rows={() =>
        steps.map((step, i) => [step, ...topDown.map((part) => part.ms[i] ?? null), totals[i] ?? null, ...(lies ? [cost[i] ?? null] : [])])
      }
      legend={
        <>
          <svg width="0" height="0" aria-hidden="true">
            {topDown.map(({ name }) => (
              <pattern key={name} id={id + name} width="6" height="6" patternUnits="userSpaceOnUse">
                <path d={HATCHES[name] ?? ""} />
              </pattern>
            ))}
          </svg>
          {lies && (
            <span>
              <Key class="extra" />
              {label}
            </span>
          )}
          {topDown.map((part) => (
            <span key={part.name}>
              <Key {...looks(part)} />
              {part.label}
            </span>
          ))}
          <span>
            <span class="bar-key median" />
            median {number(median)}
          </span>
        </>
      }
    >
      {(width, y) => {
        const slot = (width - LEFT - 8) / steps.length;
        const gap = Math.min(12, slot * 0.24);
        const every = Math.ceil(48 / Math.max(slot, 1));
        return (
          <>
            {steps.map((step, i) => {
              const x = LEFT + 4 + i * slot + gap / 2;
              const w = Math.max(1, slot - gap);
              const [top, over] = [totals[i] ?? 0, cost[i] ?? 0];
              const said = topDown.map((part) => `${number(part.ms[i] ?? 0)} ms ${part.label}`);
              return (
                <g key={step} stroke-width={Math.min(1, w / 4)}>
                  <title>{`step ${integer(step)}: ${number(top)} ms; ${said.join(", ")}${lies ? `; ${number(over)} ms ${label}` : ""}`}</title>
                  {stackOf(parts, i).map(({ part, from, to }) => (
                    <rect key={part.name} {...looks(part)} x={x} y={y(to)} width={w} height={y(from) - y(to)} />
                  ))}
                  {lies && over > 0 && <rect class="extra" x={x - 2} y={y(top)} width={w + 4} height={y(top - over) - y(top)} />}
                  {i % every === 0 && (
                    <text x={x + w / 2} y={HEIGHT - 6} text-anchor="middle">
                      {integer(step)}
                    </text>
                  )}
                </g>
              );
            })}
            <path class="median" d={`M${LEFT} ${y(median)}H${width}`} />
          </>
        );
      }}
    </SvgChart>
  );
}

function Key(looks: { readonly class: string; readonly style?: { readonly fill?: string } }) {
  return (
    <svg class="bars bar-key" width="12" height="12" aria-hidden="true">
      <rect x="1" y="1" width="10" height="10" {...looks} />
    </svg>
  );
}
