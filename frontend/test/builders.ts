import type { Points } from "../src/api";
import type { Curve } from "../src/chart/curves";
import type { Diagnosis, Job, Note, Outcome, Report } from "../src/report";

export function diagnosis(its: Partial<Diagnosis> = {}): Diagnosis {
  return {
    summary: "Validation loss rises.",
    severity: "warning",
    confidence: "high",
    onset_step: null,
    last_step: null,
    impact: null,
    exhibits: [],
    fixes: [],
    links: [],
    folded_under: null,
    story: null,
    suppressed: null,
    ...its,
  };
}

export function outcome(rule: string, job: string, its: Partial<Outcome> = {}): Outcome {
  const found = (its.diagnoses?.length ?? 0) > 0;
  return { rule, job, status: found ? "found" : "clear", reason: null, diagnoses: [], ...its };
}

export function job(name: string, its: Partial<Job> = {}): Job {
  return {
    name,
    runs: [`${name}/train`, `${name}/validation`],
    writer: "keras",
    task: "supervised",
    finished: true,
    first_step: 0,
    last_step: 100,
    duration_s: 60,
    tags: 2,
    points: 200,
    captures: [],
    histogram_runs: [],
    roles: { training_loss: [[`${name}/train`, "epoch_loss"]], validation_loss: [[`${name}/validation`, "epoch_loss"]] },
    best: null,
    ...its,
  };
}

export function withBest(name: string, value: number): Job {
  return job(name, { best: { run: `${name}/validation`, tag: "epoch_loss", step: 10, value, last: value } });
}

export function report(jobs: readonly Job[], outcomes: readonly Outcome[] = [], notes: readonly Note[] = []): Report {
  return { schema_version: 1, logdir: "logs", rules: ["overfitting"], jobs, outcomes, notes };
}

/** Points of a series; NaN and infinite values become what the server sends for them. */
export function points(steps: readonly number[], values: readonly number[]): Points {
  const written = (value: number) => (Number.isNaN(value) ? "NaN" : value > 0 ? "Infinity" : "-Infinity");
  return {
    run: "a",
    tag: "loss",
    total: steps.length,
    steps,
    values: values.map((value) => (Number.isFinite(value) ? value : null)),
    wall_times: steps.map((step) => step),
    non_finite: steps.flatMap((step, i) => (Number.isFinite(values[i]) ? [] : [{ step, value: written(values[i] ?? NaN) }])),
    thinned: false,
  };
}

export function curve(its: Partial<Curve> & { readonly points: Points }): Curve {
  return { run: "a/train", tag: "loss", role: "loss", split: "training", ...its };
}
