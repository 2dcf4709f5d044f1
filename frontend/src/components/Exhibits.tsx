import type { Entry, Exhibit, Finding } from "../report";
import { DataTable } from "./DataTable";
import { HistogramChart } from "./HistogramChart";
import { SeriesChart } from "./SeriesChart";
import { StepBars } from "./StepBars";
import { Timeline } from "./Timeline";

interface Props {
  readonly finding: Finding;
  readonly entry: Entry;
}

/** The evidence of a diagnosis, in its order. A trace without steps is there for its link only. */
export function Exhibits({ finding, entry }: Props) {
  return (
    <>
      {finding.diagnosis.exhibits
        .filter((exhibit) => exhibit.kind !== "trace" || exhibit.steps.length > 0)
        .map((exhibit, i) => (
          <figure key={i} class="exhibit">
            <One exhibit={exhibit} finding={finding} entry={entry} />
          </figure>
        ))}
    </>
  );
}

function One({ exhibit, finding, entry }: Props & { readonly exhibit: Exhibit }) {
  switch (exhibit.kind) {
    case "series":
      return <SeriesChart exhibit={exhibit} severity={finding.diagnosis.severity} entry={entry} />;
    case "trace":
      return <StepBars exhibit={exhibit} />;
    case "timeline":
      return <Timeline exhibit={exhibit} />;
    case "table":
      return <DataTable title={exhibit.title} columns={exhibit.columns} rows={exhibit.rows} />;
    case "histogram":
      return <HistogramChart exhibit={exhibit} finding={finding} />;
    case "text":
      return <Lines lines={exhibit.lines} />;
    default:
      // A newer server may know more kinds: their content is better than nothing.
      return <Lines lines={JSON.stringify(exhibit, null, 2).split("\n")} />;
  }
}

function Lines({ lines }: { readonly lines: readonly string[] }) {
  return (
    <pre class="lines" tabIndex={0}>
      {lines.join("\n")}
    </pre>
  );
}
