import { useLayoutEffect, useState } from "preact/hooks";

/** Tables with fewer rows are drawn whole, so that the browser can search and print them. */
const MANY = 120;
const BEYOND = 15;

export interface Sight {
  /** The rows to draw: from `first` up to, but not with, `end`. */
  readonly first: number;
  readonly end: number;
  /** Height of a row in CSS pixels: what is not drawn takes as much room. */
  readonly height: number;
}

/** The rows of `table` that are in sight, and a few beyond; all of them where there are not `MANY`. All rows are equally high. */
export function useSight(table: { readonly current: HTMLTableElement | null }, count: number): Sight {
  const [sight, setSight] = useState<Sight>({ first: 0, end: MANY, height: 36 });
  useLayoutEffect(() => {
    if (count <= MANY) return undefined;
    const look = (): void => {
      const body = table.current?.tBodies[0];
      const height = body?.querySelector<HTMLElement>("tr[data-row]")?.offsetHeight;
      if (!body || !height) return;
      const above = Math.floor(-body.getBoundingClientRect().top / height) - BEYOND;
      const first = Math.max(0, Math.min(above, count - 1));
      const end = Math.min(count, first + Math.ceil(window.innerHeight / height) + 2 * BEYOND);
      setSight((last) => (last.first === first && last.end === end && last.height === height ? last : { first, end, height }));
    };
    look();
    window.addEventListener("scroll", look, { passive: true });
    window.addEventListener("resize", look);
    return () => {
      window.removeEventListener("scroll", look);
      window.removeEventListener("resize", look);
    };
  }, [count]);
  return count <= MANY ? { first: 0, end: count, height: sight.height } : { ...sight, end: Math.min(sight.end, count) };
}
