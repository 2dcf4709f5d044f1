import { useLayoutEffect, useRef } from "preact/hooks";
import { onKey } from "./host";

/** Calls what `actions` has for a key that was pressed alone, and outside of a text field. */
export function useKeys(actions: Readonly<Record<string, () => void>>): void {
  const latest = useRef(actions);
  latest.current = actions;
  // Before the page is painted, so that no key is lost between one page and the next.
  useLayoutEffect(
    () =>
      onKey((event) => {
        if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) return;
        const target = event.target as Element | null;
        if (target?.closest?.("input, textarea, select, [contenteditable]")) return;
        // What has the focus knows best what Enter means.
        if (event.key === "Enter" && target?.closest?.("a, button, summary, [tabindex]")) return;
        const action = latest.current[event.key];
        if (!action) return;
        event.preventDefault();
        action();
      }),
    [],
  );
}

/** Moves the focus by one among `elements`, from `start` where none of them has it. */
export function moveFocus(elements: readonly HTMLElement[], by: 1 | -1, start = -1): void {
  const at = elements.indexOf(document.activeElement as HTMLElement);
  const next = at < 0 ? start + by : at + by;
  elements[Math.min(elements.length - 1, Math.max(0, next))]?.focus();
}
