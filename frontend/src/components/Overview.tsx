import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { aligned, count, duration, integer, number } from "../format";
import { useKeys } from "../keys";
import {
  bestIsValidation,
  bestsOf,
  type Entry,
  expressionOf,
  findingOf,
  matching,
  type Report,
  STANDINGS,
  type Standing,
  tallyOf,
} from "../report";
import { COVERAGE, jobRoute } from "../route";
import { type Sight, useSight } from "../sight";
import { Counts } from "./Counts";
import { Glyph } from "./Glyph";
import { RouteLink } from "./RouteLink";
import { Sparkline } from "./Sparkline";
import { AllClear, NoMatch, PartialBar, partlyRead } from "./States";

const EVERY = /(?:)/;

interface Props {
  readonly report: Report;
  readonly entries: readonly Entry[];
  readonly reading: boolean;
  readonly selected: string | null;
  readonly onSelect: (name: string) => void;
}

/** Every job in a line, worst first. */
export function Overview({ report, entries, reading, selected, onSelect }: Props) {
  const [pattern, setPattern] = useState("");
  const [expression, setExpression] = useState(EVERY);
  const [standing, setStanding] = useState<Standing | null>(null);
  const filter = useRef<HTMLInputElement>(null);
  const table = useRef<HTMLTableElement>(null);
  const visible = matching(entries, expression, standing);
  const current = visible.find((entry) => entry.name === selected) ?? visible[0];
  const at = current ? visible.indexOf(current) : -1;
  const sight = useSight(table, visible.length);
  const linkOf = (row: number): HTMLElement | null => table.current?.querySelector<HTMLElement>(`tr[data-row="${row}"] a.row-link`) ?? null;
  // The row that gets the focus as soon as it is drawn.
  const wanted = useRef<number | null>(null);
  const focusRow = (row: number): void => {
    wanted.current = Math.min(visible.length - 1, Math.max(0, row));
    const link = linkOf(wanted.current);
    if (link) link.focus();
    else window.scrollTo({ top: (table.current?.offsetTop ?? 0) + wanted.current * sight.height - window.innerHeight / 2 });
  };
  const move = (by: 1 | -1): void => {
    const focused = document.activeElement?.closest<HTMLElement>("tr[data-row]")?.dataset.row;
    focusRow(focused === undefined ? at : Number(focused) + by);
  };

  useKeys({
    j: () => move(1),
    k: () => move(-1),
    Enter: () => linkOf(at)?.click(),
    "/": () => filter.current?.focus(),
  });

  useEffect(() => {
    if (wanted.current === null) return;
    const link = linkOf(wanted.current);
    if (!link) return;
    wanted.current = null;
    link.focus();
  }, [sight.first, sight.end]);

  // Back from a job: to the row it came from.
  useEffect(() => {
    if (selected === null || at < 0) return;
    if (document.hasFocus() || linkOf(at) === null) focusRow(at);
    else linkOf(at)?.scrollIntoView({ block: "nearest" });
  }, []);

  // While a pattern is none yet, the list stays as the last one left it.
  const filterBy = (text: string): void => {
    setPattern(text);
    setExpression((last) => expressionOf(text) ?? last);
  };
  const clearFilter = (): void => {
    filterBy("");
    setStanding(null);
  };
  const isInvalid = expressionOf(pattern) === null;
  const bests = useMemo(() => bestsOf(entries), [entries]);

  return (
    <main>
      <h1 class="visually-hidden">Jobs</h1>
      <div class="toolbar">
        <label class="filter">
          <span class="visually-hidden">Filter jobs by a regular expression</span>
          <svg class="icon" viewBox="0 0 16 16" aria-hidden="true">
            <circle cx="7" cy="7" r="4.2" />
            <path d="m10.2 10.2 3.6 3.6" />
          </svg>
          <input
            ref={filter}
            value={pattern}
            placeholder="Filter jobs (regex)"
            spellcheck={false}
            aria-invalid={isInvalid}
            onInput={(event) => filterBy(event.currentTarget.value)}
            onKeyDown={(event) => {
              if (event.key !== "Escape") return;
              clearFilter();
              event.currentTarget.blur();
            }}
          />
          <kbd>/</kbd>
        </label>
        <StandingFilter entries={entries} chosen={standing} onChoose={setStanding} />
        <span class="invalid" role="status">
          {isInvalid && `“${pattern}” is not a valid regular expression`}
        </span>
      </div>
      <PartialBar notes={report.notes} lead={partlyRead(report)} />
      <Tally report={report} reading={reading} />
      {!reading && entries.every((entry) => entry.shown.length === 0) && <AllClear report={report} entries={entries} />}
      {visible.length === 0 && !reading && (pattern !== "" || standing !== null) ? (
        <NoMatch pattern={pattern || STANDINGS[standing ?? "clear"]} hidden={entries.length} onClear={clearFilter} />
      ) : (
        <Jobs table={table} entries={visible} sight={sight} bests={bests} current={current ?? null} onSelect={onSelect} />
      )}
    </main>
  );
}

