import { useState } from "preact/hooks";
import type { Progress } from "../api";
import { count, integer, megabytes, number } from "../format";
import { useKeys } from "../keys";
import { bestsOf, type Entry, type Note, type Report, tallyOf } from "../report";
import { COVERAGE, OVERVIEW, type Route } from "../route";
import { CodeLine, CopyButton } from "./Copy";
import { Glyph } from "./Glyph";
import { RouteLink } from "./RouteLink";

/** Reading: how far, in the units that are being read. */
export function ReadingBar({ progress }: { readonly progress: Progress | null }) {
  const share = progress && progress.bytes_total > 0 ? Math.min(1, progress.bytes / progress.bytes_total) : 0;
  return (
    <header class="reading">
      <div
        class="progress"
        role="progressbar"
        aria-label="Reading the logs"
        aria-valuemin={0}
        aria-valuemax={100}
        aria-valuenow={Math.round(100 * share)}
      >
        <span style={{ width: `${100 * share}%` }} />
      </div>
      <p>
        {progress && progress.jobs_total > 0
          ? `Read ${integer(progress.jobs)} of ${count(progress.jobs_total, "job")}, ${integer(progress.runs)} of ${count(progress.runs_total, "run")}, ${megabytes(progress.bytes, progress.bytes_total)}`
          : "Looking for runs"}
      </p>
    </header>
  );
}

/** In how many runs something could not be read. */
export function partlyRead({ jobs, notes }: Report): string {
  const runs = new Set(notes.filter((note) => note.run !== "").map((note) => note.run)).size;
  const total = jobs.reduce((sum, job) => sum + job.runs.length, 0);
  return runs > 0 ? `${integer(runs)} of ${count(total, "run")} could not be read whole.` : "";
}

/** Partial: what could not be read, a line each. The report stands for the rest. */
export function PartialBar({ notes, lead }: { readonly notes: readonly Note[]; readonly lead?: string }) {
  const [open, setOpen] = useState(false);
  const first = notes[0];
  if (!first) return null;
  return (
    <div class="partial">
      <Glyph kind="warning" />
      <div>
        <p>
          {lead && <b>{lead} </b>}
          <NoteText note={first} />
        </p>
        {open &&
          notes.slice(1).map((note, i) => (
            <p key={i}>
              <NoteText note={note} />
            </p>
          ))}
      </div>
      {notes.length > 1 && (
        <button type="button" class="text-button" aria-expanded={open} onClick={() => setOpen(!open)}>
          {open ? "Show one" : `${integer(notes.length - 1)} more`}
        </button>
      )}
    </div>
  );
}

function NoteText({ note }: { readonly note: Note }) {
  return (
    <>
      {note.run !== "" && (
        <>
          <code>{note.run}</code>:{" "}
        </>
      )}
      {note.text}
    </>
  );
}

/** Empty: where the Advisor looked, and what writes there. */
export function Empty({ logdir }: { readonly logdir: string }) {
  return (
    <main class="blank">
      <h1>
        No runs in <code>{logdir}</code>
      </h1>
      <p>
        Looked for files named <code>*tfevents*</code> and for profiler captures, in it and in the folders below it. The tab fills by itself
        once a job writes there:
      </p>
      <CodeLine code={`keras.callbacks.TensorBoard(${JSON.stringify(logdir)})`} />
      <CodeLine code={`torch.utils.tensorboard.SummaryWriter(${JSON.stringify(logdir)})`} />
    </main>
  );
}

/** An address whose job is not there (any more). */
export function NoJob({ name, go }: { readonly name: string; readonly go: (route: Route) => void }) {
  useKeys({ Escape: () => go(OVERVIEW) });
  return (
    <main class="blank">
      <h1>There is no job {name}.</h1>
      <p>
        <RouteLink route={OVERVIEW}>All jobs</RouteLink>
      </p>
    </main>
  );
}

/** Error: the message as it came, one way on, and the text to pass on. */
export function Failure({ message, onRetry }: { readonly message: string; readonly onRetry: () => void }) {
  return (
    <main class="blank">
      <h1>
        <Glyph kind="error" named /> The report could not be made
      </h1>
      <p>{message}</p>
      <p>The other tabs are not affected.</p>
      <p class="actions">
        <button type="button" class="button" onClick={onRetry}>
          Try again
        </button>
        <CopyButton text={message}>Copy the full message</CopyButton>
      </p>
    </main>
  );
}

/** No job has a diagnosis that is shown: the tally, and the way to what could not be checked. */
export function AllClear({ report, entries }: { readonly report: Report; readonly entries: readonly Entry[] }) {
  const tally = tallyOf(report.outcomes);
  const noted = entries.reduce((sum, entry) => sum + entry.noted.length, 0);
  const [best, ...others] = bestsOf(entries);
  const [kind, found] =
    noted > 0
      ? (["info", "No problem found"] as const)
      : tally.clear > 0
        ? (["clear", "Nothing found"] as const)
        : (["none", "Nothing could be checked"] as const);
  return (
    <section class="blank all-clear" aria-label="Summary">
      <h2>
        <Glyph kind={kind} /> {found} in {count(report.jobs.length, "job")}
      </h2>
      <p>
        {tally.clear > 0 &&
          `${count(tally.clear, "check")} by ${count(report.rules.length, "rule")} ${tally.clear === 1 ? "is" : "are"} clear. `}
        {noted > 0 && `${count(noted, "note")}, below a warning. `}
        {best?.job?.best && others.length === 0 && (
          <>
            Best: {best.name} (validation loss {number(best.job.best.value)} at step {integer(best.job.best.step)}).{" "}
          </>
        )}
        {tally.notChecked > 0 && (
          <>
            {integer(tally.notChecked)} could not be made: <RouteLink route={COVERAGE}>see what to log</RouteLink>.
          </>
        )}
      </p>
    </section>
  );
}

export function NoMatch({ pattern, hidden, onClear }: { readonly pattern: string; readonly hidden: number; readonly onClear: () => void }) {
  return (
    <section class="blank" aria-label="No match">
      <h2>No job matches “{pattern}”</h2>
      <p>
        {count(hidden, "job")} {hidden === 1 ? "is" : "are"} hidden.{" "}
        <button type="button" class="text-button" onClick={onClear}>
          Clear the filter
        </button>
      </p>
    </section>
  );
}
