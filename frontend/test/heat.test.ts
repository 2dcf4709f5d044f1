import { describe, expect, it } from "vitest";
import { columnsOf, quantile, roundWithin } from "../src/chart/heat";

describe("the heat map of histograms", () => {
  it("puts round ticks within the range", () => {
    expect(roundWithin(-0.31, 0.28)).toEqual([-0.2, 0, 0.2]);
    expect(roundWithin(0, 100)).toEqual([0, 20, 40, 60, 80, 100]);
    expect(roundWithin(1e-9, 9e-9).length).toBeGreaterThan(2);
  });

  it("finds quantiles within bins", () => {
    expect(quantile([0.25, 0.75], [0, 1, 2], 0.25)).toBe(1);
    expect(quantile([0, 1], [0, 1, 2], 0.5)).toBe(1.5);
    expect(quantile([0, 0], [0, 1, 2], 0.5)).toBe(2);
  });

  it("gives each step the room half way to its neighbours", () => {
    expect(columnsOf([0, 10, 40])).toEqual([
      [0, 0.125],
      [0.125, 0.625],
      [0.625, 1],
    ]);
    expect(columnsOf([5])).toEqual([[0, 1]]);
  });
});
