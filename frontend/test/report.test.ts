import { describe, expect, it } from "vitest";
import {
  bestsOf,
  countOf,
  curvesOf,
  entriesOf,
  expressionOf,
  findingOf,
  gapsOf,
  inOrder,
  isShown,
  lossesOf,
  matching,
  nothingFound,
  rolesOf,
  tallyOf,
  worstFirst,
} from "../src/report";
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
    expect(names(matching(entries, /^RUN\d/i, null))).toEqual(["run10", "run9"]);
    expect(names(matching(entries, /(?:)/, "warning"))).toEqual(["warns"]);
  });

  it("is not filtered by what is no expression yet", () => {
    expect(expressionOf("RUN")?.test("run9")).toBe(true);
    expect(expressionOf("[(")).toBeNull();
  });
});

describe("the lowest validation loss", () => {
  const bests = (jobs: Parameters<typeof report>[0], outcomes: Parameters<typeof report>[1] = []) =>
    [...bestsOf(entriesOf(report(jobs, outcomes)))].map((entry) => entry.name);

  it("is named in every folder of several jobs", () =>
    expect(bests([withBest("a/x", 2), withBest("a/y", 1), withBest("b/x", 0.2), withBest("b/y", 0.1), withBest("c/x", 0)])).toEqual([
      "a/y",
      "b/y",
    ]));

  it("is named at the top where the jobs have one name with different endings", () => {
    expect(bests([withBest("run_10", 2), withBest("run_9", 1)])).toEqual(["run_9"]);
    expect(bests([withBest("mnist", 0.1), withBest("cifar", 1)])).toEqual([]);
    expect(bests([withBest("run_10", 2), withBest("run_9", 1), job("gan")])).toEqual([]);
    expect(bests([withBest("20260101", 2), withBest("20260102", 1)])).toEqual([]);
  });

  it("is none of a job with an error", () =>
    expect(
      bests(
        [withBest("a/x", 0), withBest("a/y", 1), withBest("a/z", 2)],
        [outcome("non-finite-loss", "a/x", { diagnoses: [diagnosis({ severity: "error" })] })],
      ),
    ).toEqual(["a/y"]));

  it("is none among losses of different names", () => {
    const other = job("a/x", { roles: { validation_loss: [["x", "nll"]] }, best: { run: "x", tag: "nll", step: 1, value: 0, last: 0 } });
    expect(bests([withBest("a/y", 1), other])).toEqual([]);
  });
});

describe("where no diagnosis is shown", () => {
  const entry = (outcomes: Parameters<typeof report>[1], its = {}, notes: Parameters<typeof report>[2] = []) => {
    const [made] = entriesOf(report([job("a", its)], outcomes, notes));
    if (!made) throw new Error("no entry");
    return made;
  };
  const missing = ["loss-spikes", "memory-growth"].map((rule) => outcome(rule, "a", { status: "not_applicable", reason: "" }));

  it("it is said how much was looked at", () => {
    const clear = entry([outcome("overfitting", "a"), outcome("loss-divergence", "a"), ...missing]);
    expect([clear.standing, nothingFound(clear)]).toEqual(["clear", "Nothing found in 2 checks"]);
  });

  it("and how much could not be, where that is most", () => {
    const clear = entry([outcome("overfitting", "a"), ...missing]);
    expect([clear.standing, findingOf(clear)]).toEqual(["clear", "Nothing found in 1 check, 2 not checked"]);
    expect(nothingFound(entry(missing))).toBe("Nothing could be checked");
  });

  it("what is only noted is not nothing", () => {
    const note = diagnosis({ severity: "info", summary: "Only loss is logged." });
    const noted = entry([outcome("overfitting", "a"), outcome("missing-validation", "a", { diagnoses: [note, note] })]);
    expect([noted.standing, nothingFound(noted)]).toEqual(["info", "No problem found in 2 checks"]);
    expect(findingOf(noted)).toBe("No problem found, 2 notes: Only loss is logged.");
  });

  it("because no run could be read, the reason stands there", () => {
    const notes = [{ job: "a", run: "a", text: "x is empty" }];
    const empty = { runs: ["a"], points: 0 };
    const unread = entry(missing, empty, notes);
    expect([unread.standing, findingOf(unread)]).toEqual(["unread", "x is empty"]);
    expect(entry(missing, empty).standing).toBe("none");
    expect(entry(missing, { ...empty, runs: ["a", "b"] }, notes).standing).toBe("none");
    expect(entry(missing, { ...empty, histogram_runs: ["a"] }, notes).standing).toBe("none");
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

it("shows all losses of a job that has no main one, up to four", () => {
  const losses = ["d", "g", "cycle", "identity", "gp"].map((tag) => ["a", tag] as const);
  expect(curvesOf(job("a", { roles: { training_loss: losses }, best: null })).map(([, tag]) => tag)).toEqual([
    "d",
    "g",
    "cycle",
    "identity",
  ]);
  expect(curvesOf(withBest("a", 1))).toEqual([
    ["a/train", "epoch_loss"],
    ["a/validation", "epoch_loss"],
  ]);
});
