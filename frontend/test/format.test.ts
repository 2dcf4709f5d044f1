import { describe, expect, it } from "vitest";
import { aligned, count, duration, integer, list, megabytes, number, percent, size, stepRange } from "../src/format";

describe("number", () => {
  it.each([
    [0.4123, "0.412"],
    [1.18, "1.18"],
    [229.4, "229"],
    [12345, "12,300"],
    [3.14e-7, "3.14e-7"],
    [0.0001234, "0.000123"],
    [0.9996, "1"],
    [1.81e8, "1.81e8"],
    [-0.5, "-0.5"],
    [0, "0"],
    ["NaN", "NaN"],
    ["Infinity", "+Inf"],
    ["-Infinity", "-Inf"],
    [null, ""],
  ] as const)("%s is written %s", (value, text) => expect(number(value)).toBe(text));
});

it("never rounds a step", () => expect(integer(1234567)).toBe("1,234,567"));

it("writes steps whole", () => {
  expect(stepRange(0, 59)).toBe("steps 0 to 59");
  expect(stepRange(50000, 1234567)).toBe("steps 50,000 to 1,234,567");
  expect(stepRange(7, 7)).toBe("step 7");
});

it("counts one thing and many", () => {
  expect(count(1, "job")).toBe("1 job");
  expect(count(2310, "check")).toBe("2,310 checks");
  expect(count(2, "analysis", "analyses")).toBe("2 analyses");
});

it("writes shares in percent", () => expect(percent(0.4321)).toBe("43.2%"));

it.each([
  [0.045, "45 ms"],
  [3.21, "3.21 s"],
  [54 * 60, "54 min"],
  [9840, "2 h 44 min"],
  [3 * 86400 + 4 * 3600, "3 d 4 h"],
])("%d seconds are %s", (seconds, text) => expect(duration(seconds)).toBe(text));

it.each([
  [512, "512 B"],
  [1536, "1.5 KiB"],
  [2.19 * 2 ** 30, "2.19 GiB"],
  [2 ** 42, "4 TiB"],
  ["NaN", "NaN"],
  [null, ""],
] as const)("%s bytes are %s", (bytes, text) => expect(size(bytes)).toBe(text));

it("says how far reading is in one unit", () => {
  expect(megabytes(31e6, 48e6)).toBe("31 of 48 MB");
  expect(megabytes(0, 0)).toBe("0 of 0 kB");
});

it("joins a list as a sentence does", () => {
  expect(list(["train"])).toBe("train");
  expect(list(["a", "b", "c"])).toBe("a, b and c");
});

it("puts decimal points under each other", () => {
  expect(aligned(["0.553", "1.18", "12", "NaN", ""])).toEqual(["0.553", "1.18\u2007", "12\u2008\u2007\u2007\u2007", "NaN", ""]);
});
