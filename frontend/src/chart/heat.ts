// Arithmetic of the heat map of histograms over steps. Pure.

/** Histograms of one tag over steps, all in the same bins (tb_advisor/chart.py). */
export interface Heat {
  readonly run: string;
  readonly tag: string;
  /** How many histograms the log has; `steps` has those that are shown. */
  readonly total: number;
  readonly steps: readonly number[];
  readonly edges: readonly number[];
  /** For each step the share of the values in each bin. */
  readonly shares: readonly (readonly number[])[];
}

/** Three to six round numbers within `low` and `high`. */
export function roundWithin(low: number, high: number): number[] {
  const power = 10 ** Math.floor(Math.log10((high - low) / 4));
  const step = [1, 2, 2.5, 5, 10].map((factor) => factor * power).find((size) => (high - low) / size <= 5) ?? 10 * power;
  const first = Math.ceil(low / step - 1e-9);
  const last = Math.floor(high / step + 1e-9);
  return Array.from({ length: last - first + 1 }, (_, i) => Number(((first + i) * step).toPrecision(12)));
}

/** The value below which `share` of a histogram's values lie, taken as evenly spread within a bin. */
export function quantile(shares: readonly number[], edges: readonly number[], share: number): number {
  let below = 0;
  for (const [i, part] of shares.entries()) {
    const [left, right] = [edges[i] ?? 0, edges[i + 1] ?? 0];
    if (part > 0 && below + part >= share) return left + ((share - below) / part) * (right - left);
    below += part;
  }
  return edges.at(-1) ?? 0;
}

/** Where each step's column begins and ends, as shares of the width: half way to its neighbours. */
export function columnsOf(steps: readonly number[]): (readonly [number, number])[] {
  const [first, last] = [steps[0] ?? 0, steps.at(-1) ?? 0];
  const middles = steps.slice(1).map((step, i) => (step + (steps[i] ?? 0)) / 2);
  const edges = [first, ...middles, last].map((step) => (last > first ? (step - first) / (last - first) : 0));
  if (last <= first) return steps.map((_, i) => [i / steps.length, (i + 1) / steps.length] as const);
  return steps.map((_, i) => [edges[i] ?? 0, edges[i + 1] ?? 1] as const);
}
