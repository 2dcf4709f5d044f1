import { sentence, stepRange } from "../format";
import type { Diagnosis, Entry, Finding } from "../report";
import { About } from "./About";
import { Exhibits } from "./Exhibits";
import { Fixes } from "./Fixes";
import { Chevron, Glyph } from "./Glyph";
import { LookCloser } from "./LookCloser";
import { Inline } from "./Prose";

interface Props {
  readonly finding: Finding;
  readonly entry: Entry;
  readonly open: boolean;
  readonly onToggle: () => void;
}

/** One diagnosis, read from top to bottom as an argument: claim, evidence, cost, remedy; doubt stands beside the remedy. */
export function DiagnosisCard({ finding, entry, open, onToggle }: Props) {
  const { diagnosis, rule } = finding;
  const id = `diagnosis-${finding.key}`;
  return (
    <article class={`diagnosis ${open ? "open" : ""}`} aria-labelledby={id}>
      <h2>
        <button type="button" class="diagnosis-header" aria-expanded={open} onClick={onToggle}>
          <Glyph kind={diagnosis.severity} named />
          <span id={id} class="summary">
            {diagnosis.summary}
          </span>
          {!open && <span class="closed-meta">{[rule, stepsOf(diagnosis)].filter(Boolean).join(", ")}</span>}
          <Chevron />
        </button>
      </h2>
      {open && (
        <>
          <p class="meta">
            <span class={diagnosis.severity}>{sentence(diagnosis.severity)}</span>
            <span>{rule}</span>
            <span>{diagnosis.confidence} confidence</span>
            {stepsOf(diagnosis) && <span>{stepsOf(diagnosis)}</span>}
            {diagnosis.folded_under !== null && <span>part of {diagnosis.folded_under}</span>}
            {diagnosis.suppressed !== null && <span>muted: {diagnosis.suppressed}</span>}
          </p>
          <div class="body">
            <Exhibits finding={finding} entry={entry} />
            {diagnosis.impact && (
              <dl class="impact">
                <dt>Cost</dt>
                <dd>{diagnosis.impact.text}</dd>
              </dl>
            )}
            <div class="columns">
              <Fixes fixes={diagnosis.fixes} />
              <aside aria-label="More">
                <LookCloser links={diagnosis.links} />
                {diagnosis.fixes[0]?.check && (
                  <>
                    <h3>Check that it worked</h3>
                    <p class="note">
                      <Inline text={diagnosis.fixes[0].check} />
                    </p>
                  </>
                )}
                <About rule={rule} />
              </aside>
            </div>
          </div>
        </>
      )}
    </article>
  );
}

function stepsOf({ onset_step: onset, last_step: last }: Diagnosis): string {
  if (onset === null) return "";
  return stepRange(onset, last ?? onset);
}
