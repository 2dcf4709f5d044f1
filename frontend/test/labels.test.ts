import { describe, expect, it } from "vitest";
import { holeLabelsOf, rowsOf, spread } from "../src/chart/labels";
import { curve, points } from "./builders";

describe("labels of marks", () => {
  it("that would cover each other stand in rows", () =>
    expect(
      rowsOf([
        { from: 0, to: 100 },
        { from: 0, to: 50 },
        { from: 60, to: 90 },
        { from: 120, to: 200 },
      ]),
    ).toEqual([0, 1, 1, 0]));
});

describe("labels of holes", () => {
  const training = curve({ points: points([0, 1, 2], [1, NaN, NaN]) });
  const validation = curve({ points: points([0, 1, 2], [1, 1, Infinity]), split: "validation" });

  it("say which curve", () =>
    expect(holeLabelsOf([training, validation], "a", []).map(({ text }) => text)).toEqual([
      "training NaN at steps 1 to 2",
      "validation +Inf at step 2",
    ]));

  it("leave out what a mark says already", () =>
    expect(
      holeLabelsOf([training, validation], "a", [{ start: 1, end: 2, label: "Training loss NaN from step 1" }]).map(({ text }) => text),
    ).toEqual(["", "validation +Inf at step 2"]));
});

describe("names at the ends of curves", () => {
  it("are pushed apart", () => expect(spread([10, 12, 40], 15, 100)).toEqual([10, 25, 40]));
  it("and back up from the lower edge", () => expect(spread([90, 95, 99], 15, 100)).toEqual([70, 85, 100]));
});
