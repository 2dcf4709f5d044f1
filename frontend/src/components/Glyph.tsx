import { STANDINGS, type Standing } from "../report";

/** The sign of a standing: its shape says what its colour says. `named` where no word stands beside it. */
export function Glyph({ kind, named = false }: { readonly kind: Standing; readonly named?: boolean }) {
  const label = named ? { role: "img" as const, "aria-label": STANDINGS[kind] } : { "aria-hidden": true };
  return (
    <svg class={`glyph ${kind}`} viewBox="0 0 14 14" {...label}>
      {kind === "error" && <path d="M7 1.6 13 12.4H1z" />}
      {kind === "warning" && <rect x="2" y="2" width="10" height="10" rx="1" />}
      {kind === "info" && <circle cx="7" cy="7" r="4.5" class="ring" />}
      {kind === "clear" && <path d="M2.6 7.4 5.6 10.4 11.4 4" class="tick" />}
      {kind === "none" && <path d="M3 7h8" class="tick" />}
      {kind === "unread" && <path d="m3.5 3.5 7 7m0-7-7 7" class="tick" />}
    </svg>
  );
}

export function Chevron() {
  return (
    <svg class="chevron" viewBox="0 0 12 12" aria-hidden="true">
      <path d="m3 4.5 3 3 3-3" />
    </svg>
  );
}
