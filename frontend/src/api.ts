// The plugin's routes (tb_advisor/plugin.py). Every address is relative to the frame's base, so that path prefixes and proxies need nothing.

import type { Heat } from "./chart/heat";
import type { Num } from "./format";
import type { Mark, Report } from "./report";

export interface Progress {
  readonly jobs: number;
  readonly jobs_total: number;
  readonly runs: number;
  readonly runs_total: number;
  readonly bytes: number;
  readonly bytes_total: number;
}

export interface Reading {
  readonly state: "reading" | "ready" | "error";
  readonly generation: number;
  /** Null where nothing can be read at all. */
  readonly progress: Progress | null;
  readonly error: string | null;
  readonly profile_tab: boolean;
  /** Null where nothing is new since the generation that was asked about. */
  readonly report: Report | null;
}

export interface Points {
  readonly run: string;
  readonly tag: string;
  readonly total: number;
  readonly steps: readonly number[];
  /** Null where the value is not finite. */
  readonly values: readonly (number | null)[];
  readonly wall_times: readonly number[];
  readonly non_finite: readonly { readonly step: number; readonly value: Num }[];
  readonly thinned: boolean;
}

export interface RuleText {
  readonly id: string;
  readonly title: string;
  readonly category: string;
  readonly documentation: Readonly<Record<string, string>>;
}

export type Range = readonly [from: number, to: number];

export function fetchReport(generation: number, refresh: boolean): Promise<Reading> {
  return get(`./report?generation=${generation}${refresh ? "&refresh=1" : ""}`);
}

export function fetchSeries(
  run: string,
  tag: string,
  options: { points: number; marks?: readonly Mark[]; range?: Range | null },
): Promise<Points> {
  const query = new URLSearchParams({ run, tag, points: String(options.points) });
  if (options.marks?.length) query.set("keep", options.marks.map((mark) => `${mark.start}-${mark.end}`).join(","));
  if (options.range) {
    query.set("from", String(options.range[0]));
    query.set("to", String(options.range[1]));
  }
  return get(`./series?${query}`);
}

export function fetchHistogram(run: string, tag: string): Promise<Heat> {
  return get(`./histogram?${new URLSearchParams({ run, tag })}`);
}

export async function fetchRules(): Promise<ReadonlyMap<string, RuleText>> {
  const { rules } = await get<{ rules: readonly RuleText[] }>("./rules");
  return new Map(rules.map((rule) => [rule.id, rule]));
}

async function get<T>(address: string): Promise<T> {
  const response = await fetch(address);
  if (!response.ok) throw new Error(`${response.status} ${await response.text()}`);
  return (await response.json()) as T;
}
