import { useEffect, useMemo, useReducer, useRef, useState } from "preact/hooks";
import { fetchReport, fetchRules, type Reading, type RuleText } from "./api";
import { Coverage } from "./components/Coverage";
import { JobView } from "./components/JobView";
import { Overview } from "./components/Overview";
import { Empty, Failure, NoJob, ReadingBar } from "./components/States";
import { currentRoute, isDark, onDataReloaded, onRouteChange, onThemeChange, showRoute } from "./host";
import { type Entry, entriesOf, inOrder, type Report, worstFirst } from "./report";
import { isSamePage, OVERVIEW, type Route } from "./route";
import { Session } from "./session";

const POLL_READING_MS = 500;
const POLL_READY_MS = 10_000;
const POLL_AGAIN_MS = 2_000;

interface State {
  readonly reading: Reading | null;
  /** The newest report that came; it stays while a newer one is made. */
  readonly report: Report | null;
  readonly entries: readonly Entry[];
  readonly unreachable: string | null;
}

type Action = { readonly reading: Reading; readonly asked: boolean } | { readonly unreachable: string };

/** The order of the jobs is made once, when all are read, and again when the user asks for new data: nothing moves under the pointer. */
function next(state: State, action: Action): State {
  if ("unreachable" in action) return { ...state, unreachable: action.unreachable };
  const { reading, asked } = action;
  const report = reading.report ?? state.report;
  if (report === null) return { ...state, reading, unreachable: null };
  const sorts = reading.state === "ready" && (asked || state.reading?.state !== "ready");
  if (report === state.report && !sorts) return { ...state, reading, unreachable: null };
  const entries = entriesOf(report);
  const order = state.entries.map((entry) => entry.name);
  return { reading, report, entries: sorts ? worstFirst(entries) : inOrder(entries, order), unreachable: null };
}

export function App() {
  const [state, dispatch] = useReducer(next, { reading: null, report: null, entries: [], unreachable: null });
  const [route, setRoute] = useState<Route>(() => currentRoute() ?? OVERVIEW);
  const [dark, setDark] = useState(applyTheme);
  const [rules, setRules] = useState<ReadonlyMap<string, RuleText>>(new Map());
  const [selected, setSelected] = useState<string | null>(route.job);
  const shown = useRef(route);
  shown.current = route;
  const poll = usePolling(dispatch);

  useEffect(() => onThemeChange(() => setDark(applyTheme())), []);
  useEffect(() => {
    fetchRules().then(setRules, () => undefined);
  }, []);
  useEffect(
    () =>
      onRouteChange((found, fromOtherTab) => {
        // A link into another tab leaves our keys behind; TensorBoard then comes back to "#advisor" alone: the page that was open stays.
        if (fromOtherTab && isSamePage(found, OVERVIEW)) showRoute(shown.current, "replace");
        else show(found);
      }),
    [],
  );

  const show = (to: Route): void => {
    setRoute(to);
    if (to.job !== null) setSelected(to.job);
  };
  // Back leads from page to page; what is open on one is no page of its own.
  const go = (to: Route): void => {
    const how = isSamePage(to, shown.current) ? "replace" : "push";
    show(to);
    showRoute(to, how);
  };

  const session = useMemo(
    () => ({ dark, generation: state.reading?.generation ?? 0, hasProfileTab: state.reading?.profile_tab ?? false, rules, go }),
    [dark, state.reading?.generation, state.reading?.profile_tab, rules],
  );

  return (
    <Session.Provider value={session}>
      {state.unreachable !== null && (
        <header class="partial">
          TensorBoard does not answer ({state.unreachable}). {state.report && "What is below was read before."}
        </header>
      )}
      {state.reading?.state === "reading" && <ReadingBar progress={state.reading.progress} />}
      <View state={state} route={route} selected={selected} onSelect={setSelected} onRetry={() => poll(true)} go={go} />
    </Session.Provider>
  );
}

/** Sets the theme at once: charts that are redrawn for it read its colours. */
function applyTheme(): boolean {
  const dark = isDark();
  document.documentElement.classList.toggle("dark", dark);
  return dark;
}

interface ViewProps {
  readonly state: State;
  readonly route: Route;
  readonly selected: string | null;
  readonly onSelect: (name: string) => void;
  readonly onRetry: () => void;
  readonly go: (route: Route) => void;
}

function View({ state, route, selected, onSelect, onRetry, go }: ViewProps) {
  const { reading, report, entries } = state;
  if (reading?.state === "error") return <Failure message={reading.error ?? ""} onRetry={onRetry} />;
  if (reading === null || report === null) return null;
  const isReading = reading.state === "reading";
  if (entries.length === 0 && !isReading) return <Empty logdir={report.logdir} />;
  if (route.view === "coverage") return <Coverage report={report} go={go} />;
  const entry = entries.find((one) => one.name === route.job);
  if (entry) return <JobView entry={entry} entries={entries} open={route.diagnosis} go={go} />;
  if (route.job !== null && !isReading) return <NoJob name={route.job} go={go} />;
  return <Overview report={report} entries={entries} reading={isReading} selected={selected} onSelect={onSelect} />;
}

/** Asks for the report again and again while the tab is in sight, and at once when TensorBoard reloads its data. */
function usePolling(dispatch: (action: Action) => void): (asked: boolean) => void {
  const poll = useRef((_asked: boolean): void => undefined);
  useEffect(() => {
    let timer = 0;
    let turn = 0;
    let known = 0;
    const ask = async (asked: boolean): Promise<void> => {
      window.clearTimeout(timer);
      const mine = ++turn;
      let wait = POLL_AGAIN_MS;
      try {
        const reading = await fetchReport(known, asked);
        if (mine !== turn) return;
        known = reading.generation;
        dispatch({ reading, asked });
        wait = reading.state === "reading" ? POLL_READING_MS : POLL_READY_MS;
      } catch (error) {
        if (mine !== turn) return;
        dispatch({ unreachable: error instanceof Error ? error.message : String(error) });
      }
      timer = window.setTimeout(askIfSeen, wait);
    };
    // TensorBoard hides a tab by making its frame 0 pixels high; a resize follows when it is shown again.
    const askIfSeen = (): void => {
      if (window.innerHeight > 0) void ask(false);
    };
    const onResize = (): void => {
      if (timer !== 0 && window.innerHeight > 0 && hidden) void ask(false);
      hidden = window.innerHeight === 0;
    };
    let hidden = window.innerHeight === 0;
    poll.current = (asked) => void ask(asked);
    window.addEventListener("resize", onResize);
    onDataReloaded(() => void ask(true));
    void ask(false);
    return () => {
      window.clearTimeout(timer);
      window.removeEventListener("resize", onResize);
      turn++;
    };
  }, []);
  return (asked) => poll.current(asked);
}
