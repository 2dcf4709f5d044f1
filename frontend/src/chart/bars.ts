// Arithmetic of the step bars. Pure.

export function medianOf(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  const half = sorted.length / 2;
  const [low, high] = [sorted[Math.ceil(half) - 1] ?? 0, sorted[Math.floor(half)] ?? 0];
  return (low + high) / 2;
}

/** Four to six round ticks from 0 to at least `most`. */
export function ticksOf(most: number): number[] {
  if (!(most > 0) || !Number.isFinite(most)) return [0, 1];
  const power = 10 ** Math.floor(Math.log10(most / 5));
  const step = [1, 2, 2.5, 5, 10].map((factor) => factor * power).find((size) => most / size <= 5) ?? 10 * power;
  return Array.from({ length: Math.ceil(most / step - 1e-9) + 1 }, (_, i) => Number((i * step).toPrecision(12)));
}

/** The parts of one bar from 0 up, without those that are nothing in it. */
export function stackOf<T extends { readonly ms: readonly number[] }>(
  parts: readonly T[],
  bar: number,
): { readonly part: T; readonly from: number; readonly to: number }[] {
  let from = 0;
  return parts.flatMap((part) => {
    const to = from + (part.ms[bar] ?? 0);
    const its = to > from ? [{ part, from, to }] : [];
    from = to;
    return its;
  });
}

/** `ticksOf` in round numbers of the largest binary unit that `most` has one of. */
export function byteTicksOf(most: number): number[] {
  const unit = 1024 ** Math.max(0, Math.floor(Math.log(most) / Math.log(1024)));
  return ticksOf(most / unit).map((tick) => tick * unit);
}

/** The path of values that each hold until the next one. */
export function stairsOf(xs: readonly number[], ys: readonly number[]): string {
  return xs.map((x, i) => (i === 0 ? `M${x} ${ys[i]}` : `H${x}V${ys[i]}`)).join("");
}
