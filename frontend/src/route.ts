// The tab's own deep link: #advisor&p.advisor.job=…&p.advisor.diagnosis=…. Pure.

export interface Route {
  readonly view: "overview" | "job" | "coverage";
  readonly job: string | null;
  /** The open diagnosis; null opens the worst one, `NONE` none. */
  readonly diagnosis: string | null;
}

export const NONE = "none";
export const OVERVIEW: Route = { view: "overview", job: null, diagnosis: null };
export const COVERAGE: Route = { view: "coverage", job: null, diagnosis: null };
const PREFIX = "p.advisor.";

export function jobRoute(job: string, diagnosis: string | null = null): Route {
  return { view: "job", job, diagnosis };
}

/** Whether both show the same page, whatever is open on it. */
export function isSamePage(a: Route, b: Route): boolean {
  return a.view === b.view && a.job === b.job;
}

/** The route in a hash of TensorBoard; null where the hash belongs to another tab. */
export function parseRoute(hash: string): Route | null {
  const [tab, ...tokens] = hash.replace(/^#/, "").split("&");
  if (tab !== "advisor") return null;
  const keys = new Map<string, string>();
  for (const token of tokens) {
    const at = token.indexOf("=");
    if (token.startsWith(PREFIX) && at > 0) keys.set(token.slice(PREFIX.length, at), decoded(token.slice(at + 1)));
  }
  const job = keys.get("job");
  if (job !== undefined) return jobRoute(job, keys.get("diagnosis") ?? null);
  return keys.get("view") === "coverage" ? COVERAGE : OVERVIEW;
}

/** TensorBoard drops a token of its hash that has more than one "=": every value is encoded. */
export function formatRoute(route: Route): string {
  const tokens = ["#advisor"];
  if (route.view === "coverage") tokens.push(`${PREFIX}view=coverage`);
  if (route.job !== null) tokens.push(`${PREFIX}job=${encodeURIComponent(route.job)}`);
  if (route.diagnosis !== null) tokens.push(`${PREFIX}diagnosis=${encodeURIComponent(route.diagnosis)}`);
  return tokens.join("&");
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
