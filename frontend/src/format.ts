// Numbers as text, the way the report itself writes them (tb_advisor/message.py): one number looks the same everywhere.

/** A number of the report: JSON has no NaN and no infinity, so that these come as strings. */
export type Num = number | "NaN" | "Infinity" | "-Infinity";

const FIGURE_SPACE = "\u2007";
const PUNCTUATION_SPACE = "\u2008";
const thousands = new Intl.NumberFormat("en-US", { maximumFractionDigits: 0 });

/** `value` in three significant digits: 0.412, 1.18, 229, 12,300, 3.1e-7, NaN, +Inf. */
export function number(value: Num | null): string {
  if (value === null) return "";
  const n = Number(value);
  if (Number.isNaN(n)) return "NaN";
  if (!Number.isFinite(n)) return n > 0 ? "+Inf" : "-Inf";
  if (n === 0) return "0";
  const exponent = Math.floor(Math.log10(Math.abs(n)));
  const rounded = Number(n.toPrecision(3));
  if (exponent < -4 || exponent >= 7) return rounded.toExponential().replace("e+", "e");
  return rounded.toLocaleString("en-US", { maximumFractionDigits: Math.max(0, 2 - exponent) });
}

/** A step or a count: never rounded, with thousands separators. */
export function integer(value: number): string {
  return thousands.format(value);
}

/** "step 9", "steps 0 to 4,800". */
export function stepRange(first: number, last: number): string {
  return first === last ? `step ${integer(first)}` : `steps ${integer(first)} to ${integer(last)}`;
}

/** `n` things: 1 job, 14 jobs, 2,310 checks. */
export function count(n: number, noun: string, plural = `${noun}s`): string {
  return `${integer(n)} ${n === 1 ? noun : plural}`;
}

/** `share` (0–1) in percent: 43%. */
export function percent(share: number): string {
  return `${number(100 * share)}%`;
}

/** `seconds` as a person says it: 45 ms, 3.2 s, 54 min, 2 h 44 min, 3 d 4 h. */
export function duration(seconds: number): string {
  if (seconds < 1) return `${number(seconds * 1000)} ms`;
  if (seconds < 60) return `${number(seconds)} s`;
  const minutes = Math.round(seconds / 60);
  if (minutes < 60) return `${minutes} min`;
  const hours = Math.floor(minutes / 60);
  if (hours < 24) return `${hours} h ${String(minutes % 60).padStart(2, "0")} min`;
  return `${Math.floor(hours / 24)} d ${hours % 24} h`;
}

/** A number of bytes in binary units: 512 B, 1.5 KiB, 3.25 GiB. */
export function size(bytes: Num | null): string {
  let n = Number(bytes);
  if (bytes === null || !Number.isFinite(n)) return number(bytes);
  for (const unit of ["B", "KiB", "MiB", "GiB"]) {
    if (Math.abs(n) < 1024) return `${number(n)} ${unit}`;
    n /= 1024;
  }
  return `${number(n)} TiB`;
}

/** How far reading has come, in one unit: "31 of 48 MB". */
export function megabytes(done: number, total: number): string {
  const unit = total >= 1e9 ? { name: "GB", bytes: 1e9 } : total >= 1e6 ? { name: "MB", bytes: 1e6 } : { name: "kB", bytes: 1e3 };
  return `${number(done / unit.bytes)} of ${number(total / unit.bytes)} ${unit.name}`;
}

/** "a, b and c". */
export function list(items: readonly string[]): string {
  return items.length < 2 ? items.join("") : `${items.slice(0, -1).join(", ")} and ${items.at(-1)}`;
}

/** The texts of a right-aligned column, padded with spaces as wide as digits, so that their decimal points stand under each other. */
export function aligned(texts: readonly string[]): string[] {
  const decimals = (text: string): number => (/^-?[\d,]*\.\d+$/.test(text) ? text.length - text.indexOf(".") - 1 : 0);
  const most = Math.min(4, Math.max(0, ...texts.map(decimals)));
  return texts.map((text) => {
    if (!/^-?[\d,.]+$/.test(text)) return text;
    const missing = Math.max(0, most - decimals(text));
    const point = decimals(text) === 0 && most > 0 ? PUNCTUATION_SPACE : "";
    return text + point + FIGURE_SPACE.repeat(missing);
  });
}

/** "a" before the first letter raised: sentence case for words that come from enums. */
export function sentence(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}
