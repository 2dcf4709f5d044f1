import { describe, expect, it } from "vitest";
import {
  allowsLog,
  columnsOf,
  holesOf,
  labelsOf,
  lastOf,
  nearest,
  panelsOf,
  roleOf,
  runWithin,
  wantsLog,
  writtenAs,
} from "../src/chart/curves";
import { curve, job, points } from "./builders";

describe("columns", () => {
  const valuesOf = (curves: Parameters<typeof columnsOf>[0]) => columnsOf(curves).lines.map((line) => line.values);

  it("put curves with other steps on one axis, without gaps in either", () => {
    const curves = [curve({ points: points([0, 10, 20], [3, 2, 1]) }), curve({ points: points([10, 15], [5, 6]) })];
    expect(columnsOf(curves).steps).toEqual([0, 10, 15, 20]);
    expect(valuesOf(curves)).toEqual([
      [3, 2, undefined, 1],
      [undefined, 5, 6, undefined],
    ]);
  });

  it("leave a gap where a value is not finite", () =>
    expect(valuesOf([curve({ points: points([0, 1, 2], [3, NaN, 1]) })])).toEqual([[3, null, 1]]));

  it("keep a single marked point among many", () => {
    const steps = Array.from({ length: 1000 }, (_, i) => i);
    const { lines } = columnsOf([
      curve({
        points: points(
          steps,
          steps.map((step) => (step === 350 ? 229 : 1)),
        ),
      }),
    ]);
    expect(lines[0]?.values[350]).toBe(229);
  });

  it("draw a restart as a second line, so that none runs backwards", () => {
    const { steps, lines } = columnsOf([curve({ points: points([0, 1, 2, 3, 2, 3, 4], [9, 8, 7, 6, 5, 4, 3]) })]);
    expect(steps).toEqual([0, 1, 2, 3, 4]);
    expect(lines.map((line) => line.values)).toEqual([
      [9, 8, 7, 6, undefined],
      [undefined, undefined, 5, 4, 3],
    ]);
    expect(lines.map((line) => line.isLast)).toEqual([false, true]);
  });

  it("keep both values of a step that was logged twice", () => {
    const { steps, lines } = columnsOf([curve({ points: points([0, 1, 1, 2], [4, 3, 30, 2]) })]);
    expect(steps).toEqual([0, 1, 1, 2]);
    expect(lines[0]?.values).toEqual([4, 3, 30, 2]);
  });

  it("are empty for an empty series", () => expect(columnsOf([curve({ points: points([], []) })]).steps).toEqual([]));
});

describe("holes", () => {
  it("are stretches without a finite value", () =>
    expect(holesOf(points([0, 1, 2, 3, 4, 5], [1, NaN, Infinity, 2, 1, NaN]))).toEqual([
      { start: 1, end: 2, value: "NaN" },
      { start: 5, end: 5, value: "NaN" },
    ]));

  it("name the first value", () => expect(holesOf(points([0, 1], [1, -Infinity]))).toEqual([{ start: 1, end: 1, value: "-Inf" }]));

  it("do not exist in a finite series", () => expect(holesOf(points([0, 1], [1, 2]))).toEqual([]));
});

it("ends with the last value, also where it is not a number", () => {
  expect(lastOf(points([0, 1], [2, 1]))).toBe(1);
  expect(lastOf(points([0, 1], [2, NaN]))).toBe("NaN");
  expect(lastOf(points([], []))).toBeNull();
});

describe("names and panels", () => {
  const train = curve({ points: points([0], [1]), run: "exp/train", tag: "epoch_loss" });
  const validation = curve({ points: points([0], [1]), run: "exp/validation", tag: "epoch_loss", split: "validation" });
  const rate = curve({ points: points([0], [1]), run: "exp/train", tag: "epoch_learning_rate", role: "learning_rate", split: null });

  it("read the role from the job", () => {
    expect(roleOf(job("exp"), ["exp/validation", "epoch_loss"])).toEqual({ role: "loss", split: "validation" });
    expect(roleOf(job("exp"), ["exp/train", "other"])).toEqual({ role: null, split: null });
  });

  it("give what has another unit a strip of its own", () =>
    expect(panelsOf([train, rate, validation]).map((panel) => [panel.title, panel.curves.length])).toEqual([
      ["epoch_loss", 2],
      ["epoch_learning_rate", 1],
    ]));

  it("are the shortest that tell curves apart", () => {
    expect(labelsOf([train, validation], "exp")).toEqual(["training", "validation"]);
    expect(labelsOf([train, { ...train, tag: "batch_loss" }], "exp")).toEqual(["epoch_loss", "batch_loss"]);
    expect(labelsOf([train, { ...train, run: "exp/worker_1" }], "exp")).toEqual(["train", "worker_1"]);
  });

  it("are seen from the job", () => {
    expect(runWithin("exp/train", "exp")).toBe("train");
    expect(runWithin("exp", "exp")).toBe("exp");
    expect(runWithin("expander/train", "exp")).toBe("expander/train");
  });
});

it("writes bytes as bytes", () => {
  expect(writtenAs([curve({ points: points([], []), tag: "memory/rss_bytes" })])(2 ** 30)).toBe("1 GiB");
  expect(writtenAs([curve({ points: points([], []), tag: "loss" })])(0.5)).toBe("0.5");
});

it("finds the nearest logged step", () => {
  expect(nearest([0, 10, 20], 14)).toBe(1);
  expect(nearest([], 14)).toBe(-1);
});

describe("a logarithmic axis", () => {
  it("is chosen where the largest value hides the others", () =>
    expect(wantsLog([curve({ points: points([0, 1, 2], [1, 2, 1e6]) })])).toBe(true));
  it("is not for a loss as usual", () => expect(wantsLog([curve({ points: points([0, 1, 2], [2.3, 0.5, 0.1]) })])).toBe(false));
  it("is offered where it hides no more than zeros", () => {
    expect(allowsLog([curve({ points: points([0, 1, 2], [2, 0, NaN]) })])).toBe(true);
    expect(allowsLog([curve({ points: points([0, 1], [2, -900]) })])).toBe(false);
    expect(allowsLog([curve({ points: points([0, 1], [0, 0]) })])).toBe(false);
  });
  it("cannot show zero", () => expect(wantsLog([curve({ points: points([0, 1, 2], [0, 1, 1e6]) })])).toBe(false));
});