function StandingFilter({
  entries,
  chosen,
  onChoose,
}: {
  readonly entries: readonly Entry[];
  readonly chosen: Standing | null;
  readonly onChoose: (standing: Standing | null) => void;
}) {
  const of = (standing: Standing): number => entries.filter((entry) => entry.standing === standing).length;
  return (
    <div class="segments" role="group" aria-label="Severity">
      <button type="button" aria-pressed={chosen === null} onClick={() => onChoose(null)}>
        All <b>{entries.length}</b>
      </button>
      {(["error", "warning", "unread", "info", "none", "clear"] as const)
        .filter((standing) => of(standing) > 0)
        .map((standing) => (
          <button
            key={standing}
            type="button"
            aria-pressed={chosen === standing}
            onClick={() => onChoose(chosen === standing ? null : standing)}
          >
            <Glyph kind={standing} />
            {STANDINGS[standing]} <b>{of(standing)}</b>
          </button>
        ))}
    </div>
  );
}

function Tally({ report, reading }: { readonly report: Report; readonly reading: boolean }) {
  const tally = tallyOf(report.outcomes);
  const runs = report.jobs.reduce((sum, job) => sum + job.runs.length, 0);
  if (reading) return null;
  return (
    <div class="tally-line">
      <span>
        {count(report.jobs.length, "job")}, {count(runs, "run")} in <code>{report.logdir}</code>
      </span>
      <RouteLink route={COVERAGE}>
        {count(tally.clear, "check")} clear, {integer(tally.notChecked)} not checked
        {tally.failed > 0 && `, ${integer(tally.failed)} failed`}
      </RouteLink>
    </div>
  );
}

interface JobsProps {
  readonly table: { current: HTMLTableElement | null };
  readonly entries: readonly Entry[];
  readonly sight: Sight;
  readonly bests: ReadonlySet<Entry>;
  readonly current: Entry | null;
  readonly onSelect: (name: string) => void;
}

function Jobs({ table, entries, sight, bests, current, onSelect }: JobsProps) {
  const values = aligned(entries.map((entry) => number(entry.job?.best?.value ?? null)));
  const lasts = aligned(entries.map((entry) => number(entry.job?.best?.last ?? null)));
  return (
    <table class="jobs" ref={table} aria-rowcount={entries.length + 1}>
      <thead>
        <tr>
          <th scope="col">Status</th>
          <th scope="col">Job</th>
          <th scope="col">Main finding</th>
          <th scope="col" class="legend">
            Loss <span class="key" />
            training <span class="key validation" />
            validation
          </th>
          <th scope="col" class="right">
            Best
          </th>
          <th scope="col" class="right">
            at step
          </th>
          <th scope="col" class="right">
            Last
          </th>
          <th scope="col" class="right">
            Duration
          </th>
          <th scope="col">Findings</th>
        </tr>
      </thead>
      <tbody>
        <Gap rows={sight.first} height={sight.height} />
        {entries.map(
          (entry, i) =>
            i >= sight.first &&
            i < sight.end && (
              <tr
                key={entry.name}
                data-row={i}
                aria-rowindex={i + 2}
                class={`${entry === current ? "selected" : ""} ${entry.shown.length === 0 ? "quiet" : ""}`}
              >
                <td class={`status ${entry.standing}`}>
                  <Glyph kind={entry.standing} />
                  {STANDINGS[entry.standing]}
                </td>
                <td class="name">
                  <span onFocusCapture={() => onSelect(entry.name)}>
                    <RouteLink route={jobRoute(entry.name)} class="row-link">
                      {entry.name}
                    </RouteLink>
                  </span>
                  <span class="under">{findingOf(entry)}</span>
                </td>
                <td class="finding" title={findingOf(entry)}>
                  {findingOf(entry)}
                </td>
                <td>{entry.job && <Sparkline entry={entry} job={entry.job} />}</td>
                <td class={`right ${bests.has(entry) ? "lead" : ""}`} title={titleOfBest(entry, bests)}>
                  {values[i]}
                </td>
                <td class="right soft">{entry.job?.best && integer(entry.job.best.step)}</td>
                <td class={`right ${Number.isFinite(Number(entry.job?.best?.last ?? 0)) ? "" : "error"}`}>{lasts[i]}</td>
                <td class="right soft">{entry.job?.last_step != null && duration(entry.job.duration_s)}</td>
                <td class="findings">
                  <Counts entry={entry} />
                </td>
              </tr>
            ),
        )}
        <Gap rows={entries.length - sight.end} height={sight.height} />
      </tbody>
    </table>
  );
}

/** The room of rows that are not drawn. */
function Gap({ rows, height }: { readonly rows: number; readonly height: number }) {
  return rows > 0 ? <tr style={{ height: `${rows * height}px` }} /> : null;
}

function titleOfBest(entry: Entry, bests: ReadonlySet<Entry>): string {
  if (bests.has(entry)) return "lowest validation loss of the jobs in its folder";
  return entry.job && !bestIsValidation(entry.job) ? "training loss" : "validation loss";
}
