import { describe, expect, it } from "vitest";
import { byteTicksOf, medianOf, stackOf, stairsOf, ticksOf } from "../src/chart/bars";
import { sparklineOf } from "../src/chart/sparkline";
import { points } from "./builders";

describe("step bars", () => {
  it("have a median", () => {
    expect(medianOf([3, 1, 2])).toBe(2);
    expect(medianOf([4, 1, 2, 3])).toBe(2.5);
  });

  it.each([
    [193, [0, 50, 100, 150, 200]],
    [0.8, [0, 0.2, 0.4, 0.6, 0.8]],
    [0, [0, 1]],
  ])("reach up to %d in round ticks", (most, ticks) => expect(ticksOf(most)).toEqual(ticks));

  it("stand on each other, without parts that are nothing", () => {
    const [device, input, own] = [{ ms: [3, 1] }, { ms: [0, 2] }, { ms: [4, 5] }];
    expect(stackOf([device, input, own], 0)).toEqual([
      { part: device, from: 0, to: 3 },
      { part: own, from: 3, to: 7 },
    ]);
    expect(stackOf([device, input, own], 1).at(-1)).toEqual({ part: own, from: 3, to: 8 });
  });
});

describe("a timeline", () => {
  it("counts in round numbers of a binary unit", () => {
    expect(byteTicksOf(90 * 2 ** 20)).toEqual([0, 20, 40, 60, 80, 100].map((mib) => mib * 2 ** 20));
    expect(byteTicksOf(0)).toEqual([0, 1]);
  });

  it("holds each value until the next one", () => expect(stairsOf([0, 5, 9], [3, 1, 2])).toBe("M0 3H5V1H9V2"));
});

describe("a sparkline", () => {
  it("is not drawn without two steps", () => expect(sparklineOf(points([0], [1]), null, null)).toBeNull());

  it("marks the onset within its steps only", () => {
    const training = points([0, 100], [2, 1]);
    expect(sparklineOf(training, null, 50)?.onset).toBe(76);
    expect(sparklineOf(training, null, 500)?.onset).toBeNull();
  });

  it("writes what is not a number into its empty part", () =>
    expect(sparklineOf(points([0, 1, 2, 3], [2, 1, NaN, NaN]), null, null)?.hole?.value).toBe("NaN"));

  it("lifts its pen over a gap", () =>
    expect(sparklineOf(points([0, 1, 2], [2, NaN, 1]), null, null)?.training.match(/M/g)).toHaveLength(2));
});
