import { describe, expect, it } from "vitest";
import { bestOf, countOf, entriesOf, gapsOf, inOrder, isShown, lossesOf, matching, rolesOf, tallyOf, worstFirst } from "../src/report";
import { diagnosis, job, outcome, report, withBest } from "./builders";

describe("a diagnosis is shown", () => {
  it("as a warning or an error of medium or high confidence", () => {
    expect(isShown(diagnosis({ severity: "warning", confidence: "medium" }))).toBe(true);
    expect(isShown(diagnosis({ severity: "error", confidence: "high" }))).toBe(true);
  });

  it.each([{ severity: "info" }, { confidence: "low" }, { folded_under: "overfitting" }, { suppressed: "known" }] as const)(
    "but not with %o",
    (its) => expect(isShown(diagnosis(its))).toBe(false),
  );
});

describe("an entry", () => {
  const made = entriesOf(
    report(
      [job("a")],
      [
        outcome("overfitting", "a", { diagnoses: [diagnosis(), diagnosis({ severity: "error" })] }),
        outcome("overtraining", "a", { diagnoses: [diagnosis({ folded_under: "overfitting" })] }),
        outcome("loss-spikes", "a", { diagnoses: [diagnosis({ suppressed: "known" })] }),
        outcome("loss-divergence", "a"),
        outcome("memory-growth", "a", { status: "not_applicable", reason: "no memory" }),
        outcome("input-bound-steps", "a", { status: "error", reason: "ValueError" }),
      ],
    ),
  )[0];

  it("has the standing of the worst that is shown", () => expect(made?.standing).toBe("error"));
  it("puts the worst first, under keys that are stable", () =>
    expect(made?.shown.map((finding) => finding.key)).toEqual(["overfitting.2", "overfitting"]));
  it("keeps what another diagnosis explains one step away", () =>
    expect(made?.noted.map((finding) => finding.rule)).toEqual(["overtraining"]));
  it("keeps what was muted apart", () => expect(made?.muted.map((finding) => finding.rule)).toEqual(["loss-spikes"]));
  it("counts by severity", () => expect([made && countOf(made, "error"), made && countOf(made, "warning")]).toEqual([1, 1]));
  it("lists what was clear, not checked and failed", () =>
    expect([made?.clear, made?.notChecked, made?.failed].map((its) => its?.map((one) => one.rule))).toEqual([
      ["loss-divergence"],
      ["memory-growth"],
      ["input-bound-steps"],
    ]));

  it("stands for a family that something was found in", () => {
    const entries = entriesOf(
      report([job("sweep/a")], [outcome("unlike-seeds", "sweep", { jobs: ["sweep/a"], diagnoses: [diagnosis()] })]),
    );
    expect(entries.map((entry) => [entry.name, entry.standing])).toEqual([
      ["sweep/a", "none"],
      ["sweep", "warning"],
    ]);
  });
});

describe("the order of jobs", () => {
  const entries = entriesOf(
    report(
      [withBest("run10", 0.2), withBest("run9", 0.1), job("warns"), job("breaks"), job("noted")],
      [
        outcome("overfitting", "warns", { diagnoses: [diagnosis()] }),
        outcome("non-finite-loss", "breaks", { diagnoses: [diagnosis({ severity: "error" })] }),
        outcome("overfitting", "run9"),
        outcome("overfitting", "run10"),
        outcome("missing-validation", "noted", { diagnoses: [diagnosis({ severity: "info" })] }),
      ],
    ),
  );
  const names = (its: readonly { readonly name: string }[]) => its.map((entry) => entry.name);

  it("is worst first, and clear jobs by their best value", () =>
    expect(names(worstFirst(entries))).toEqual(["breaks", "warns", "noted", "run9", "run10"]));

  it("does not move what is shown while jobs come in", () =>
    expect(names(inOrder(entries, ["warns", "run9"]))).toEqual(["warns", "run9", "run10", "breaks", "noted"]));

  it("is filtered by a regular expression and by standing", () => {
    expect(names(matching(entries, "^RUN\\d", null))).toEqual(["run10", "run9"]);
    expect(names(matching(entries, "", "warning"))).toEqual(["warns"]);
  });

  it("takes an unfinished expression as plain text", () =>
    expect(names(matching(entriesOf(report([job("a(b"), job("c")])), "a(", null))).toEqual(["a(b"]));

  it("names the lowest validation loss", () => expect(bestOf(entries)?.name).toBe("run9"));

  it("compares no losses of different names", () => {
    const other = job("x", { roles: { validation_loss: [["x", "nll"]] }, best: { run: "x", tag: "nll", step: 1, value: 0, last: 0 } });
    expect(bestOf(entriesOf(report([withBest("a", 1), other])))).toBeNull();
  });
});

describe("coverage", () => {
  const outcomes = [
    outcome("overfitting", "a", { diagnoses: [diagnosis()] }),
    outcome("overfitting", "b"),
    outcome("loss-spikes", "a", { status: "not_applicable", reason: "loss has 3 finite points; 30 are needed" }),
    outcome("loss-spikes", "b", { status: "not_applicable", reason: "loss has 14 finite points; 30 are needed" }),
    outcome("memory-growth", "a", { status: "not_applicable", reason: "no memory" }),
    outcome("host-bound-steps", "a", { status: "error", reason: "ValueError" }),
  ];

  it("counts checks", () => expect(tallyOf(outcomes)).toEqual({ found: 1, clear: 1, notChecked: 3, failed: 1 }));

  it("groups what was not checked by what is missing, whatever the numbers", () =>
    expect(gapsOf(outcomes)).toEqual([
      { reason: "loss has 3 to 14 finite points; 30 are needed", rules: ["loss-spikes"], checks: 2, jobs: 2 },
      { reason: "no memory", rules: ["memory-growth"], checks: 1, jobs: 1 },
    ]));

  it("says which tags play which role in how many jobs", () =>
    expect(rolesOf([job("a"), job("b")])).toEqual([
      { role: "training_loss", tag: "epoch_loss", jobs: 2 },
      { role: "validation_loss", tag: "epoch_loss", jobs: 2 },
    ]));
});

it("draws training and validation loss that count the same steps", () => {
  const roles = {
    training_loss: [
      ["a", "batch_loss"],
      ["a", "epoch_loss"],
    ],
    validation_loss: [
      ["b", "evaluation_loss_vs_iterations"],
      ["b", "epoch_loss"],
    ],
  } as const;
  const best = { run: "b", tag: "epoch_loss", step: 1, value: 1, last: 1 };
  expect(lossesOf(job("a", { roles, best }))).toEqual({ training: ["a", "epoch_loss"], validation: ["b", "epoch_loss"] });
});
