import { useContext, useEffect, useRef, useState } from "preact/hooks";
import { fetchSeries, type Points } from "../api";
import { SPARK_HEIGHT, SPARK_WIDTH, sparklineOf } from "../chart/sparkline";
import { type Entry, type Job, lossesOf, type RunTag } from "../report";
import { Session } from "../session";

/** Training and validation loss of a job, small; from the onset of its main finding on a tint. Fetched when its row comes into sight. */
export function Sparkline({ entry, job }: { readonly entry: Entry; readonly job: Job }) {
  const { generation } = useContext(Session);
  const box = useRef<HTMLDivElement>(null);
  const [points, setPoints] = useState<{ readonly training: Points | null; readonly validation: Points | null } | null>(null);
  const [inSight, setInSight] = useState(false);

  useEffect(() => {
    const observer = new IntersectionObserver((seen) => {
      if (seen.some((one) => one.isIntersecting)) setInSight(true);
    });
    if (box.current) observer.observe(box.current);
    return () => observer.disconnect();
  }, []);

  useEffect(() => {
    if (!inSight) return undefined;
    let current = true;
    const { training: train, validation: held } = lossesOf(job);
    const points = (member: RunTag | null): Promise<Points | null> =>
      member ? fetchSeries(member[0], member[1], { points: 120 }).catch(() => null) : Promise.resolve(null);
    void Promise.all([points(train), points(held)]).then(([training, validation]) => {
      if (current) setPoints({ training, validation });
    });
    return () => {
      current = false;
    };
  }, [inSight, generation, job.name]);

  const main = entry.shown[0]?.diagnosis;
  const drawn = points && sparklineOf(points.training, points.validation, main?.onset_step ?? null);
  return (
    <div ref={box} class="spark">
      {drawn && (
        <svg width={SPARK_WIDTH} height={SPARK_HEIGHT} viewBox={`0 0 ${SPARK_WIDTH} ${SPARK_HEIGHT}`} aria-hidden="true">
          {drawn.onset !== null && main && (
            <>
              <rect class={`tint ${main.severity}`} x={drawn.onset} y="0" width={SPARK_WIDTH - drawn.onset} height={SPARK_HEIGHT} />
              <path class={`edge ${main.severity}`} d={`M${drawn.onset} 0V${SPARK_HEIGHT}`} />
            </>
          )}
          <path class="line training" d={drawn.training} />
          <path class="line validation" d={drawn.validation} />
          {drawn.hole !== null && (
            <text class="error" x={drawn.hole.x} y="16" text-anchor={drawn.hole.x > SPARK_WIDTH - 36 ? "end" : "start"}>
              {drawn.hole.value}
            </text>
          )}
        </svg>
      )}
    </div>
  );
}
