// Everything that is known of the page around the tab: `window.parent` is touched here and nowhere else.
//
// The frame has TensorBoard's own origin, so that its history, theme and hash can be read; where they cannot (another origin in
// between), the tab works without them. `window.top` may be a notebook or a portal: never touched.

import { merged } from "./links";
import { formatRoute, parseRoute, type Route } from "./route";

const ROOT = new URL("../../../", document.baseURI);

/** `action` on the page around, or `fallback` where the browser does not let us. */
function withParent<T>(action: (host: Window & typeof globalThis) => T, fallback: T): T {
  try {
    return action(window.parent as Window & typeof globalThis);
  } catch {
    return fallback;
  }
}

// Theme

export function isDark(): boolean {
  const system = matchMedia("(prefers-color-scheme: dark)").matches;
  return withParent((host) => (host === window ? system : host.document.body.classList.contains("dark-mode")), system);
}

export function onThemeChange(changed: () => void): () => void {
  const system = matchMedia("(prefers-color-scheme: dark)");
  system.addEventListener("change", changed);
  const observer = new MutationObserver(changed);
  withParent((host) => observer.observe(host.document.body, { attributes: true, attributeFilter: ["class"] }), undefined);
  return () => {
    system.removeEventListener("change", changed);
    observer.disconnect();
  };
}

// The tab's own address

export function currentRoute(): Route | null {
  return withParent((host) => parseRoute(host.location.hash), null);
}

/** The address of `route`, to open in a new window or to copy. */
export function addressOf(route: Route): string {
  return ROOT.href + withParent((host) => host.location.search, "") + formatRoute(route);
}

/** Writes `route` into the address: as a new entry of the browser's history ("push"), or in place of the one that is there. */
export function showRoute(route: Route, how: "push" | "replace"): void {
  withParent((host) => {
    const hash = formatRoute(route);
    if (host.location.hash === hash || parseRoute(host.location.hash) === null) return;
    const oldURL = host.location.href;
    host.history[`${how}State`](host.history.state, "", hash);
    host.dispatchEvent(new host.HashChangeEvent("hashchange", { oldURL, newURL: host.location.href }));
  }, undefined);
}

/**
 * Calls `changed` for every new address of this tab, Back and Forward included, and says whether another tab was shown before.
 *
 * TensorBoard's router rewrites the address while it goes back, and then the browser reports no `hashchange`: `popstate` has to be
 * heard too, and what was shown before has to be remembered here.
 */
export function onRouteChange(changed: (route: Route, fromOtherTab: boolean) => void): () => void {
  return withParent(
    (host) => {
      let before = host.location.hash;
      const follow = (): void => {
        const fromOtherTab = parseRoute(before) === null;
        if (host.location.hash === before) return;
        before = host.location.hash;
        const route = parseRoute(before);
        if (route !== null) changed(route, fromOtherTab);
      };
      const events = ["hashchange", "popstate"];
      for (const name of events) host.addEventListener(name, follow);
      return () => {
        for (const name of events) host.removeEventListener(name, follow);
      };
    },
    () => undefined,
  );
}

// Links into other tabs

export function linkAddress(href: string): string {
  return ROOT.href + withParent((host) => merged(host.location.search, href), href);
}

/**
 * Opens a link in place, without loading TensorBoard again. False where the page has to be loaded: Profile does not switch its tool
 * otherwise, and a run that was unchecked in Time Series stays unchecked.
 */
export function openInPlace(href: string, tab: string): boolean {
  if (tab === "profile") return false;
  return withParent((host) => {
    if (tab === "timeseries" && host.document.querySelector("runs-data-table tb-data-table-content-row input:not(:checked)")) return false;
    const oldURL = host.location.href;
    const newURL = linkAddress(href);
    // A state of its own would keep TensorBoard's router from reading the query again.
    host.history.pushState(null, "", newURL);
    host.dispatchEvent(new host.PopStateEvent("popstate", { state: null }));
    host.dispatchEvent(new host.HashChangeEvent("hashchange", { oldURL, newURL }));
    return true;
  }, false);
}

// Messages and keys

/** Calls `reloaded` whenever the user (or the timer) reloads TensorBoard's data: the guest's half of tensorboard/components/experimental/plugin_lib. */
export function onDataReloaded(reloaded: () => void): void {
  const channel = new MessageChannel();
  channel.port1.onmessage = (event: MessageEvent<string>) => {
    const message = JSON.parse(event.data) as { type: string; id: number; isReply: boolean };
    if (message.isReply) return;
    if (message.type === "experimental.DataReloaded") reloaded();
    channel.port1.postMessage(JSON.stringify({ type: message.type, id: message.id, payload: null, error: null, isReply: true }));
  };
  window.parent.postMessage("experimental.bootstrap", "*", [channel.port2]);
}

/** Keys count while the tab is in front, also before anything in its frame has been clicked. */
export function onKey(pressed: (event: KeyboardEvent) => void): () => void {
  const fromHost = (event: KeyboardEvent): void => {
    if (currentRoute() !== null) pressed(event);
  };
  document.addEventListener("keydown", pressed);
  withParent((host) => host !== window && host.document.addEventListener("keydown", fromHost), false);
  return () => {
    document.removeEventListener("keydown", pressed);
    withParent((host) => host.document.removeEventListener("keydown", fromHost), undefined);
  };
}
