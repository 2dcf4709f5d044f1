import { countOf, type Entry } from "../report";
import { Glyph } from "./Glyph";

/** Errors, warnings and what is only noted, each in a slot of its own, so that columns of glyphs line up. */
export function Counts({ entry }: { readonly entry: Entry }) {
  const slots = [
    ["error", countOf(entry, "error")],
    ["warning", countOf(entry, "warning")],
    ["info", entry.noted.length],
  ] as const;
  return (
    <span class="counts">
      {slots.map(([kind, n]) => (
        <span key={kind} class="slot">
          {n > 0 && (
            <>
              <Glyph kind={kind} named />
              {n}
            </>
          )}
        </span>
      ))}
    </span>
  );
}
