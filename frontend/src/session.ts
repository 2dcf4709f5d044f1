import { createContext } from "preact";
import type { RuleText } from "./api";
import type { Route } from "./route";

/** What every part of the tab may need to know. */
export interface SessionValue {
  readonly dark: boolean;
  /** Rises with every change of the report; curves are fetched again then. */
  readonly generation: number;
  readonly hasProfileTab: boolean;
  readonly rules: ReadonlyMap<string, RuleText>;
  readonly go: (route: Route) => void;
}

export const Session = createContext<SessionValue>({
  dark: false,
  generation: 0,
  hasProfileTab: false,
  rules: new Map(),
  go: () => undefined,
});
