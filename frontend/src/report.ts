// The report as the server sends it (tb_advisor/report.py), and what the tab derives from it. Pure.

import { count, integer, type Num } from "./format";

export type Severity = "info" | "warning" | "error";
export type Confidence = "low" | "medium" | "high";
/**
 * What a row says of its job: the worst of what is shown, "info" where something is only noted, "clear" where nothing is, "none" where
 * nothing could be checked, "unread" where that is because no run could be read.
 */
export type Standing = Severity | "clear" | "none" | "unread";
export type RunTag = readonly [run: string, tag: string];
export type Cell = Num | string | boolean | null | readonly (Num | string | boolean | null)[];

export interface Mark {
  readonly start: number;
  readonly end: number;
  readonly label: string;
}

export interface SeriesExhibit {
  readonly kind: "series";
  readonly run_tags: readonly RunTag[];
  readonly marks: readonly Mark[];
}

export interface StepPart {
  readonly name: string;
  readonly label: string;
  readonly ms: readonly number[];
}

export interface TraceExhibit {
  readonly kind: "trace";
  readonly capture: string;
  readonly tool: string;
  readonly host: string;
  readonly steps: readonly number[];
  readonly busy_ms: readonly number[];
  readonly wait_ms: readonly number[];
  readonly wait_label: string;
  readonly parts: readonly StepPart[];
}

export interface TimelineExhibit {
  readonly kind: "timeline";
  readonly title: string;
  readonly times_ms: readonly number[];
  readonly bytes: readonly number[];
  readonly capacity: number | null;
  readonly peak_ms: number;
  readonly peak_bytes: number;
  readonly peak_label: string;
}

export interface TableExhibit {
  readonly kind: "table";
  readonly title: string;
  readonly columns: readonly string[];
  readonly rows: readonly (readonly Cell[])[];
}

export interface HistogramExhibit {
  readonly kind: "histogram";
  readonly run: string;
  readonly tag: string;
}

export interface TextExhibit {
  readonly kind: "text";
  readonly lines: readonly string[];
}

export type Exhibit = SeriesExhibit | TraceExhibit | TimelineExhibit | TableExhibit | HistogramExhibit | TextExhibit;

export interface Fix {
  readonly id: string;
  readonly title: string;
  readonly why: string;
  readonly check: string;
  /** What it takes: one line, a retrain, a redesign. */
  readonly cost?: string;
  /** The values in the code that this run gave. */
  readonly from_run?: readonly { readonly name: string; readonly value: Num; readonly text: string }[];
  /** Framework → snippet, the best for this job first. */
  readonly code: Readonly<Record<string, string>>;
  readonly url: string | null;
}

export interface Link {
  readonly label: string;
  readonly tab: string;
  readonly href: string;
}

export interface Diagnosis {
  readonly summary: string;
  readonly severity: Severity;
  readonly confidence: Confidence;
  readonly onset_step: number | null;
  readonly last_step: number | null;
  readonly impact: { readonly kind: string; readonly text: string; readonly share: number | null } | null;
  readonly exhibits: readonly Exhibit[];
  readonly fixes: readonly Fix[];
  readonly links: readonly Link[];
  readonly folded_under: string | null;
  readonly story: string | null;
  readonly suppressed: string | null;
}

export interface Outcome {
  readonly rule: string;
  readonly job: string;
  readonly jobs?: readonly string[];
  readonly status: "found" | "clear" | "not_applicable" | "error";
  readonly reason: string | null;
  readonly diagnoses: readonly Diagnosis[];
}

export interface Best {
  readonly run: string;
  readonly tag: string;
  readonly step: number;
  readonly value: Num;
  readonly last: Num;
}

export interface Job {
  readonly name: string;
  readonly runs: readonly string[];
  readonly writer: string;
  readonly task: string;
  readonly finished: boolean;
  readonly first_step: number | null;
  readonly last_step: number | null;
  readonly duration_s: number;
  readonly tags: number;
  readonly points: number;
  readonly captures: readonly string[];
  readonly histogram_runs: readonly string[];
  readonly roles: Readonly<Record<string, readonly RunTag[]>>;
  readonly best: Best | null;
}

export interface Note {
  readonly job: string;
  readonly run: string;
  readonly text: string;
}

