import { useEffect, useRef } from "preact/hooks";
import { runWithin } from "../chart/curves";
import { count, duration, integer, list, stepRange } from "../format";
import { moveFocus, useKeys } from "../keys";
import { curvesOf, type Entry, type Finding, type Job, nothingFound, type Outcome } from "../report";
import { jobRoute, NONE, OVERVIEW, type Route } from "../route";
import { Counts } from "./Counts";
import { DiagnosisCard } from "./DiagnosisCard";
import { Chevron, Glyph } from "./Glyph";
import { RouteLink } from "./RouteLink";
import { SeriesChart } from "./SeriesChart";
import { PartialBar } from "./States";
import { writerName } from "./writers";

interface Props {
  readonly entry: Entry;
  readonly entries: readonly Entry[];
  readonly open: string | null;
  readonly go: (route: Route) => void;
}

/** One job: its diagnoses, worst first, with the list of jobs beside them. */
export function JobView({ entry, entries, open, go }: Props) {
  const main = useRef<HTMLElement>(null);
  const title = useRef<HTMLHeadingElement>(null);
  const findings = [...entry.shown, ...entry.noted, ...entry.muted];
  const isThere = open === NONE || findings.some((finding) => finding.key === open);
  const opened = (isThere ? open : entry.shown[0]?.key) ?? NONE;
  const headers = (): HTMLElement[] => [...(main.current?.querySelectorAll<HTMLElement>(".diagnosis-header") ?? [])];
  const goJob = (by: 1 | -1): void => {
    const next = entries[entries.indexOf(entry) + by];
    if (next) go(jobRoute(next.name));
  };

  useKeys({
    j: () => moveFocus(headers(), 1),
    k: () => moveFocus(headers(), -1, 1),
    J: () => goJob(1),
    K: () => goJob(-1),
    c: () => main.current?.querySelector<HTMLElement>(".diagnosis.open .copy")?.click(),
    Escape: () => go(opened === NONE ? OVERVIEW : jobRoute(entry.name, NONE)),
  });

  useEffect(() => {
    window.scrollTo(0, 0);
    if (document.hasFocus()) title.current?.focus({ preventScroll: true });
  }, [entry.name]);

  const card = (finding: Finding) => (
    <DiagnosisCard
      key={`${entry.name} ${finding.key}`}
      finding={finding}
      entry={entry}
      open={finding.key === opened}
      onToggle={() => go(jobRoute(entry.name, finding.key === opened ? NONE : finding.key))}
    />
  );

  return (
    <div class="job-view">
      <Rail entries={entries} current={entry} hasCards={findings.length > 0} />
      <main ref={main}>
        <header class="job-header">
          <div>
            <p class="crumb">
              <RouteLink route={OVERVIEW}>All jobs</RouteLink>
            </p>
            <h1 ref={title} tabIndex={-1}>
              {entry.name}
            </h1>
            {entry.job && <Facts job={entry.job} />}
          </div>
          <span class="grow" />
          <Counts entry={entry} />
        </header>
        <PartialBar key={entry.name} notes={entry.notes} />
        {entry.shown.map(card)}
        {entry.shown.length === 0 && <Nothing key={entry.name} entry={entry} />}
        {entry.noted.length > 0 && <h2 class="also">Also noted</h2>}
        {entry.noted.map(card)}
        {entry.muted.length > 0 && <h2 class="also">{count(entry.muted.length, "diagnosis", "diagnoses")} muted</h2>}
        {entry.muted.map(card)}
        <div class="rest">
          <Checks kind="clear" title={`${count(entry.clear.length, "check")} clear`} outcomes={entry.clear} />
          <Checks kind="none" title={`${integer(entry.notChecked.length)} not checked`} outcomes={entry.notChecked} />
          <Checks kind="error" title={`${integer(entry.failed.length)} failed`} outcomes={entry.failed} />
        </div>
      </main>
    </div>
  );
}

