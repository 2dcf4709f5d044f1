import { byteTicksOf, stairsOf } from "../chart/bars";
import { roundWithin } from "../chart/heat";
import { number, size } from "../format";
import type { TimelineExhibit } from "../report";
import { HEIGHT, LEFT, SvgChart } from "./SvgChart";

// For the label above the peak.
const HEADROOM = 1.1;

/** Memory in use over a capture, with the capacity where it is in sight, and the peak that the diagnosis is about. */
export function Timeline({ exhibit }: { readonly exhibit: TimelineExhibit }) {
  const { times_ms: times, bytes, capacity, peak_ms: peakMs, peak_bytes: peak, peak_label: label } = exhibit;
  const [first, last] = [times[0] ?? 0, times.at(-1) ?? 0];
  const most = Math.max(...bytes, peak);
  // A device that is nearly empty would leave no room for the curve.
  const limit = capacity !== null && capacity < 4 * most ? capacity : null;
  const room = capacity === null ? "" : `capacity ${size(capacity)}`;

  return (
    <SvgChart
      title={exhibit.title}
      legend={
        <span>
          {limit !== null && <span class="bar-key limit" />}
          {room}
        </span>
      }
      label={`${exhibit.title} over ${number(last - first)} ms: at most ${size(most)}; ${label}; ${room}`}
      ticks={byteTicksOf(HEADROOM * Math.max(most, limit ?? 0))}
      written={size}
      unit="ms"
      columns={["ms", "in use"]}
      rows={() => times.map((time, i) => [time, size(bytes[i] ?? null)])}
    >
      {(width, y) => {
        const x = (ms: number): number => LEFT + ((ms - first) / (last - first || 1)) * (width - LEFT - 8);
        const [px, py] = [x(peakMs), y(peak)];
        return (
          <>
            {roundWithin(first, last).map((tick) => (
              <text key={tick} x={x(tick)} y={HEIGHT - 6} text-anchor="middle">
                {number(tick)}
              </text>
            ))}
            {limit !== null && <path class="limit" d={`M${LEFT} ${y(limit)}H${width}`} />}
            <path class="usage" d={stairsOf(times.map(x), bytes.map(y))} />
            <circle class="own" cx={px} cy={py} r="4" />
            <text class="peak" x={px} y={py - 10} text-anchor={px > (width + LEFT) / 2 ? "end" : "start"}>
              {label}
            </text>
          </>
        );
      }}
    </SvgChart>
  );
}