export interface Report {
  readonly schema_version: number;
  readonly logdir: string;
  readonly rules: readonly string[];
  readonly jobs: readonly Job[];
  readonly outcomes: readonly Outcome[];
  readonly notes: readonly Note[];
}

/** A diagnosis with its rule and a key that is stable while the report grows: the rule's id, and a number from the second on. */
export interface Finding {
  readonly key: string;
  readonly rule: string;
  readonly diagnosis: Diagnosis;
}

/** Everything the tab says about one job, or about a family of jobs (then `job` is null). */
export interface Entry {
  readonly name: string;
  readonly job: Job | null;
  readonly standing: Standing;
  /** What default views show, worst first. */
  readonly shown: readonly Finding[];
  /** Infos, low confidence, and what another diagnosis explains: counted, one step away. */
  readonly noted: readonly Finding[];
  readonly muted: readonly Finding[];
  readonly clear: readonly Outcome[];
  readonly notChecked: readonly Outcome[];
  readonly failed: readonly Outcome[];
  /** What could not be read of it. */
  readonly notes: readonly Note[];
}

const RANK: Readonly<Record<Standing, number>> = { error: 5, warning: 4, unread: 3, info: 2, none: 1, clear: 0 };
const CONFIDENCE: Readonly<Record<Confidence, number>> = { high: 2, medium: 1, low: 0 };
const byName = new Intl.Collator("en", { numeric: true }).compare;

export function isShown(diagnosis: Diagnosis): boolean {
  return (
    diagnosis.severity !== "info" && diagnosis.confidence !== "low" && diagnosis.folded_under === null && diagnosis.suppressed === null
  );
}

/** One entry a job, in the report's order, then the families that something was found in. */
export function entriesOf(report: Report): Entry[] {
  const outcomes = groupBy(report.outcomes, (outcome) => outcome.job);
  const notes = groupBy(report.notes, (note) => note.job);
  const entries = report.jobs.map((job) => entryOf(job.name, job, outcomes.get(job.name) ?? [], notes.get(job.name) ?? []));
  const jobNames = new Set(report.jobs.map((job) => job.name));
  for (const [name, its] of outcomes) {
    if (!jobNames.has(name) && its.some((outcome) => outcome.status === "found")) entries.push(entryOf(name, null, its, []));
  }
  return entries;
}

function entryOf(name: string, job: Job | null, outcomes: readonly Outcome[], notes: readonly Note[]): Entry {
  const findings = outcomes.flatMap((outcome) =>
    outcome.diagnoses.map((diagnosis, i) => ({
      key: i === 0 ? outcome.rule : `${outcome.rule}.${i + 1}`,
      rule: outcome.rule,
      diagnosis,
    })),
  );
  findings.sort((a, b) => weight(b.diagnosis) - weight(a.diagnosis));
  const shown = findings.filter((finding) => isShown(finding.diagnosis));
  const clear = outcomes.filter((outcome) => outcome.status === "clear");
  const rest = findings.filter((finding) => !isShown(finding.diagnosis));
  const noted = rest.filter((finding) => finding.diagnosis.suppressed === null);
  const unread = job !== null && isUnread(job, notes);
  return {
    name,
    job,
    standing: shown[0]?.diagnosis.severity ?? (noted.length > 0 ? "info" : clear.length > 0 ? "clear" : unread ? "unread" : "none"),
    shown,
    noted,
    muted: rest.filter((finding) => finding.diagnosis.suppressed !== null),
    clear,
    notChecked: outcomes.filter((outcome) => outcome.status === "not_applicable"),
    failed: outcomes.filter((outcome) => outcome.status === "error"),
    notes,
  };
}

/** Whether nothing came out of any run, and the notes say why. */
function isUnread(job: Job, notes: readonly Note[]): boolean {
  const isEmpty = job.points === 0 && job.captures.length === 0 && job.histogram_runs.length === 0;
  return isEmpty && job.runs.length > 0 && job.runs.every((run) => notes.some((note) => note.run === run));
}

function weight(diagnosis: Diagnosis): number {
  return 10 * RANK[diagnosis.severity] + CONFIDENCE[diagnosis.confidence] + (diagnosis.impact?.share ?? 0);
}