/** A job without a diagnosis still has curves to look at. */
function Nothing({ entry }: { readonly entry: Entry }) {
  const losses = entry.job ? curvesOf(entry.job) : [];
  return (
    <section class="nothing" aria-label="Nothing found">
      <p>
        <Glyph kind={entry.standing} /> {nothingFound(entry)}
        {entry.noted.length > 0 && `; ${count(entry.noted.length, "note")} below`}.
      </p>
      {losses.length > 0 && (
        <figure>
          <SeriesChart exhibit={{ kind: "series", run_tags: losses, marks: [] }} severity="info" entry={entry} />
        </figure>
      )}
    </section>
  );
}

interface RailProps {
  readonly entries: readonly Entry[];
  readonly current: Entry;
  readonly hasCards: boolean;
}

function Rail({ entries, current, hasCards }: RailProps) {
  const selected = useRef<HTMLLIElement>(null);
  useEffect(() => selected.current?.scrollIntoView({ block: "nearest" }), [current.name]);
  return (
    <nav class="rail" aria-label="Jobs">
      <div class="rail-head">
        <RouteLink route={OVERVIEW}>All jobs</RouteLink>
        <span>{integer(entries.length)}</span>
      </div>
      <ul>
        {entries.map((entry) => (
          <li key={entry.name} ref={entry === current ? selected : null} aria-current={entry === current ? "page" : undefined}>
            <RouteLink route={jobRoute(entry.name)}>
              <Glyph kind={entry.standing} named />
              <span>{entry.name}</span>
            </RouteLink>
          </li>
        ))}
      </ul>
      <p class="keys">
        <kbd>J</kbd> <kbd>K</kbd> next, previous job
        {hasCards && (
          <>
            <br />
            <kbd>j</kbd> <kbd>k</kbd> next, previous finding
            <br />
            <kbd>Enter</kbd> open, close
          </>
        )}
        <br />
        <kbd>Esc</kbd> back
      </p>
    </nav>
  );
}

const MOST_RUNS = 4;

/** Keras, steps 0 to 4,800 in 1 h 12 min, runs `train` and `validation`. */
function Facts({ job }: { readonly job: Job }) {
  const { first_step: first, last_step: last } = job;
  const steps = first === null || last === null ? null : stepRange(first, last);
  const words = [writerName(job.writer), steps && `${steps} in ${duration(job.duration_s)}`, job.finished ? null : "still running"].filter(
    Boolean,
  );
  const runs = job.runs.map((run) => runWithin(run, job.name));
  return (
    <p>
      {words.join(", ")}
      {runs.length > 0 && (words.length > 0 ? ", " : "") + (runs.length === 1 ? "run " : "runs ")}
      {runs.slice(0, MOST_RUNS).map((run, i) => (
        <span key={run}>
          {i > 0 && (i === runs.length - 1 ? " and " : ", ")}
          <code>{run}</code>
        </span>
      ))}
      {runs.length > MOST_RUNS && ` and ${integer(runs.length - MOST_RUNS)} more`}
      {job.captures.length > 0 && `, ${count(job.captures.length, "capture")}`}
    </p>
  );
}

function Checks({
  kind,
  title,
  outcomes,
}: {
  readonly kind: "clear" | "none" | "error";
  readonly title: string;
  readonly outcomes: readonly Outcome[];
}) {
  if (outcomes.length === 0) return null;
  return (
    <details class="checks">
      <summary>
        <Glyph kind={kind} />
        {title}
        <Chevron />
      </summary>
      {kind === "clear" ? (
        <p>{list(outcomes.map((outcome) => outcome.rule))}</p>
      ) : (
        <dl>
          {outcomes.map((outcome) => (
            <div key={outcome.rule}>
              <dt>{outcome.rule}</dt>
              <dd>{outcome.reason}</dd>
            </div>
          ))}
        </dl>
      )}
    </details>
  );
}