export const STANDINGS: Readonly<Record<Standing, string>> = {
  error: "Error",
  warning: "Warning",
  info: "Info",
  unread: "Not read",
  none: "Not checked",
  clear: "Clear",
};

export function countOf(entry: Entry, severity: "error" | "warning"): number {
  return entry.shown.filter((finding) => finding.diagnosis.severity === severity).length;
}

/** What is said where no diagnosis is shown: how much was looked at, and how little where most could not be. */
export function nothingFound({ clear, noted, muted, notChecked }: Entry): string {
  const below = [...noted, ...muted];
  const checks = clear.length + new Set(below.map((finding) => finding.rule)).size;
  if (checks === 0) return "Nothing could be checked";
  const found = below.length > 0 ? "No problem found" : "Nothing found";
  return `${found} in ${count(checks, "check")}${notChecked.length > checks ? `, ${integer(notChecked.length)} not checked` : ""}`;
}

/** The one line of a job in the overview. */
export function findingOf(entry: Entry): string {
  const [main, note] = [entry.shown[0], entry.noted[0]];
  if (main) return main.diagnosis.summary;
  if (note) return `No problem found, ${count(entry.noted.length, "note")}: ${note.diagnosis.summary}`;
  return entry.standing === "unread" ? (entry.notes[0]?.text ?? "") : nothingFound(entry);
}

/** Worst first; clear jobs by their best value, which answers "which one do I keep". */
export function worstFirst(entries: readonly Entry[]): Entry[] {
  const best = (entry: Entry): number => Number(entry.job?.best?.value ?? Infinity);
  return entries.toSorted(
    (a, b) =>
      RANK[b.standing] - RANK[a.standing] ||
      countOf(b, "error") - countOf(a, "error") ||
      countOf(b, "warning") - countOf(a, "warning") ||
      (a.standing === "clear" ? best(a) - best(b) || 0 : 0) ||
      byName(a.name, b.name),
  );
}

/** `entries` in the order of `names`; new ones go to the end, so that nothing that is shown moves. */
export function inOrder(entries: readonly Entry[], names: readonly string[]): Entry[] {
  const place = new Map(names.map((name, i) => [name, i]));
  const at = (entry: Entry): number => place.get(entry.name) ?? names.length;
  return entries.toSorted((a, b) => at(a) - at(b));
}

export interface Tally {
  readonly found: number;
  readonly clear: number;
  readonly notChecked: number;
  readonly failed: number;
}

/** How many checks ended how. One check is one rule on one job. */
export function tallyOf(outcomes: readonly Outcome[]): Tally {
  const of = (status: Outcome["status"]): number => outcomes.filter((outcome) => outcome.status === status).length;
  return { found: of("found"), clear: of("clear"), notChecked: of("not_applicable"), failed: of("error") };
}

export interface Gap {
  readonly reason: string;
  readonly rules: readonly string[];
  readonly checks: number;
  readonly jobs: number;
}

/** What was not checked, grouped by what is missing, most checks first. Reasons that differ in their numbers only are one. */
export function gapsOf(outcomes: readonly Outcome[]): Gap[] {
  const missing = outcomes.filter((outcome) => outcome.status === "not_applicable");
  const groups = groupBy(missing, (outcome) => (outcome.reason ?? "").replace(NUMBER, "#"));
  return [...groups.values()]
    .map((its) => ({
      reason: spanned(its.map((outcome) => outcome.reason ?? "")),
      rules: [...new Set(its.map((outcome) => outcome.rule))].sort(byName),
      checks: its.length,
      jobs: new Set(its.map((outcome) => outcome.job)).size,
    }))
    .sort((a, b) => b.checks - a.checks);
}

const NUMBER = /(?<![\w.])\d[\d,]*(?![\w.])/g;

/** One sentence for several that differ in whole numbers: "has 3 to 14 points". */
function spanned(sentences: readonly string[]): string {
  const numbers = sentences.map((sentence) => sentence.match(NUMBER) ?? []);
  let at = 0;
  return (sentences[0] ?? "").replace(NUMBER, () => {
    const here = numbers.map((its) => its[at] ?? "").toSorted((a, b) => Number(a.replaceAll(",", "")) - Number(b.replaceAll(",", "")));
    at++;
    const [least, most] = [here[0] ?? "", here.at(-1) ?? ""];
    return least === most ? least : `${least} to ${most}`;
  });
}

export interface RoleUse {
  readonly role: string;
  readonly tag: string;
  readonly jobs: number;
}

/** Which tags play which role, and in how many jobs. */
export function rolesOf(jobs: readonly Job[]): RoleUse[] {
  const uses = new Map<string, Map<string, Set<string>>>();
  for (const job of jobs) {
    for (const [role, members] of Object.entries(job.roles)) {
      const tags = uses.get(role) ?? new Map<string, Set<string>>();
      uses.set(role, tags);
      for (const [, tag] of members) tags.set(tag, (tags.get(tag) ?? new Set()).add(job.name));
    }
  }
  return [...uses].flatMap(([role, tags]) =>
    [...tags].map(([tag, names]) => ({ role, tag, jobs: names.size })).sort((a, b) => b.jobs - a.jobs),
  );
}

/** The jobs that `expression` and `standing` leave. */
export function matching(entries: readonly Entry[], expression: RegExp, standing: Standing | null): Entry[] {
  return entries.filter((entry) => (standing === null || entry.standing === standing) && expression.test(entry.name));
}

/** `pattern` as it filters jobs; null where it is no regular expression, as while one is typed. */
export function expressionOf(pattern: string): RegExp | null {
  try {
    return new RegExp(pattern, "i");
  } catch {
    return null;
  }
}

/**
 * The job with the lowest validation loss of each family: jobs in one folder that log it under one name. Only such losses can be
 * compared, and where it is doubtful no comparison is better than a wrong one: jobs at the top of the log directory may be anything,
 * unless they have one name with different endings. Jobs with an error do not count.
 */
export function bestsOf(entries: readonly Entry[]): ReadonlySet<Entry> {
  const value = (entry: Entry): number => Number(entry.job?.best?.value ?? NaN);
  const folderOf = ({ name }: Entry): string => name.slice(0, Math.max(0, name.lastIndexOf("/")));
  const stems = new Set(entries.filter((entry) => folderOf(entry) === "").map((entry) => /^[^\d_]*/.exec(entry.name)?.[0]));
  const topIsFamily = stems.size === 1 && !stems.has("");
  const candidates = entries.filter(
    (entry) =>
      entry.job !== null &&
      bestIsValidation(entry.job) &&
      entry.standing !== "error" &&
      Number.isFinite(value(entry)) &&
      (topIsFamily || folderOf(entry) !== ""),
  );
  const families = groupBy(candidates, (entry) => JSON.stringify([folderOf(entry), entry.job?.best?.tag]));
  const compared = [...families.values()].filter((family) => family.length > 1);
  return new Set(compared.map((family) => family.reduce((a, b) => (value(b) < value(a) ? b : a))));
}

/** Whether the best value is of the validation loss. */
export function bestIsValidation(job: Job): boolean {
  const { best } = job;
  return best !== null && (job.roles.validation_loss ?? []).some(([run, tag]) => run === best.run && tag === best.tag);
}

function groupBy<T>(items: readonly T[], keyOf: (item: T) => string): Map<string, T[]> {
  const groups = new Map<string, T[]>();
  for (const item of items) {
    const group = groups.get(keyOf(item));
    if (group) group.push(item);
    else groups.set(keyOf(item), [item]);
  }
  return groups;
}

/** Training and validation loss that belong together: of the best value's tag where both have it, since other tags may count other steps. */
export function lossesOf(job: Job): { readonly training: RunTag | null; readonly validation: RunTag | null } {
  const pick = (role: string): RunTag | null => {
    const members = job.roles[role] ?? [];
    return members.find(([, tag]) => tag === job.best?.tag) ?? members[0] ?? null;
  };
  return { training: pick("training_loss"), validation: pick("validation_loss") };
}

const MOST_CURVES = 4;

/** The losses to look at where nothing was found: the two that belong together, or all where none is the main one, as in a GAN. */
export function curvesOf(job: Job): RunTag[] {
  const { training_loss: training = [], validation_loss: validation = [] } = job.roles;
  if (job.best === null) return [...training, ...validation].slice(0, MOST_CURVES);
  return Object.values(lossesOf(job)).filter((member) => member !== null);
}
