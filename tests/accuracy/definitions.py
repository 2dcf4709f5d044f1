"""What a label means, measured on what a run has written: the truth of a run comes from its curves, not from what was done to it.

Each definition takes the `Curves` of a run and gives the step where it begins, or None. In them L is the training loss, V the
validation loss, "start" the median of the first 5% of the points, "end" that of the last 10%, "smoothed" a rolling median over
5% of the points.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from tests.accuracy.log import matches

Array = np.ndarray
Onset = int | tuple[int, int]


@dataclass(frozen=True)
class Points:
    """The points of a tag in the order in which they were written, or the histograms as rows (left, right, count)."""

    tag: str
    steps: Array
    wall_times: Array
    values: Array
    buckets: Sequence[Array] = ()

    def __len__(self) -> int:
        return len(self.steps)

    def where(self, kept: Array) -> Points:
        return Points(self.tag, self.steps[kept], self.wall_times[kept], self.values[kept])


class Curves:
    """All tags of a run by role. `written` are pairs of sub-run and points, `tags` those of `Log`."""

    def __init__(self, written: Sequence[tuple[str, Points]], tags: dict[str, str], chance: float) -> None:
        self.by_role = {role: [p for run, p in written if matches(name, run, p.tag)] for role, name in tags.items()}
        self.everything = [p for _, p in written]
        self.chance = chance

    def __getitem__(self, role: str) -> list[Points]:
        return self.by_role.get(role, [])

    def one(self, role: str, least: int = 1) -> Points | None:
        """The finite points of the role's only tag, in the order of steps; None where there are fewer than `least`."""
        if not self[role]:
            return None
        points = self[role][0].where(np.isfinite(self[role][0].values))
        points = points.where(np.argsort(points.steps, kind="stable"))
        return points if len(points) >= least else None

    @property
    def broken(self) -> bool:
        return nan_loss(self) is not None


def start(values: Array) -> float:
    return float(np.median(values[: max(3, len(values) // 20)]))


def end(values: Array) -> float:
    return float(np.median(values[-max(3, len(values) // 10) :]))


def smoothed(values: Array, share: float = 0.05, least: int = 3) -> Array:
    half = max(least, round(share * len(values))) // 2
    windows = np.lib.stride_tricks.sliding_window_view(np.pad(values, half, mode="edge"), 2 * half + 1)
    return np.median(windows, axis=1)


def nan_loss(curves: Curves) -> Onset | None:
    """A training or validation loss that is no number."""
    bad = [p.steps[~np.isfinite(p.values)] for p in (*curves["loss"], *curves["val_loss"])]
    return min((int(steps[0]) for steps in bad if len(steps)), default=None)


def loss_divergence(curves: Curves) -> Onset | None:
    """L ends at 2 × its start, or at 3 × its best with 30% of the progress lost, the best before 90% of the run."""
    loss = curves.one("loss", 10)
    if loss is None or curves.broken:
        return None
    level = smoothed(loss.values)
    best_at = int(level.argmin())
    first, best, last = start(loss.values), float(level.min()), end(loss.values)
    lost = last >= 3 * best and last - best >= 0.3 * (first - best)
    if not (last >= 2 * first or lost) or best_at >= 0.9 * len(loss):
        return None
    risen = np.flatnonzero(level[best_at:] >= min(last, 2 * best))
    return int(loss.steps[best_at]), int(loss.steps[best_at + (risen[0] if len(risen) else 0)])


def loss_spike(curves: Curves, progress: float = 0.3) -> Onset | None:
    """One to six values ≥ 1.5 × the median of 15 points, ≥ 12 MAD and ≥ 30% of the progress above it, and soon back."""
    loss = curves.one("loss", 30)
    if loss is None or curves.broken:
        return None
    values = loss.values
    level = smoothed(values, 0, 15)
    above = values - level
    mad = float(np.median(np.abs(above - np.median(above))))
    fallen = start(values) - float(smoothed(values).min())
    high = np.flatnonzero((values >= 1.5 * level) & (above >= 12 * mad) & (above >= progress * fallen) & (above > 0))
    high = high[high >= 3]
    groups = np.split(high, np.flatnonzero(np.diff(high) > 3) + 1) if len(high) else []
    within = max(12, round(0.08 * len(values)))
    back = [g for g in groups if (values[g[-1] + 1 : g[-1] + 1 + within] <= level[max(0, g[0] - 3)] + 0.5 * above[g].max()).any()]
    return int(loss.steps[back[0][0]]) if 1 <= len(back) <= 6 else None


def loss_not_decreasing(curves: Curves) -> Onset | None:
    """The loss smoothed over a sixth of the run never gets 7% below its start, and does not blow up."""
    loss = curves.one("loss", 8)
    if loss is None or curves.broken:
        return None
    first = start(loss.values)
    stays = smoothed(loss.values, 1 / 6).min() > 0.93 * first and end(loss.values) < 2 * first
    return int(loss.steps[0]) if stays and first > 0 else None


def overfitting(curves: Curves, rise: float = 1.15) -> Onset | None:
    """V is lowest before 80% of the run and ends ≥ 15% and > 0.05 above it, while L falls to 90% of what it was there."""
    loss, val = curves.one("loss", 5), curves.one("val_loss", 5)
    if loss is None or val is None or curves.broken:
        return None
    at = int(val.values.argmin())
    best, last = float(val.values[at]), float(np.median(val.values[-3:]))
    early = share_of_run(val, at) < 0.8
    level = smoothed(loss.values) if len(loss) > 2 * len(val) else loss.values
    then = float(np.interp(val.steps[at], loss.steps, level))
    fell = level[-1] <= 0.9 * then or level[-1] < 0.05
    return int(val.steps[at]) if early and last >= rise * best and last - best > 0.05 and fell else None


def overtraining(curves: Curves, latest: float = 0.5) -> Onset | None:
    """≥ 15 evaluations, and the first V within 1% of the best comes before half of the run."""
    val = curves.one("val_loss", 15)
    if val is None or curves.broken or val.values.min() <= 1e-3:
        return None
    at = int(np.flatnonzero(val.values <= 1.01 * val.values.min())[0])
    improved = val.values.min() <= 0.95 * val.values[0]
    return int(val.steps[at]) if improved and share_of_run(val, at) < latest else None


def oscillating_loss(curves: Curves) -> Onset | None:
    """After a third of the run block means of L move by ≥ 6% with ≥ 1/3 reversals, V too, with little net progress."""
    loss, val = curves.one("loss", 15), curves.one("val_loss", 8)
    if loss is None or curves.broken:
        return None
    count = min(30, len(loss))
    means = np.array([part.mean() for part in np.array_split(loss.values, count)])
    tail = means[len(means) // 3 :]
    third = max(1, len(tail) // 3)
    net = abs(tail[:third].mean() - tail[-third:].mean()) / max(tail[:third].mean(), 1e-12)
    matters = tail.mean() > 0.12 * means[0] if means[0] > 0 else False
    wild = zigzags(tail, 1 / 3) and (val is None or zigzags(val.values[len(val) // 3 :], 0.3))
    return int(loss.steps[len(loss) // 3]) if net < 0.4 and matters and wild else None


def zigzags(values: Array, share: float) -> bool:
    if len(values) < 5 or values.min() <= 0:
        return False
    moves = np.diff(values)
    turns = np.mean(np.sign(moves[1:]) != np.sign(moves[:-1]))
    return bool(np.median(np.abs(moves) / values[:-1]) >= 0.06 and turns >= share)


def exploding_gradient(curves: Curves) -> Onset | None:
    """A gradient norm that is no number, > 1000, or ≥ 20 × its early median and > 10; the same of a histogram's edges."""
    onsets = []
    for p in (*curves["grad_norm"], *curves["layer_norm"]):
        early = float(np.nanmedian(np.where(np.isfinite(p.values), p.values, np.nan)[: max(3, len(p) // 5)]))
        bad = ~np.isfinite(p.values) | (p.values > 1000) | ((p.values >= 20 * early) & (p.values > 10))
        onsets += [int(p.steps[bad][0])] if bad.any() else []
    for p in curves["gradient"]:
        edges = np.array([np.abs(b[b[:, 2] > 0, :2]).max() for b in p.buckets])
        bad = (edges >= 20 * edges[0]) & (edges > 10)
        onsets += [int(p.steps[bad][0])] if bad.any() else []
    return min(onsets, default=None)


def vanishing_gradient(curves: Curves) -> Onset | None:
    """From a quarter of the run on one layer's gradient is < 1e-3 of the largest layer's, and < 1e-4."""
    levels = [np.array([mean_abs(b) for b in p.buckets]) for p in curves["gradient"]] or [p.values for p in curves["layer_norm"]]
    if len(levels) < 2:
        return None
    table = np.array([level[: min(map(len, levels))] for level in levels])
    late = table[:, table.shape[1] // 4 :]
    gone = (late.min(axis=0) < 1e-3 * late.max(axis=0)) & (late.min(axis=0) < 1e-4)
    steps = (curves["gradient"] or curves["layer_norm"])[0].steps
    return (int(steps[0]), int(steps[table.shape[1] // 4])) if gone.mean() > 0.9 else None


def dead_relu(curves: Curves) -> Onset | None:
    """≥ 90% of the values of a layer behind ReLUs are zero in the second half of the run."""
    return _shares(curves["relu"], zeros, 0.9)


def saturated_activation(curves: Curves) -> Onset | None:
    """≥ 50% of the values of a bounded activation lie at its bounds in the second half of the run."""
    of_tanh = _shares(curves["tanh"], lambda b: beyond(b, -0.99, 0.99), 0.5)
    of_sigmoid = _shares(curves["sigmoid"], lambda b: beyond(b, 0.02, 0.98), 0.5)
    return min((onset for onset in (of_tanh, of_sigmoid) if onset is not None), default=None)


def _shares(layers: Sequence[Points], share: Callable[[Array], float], least: float) -> int | None:
    onsets = []
    for p in layers:
        high = np.array([share(b) for b in p.buckets]) >= least
        if len(high) >= 2 and high[len(high) // 2 :].all():
            low = np.flatnonzero(~high)
            onsets.append(int(p.steps[low[-1] + 1 if len(low) else 0]))
    return min(onsets, default=None)


def poor_initialization(curves: Curves) -> Onset | None:
    """A kernel is constant at the first step, or its spread is < 0.06 or > 5 × n^-1/4 (n weights)."""
    for p in curves["weight"]:
        buckets = p.buckets[0]
        n = float(buckets[:, 2].sum())
        if (buckets[:, 2] > 0).sum() == 1 or not 0.06 * n**-0.25 <= deviation(buckets) <= 5 * n**-0.25:
            return int(p.steps[0])
    return None


def weights_not_updating(curves: Curves) -> Onset | None:
    """A kernel's histogram is the same from some step before 40% of the run to the end."""
    onsets = []
    for p in curves["weight"]:
        same = [len(b) == len(p.buckets[-1]) and bool(np.array_equal(b, p.buckets[-1])) for b in p.buckets]
        changed = np.flatnonzero(~np.array(same))
        first = changed[-1] + 1 if len(changed) else 0
        if len(p) >= 4 and share_of_run(p, int(first)) <= 0.4:
            onsets.append(int(p.steps[first]))
    return min(onsets, default=None)


def lr_schedule(curves: Curves) -> Onset | None:
    """The learning rate is zero, ≤ 1% of its peak before 60% of the run and for good, still rises at the end, or jumps 8 ×."""
    rate = curves.one("lr", 5)
    if rate is None:
        return None
    values, peak = rate.values, float(rate.values.max())
    if peak <= 0:
        return int(rate.steps[0])
    alive = np.flatnonzero(values > 0.01 * peak)
    if len(values) > alive[-1] + 1 and share_of_run(rate, int(alive[-1])) < 0.6:
        return int(rate.steps[alive[-1] + 1])
    if share_of_run(rate, int(np.flatnonzero(values >= (1 - 1e-6) * peak)[0])) > 0.93 and peak > 3 * values[0]:
        return int(rate.steps[0]), int(rate.steps[-1])
    jumps = np.flatnonzero((values[1:] > 8 * values[:-1]) & (values[1:] > 8 * np.median(values[: len(values) // 10 + 1]))) + 1
    mid = [int(rate.steps[i]) for i in jumps if 0.1 < share_of_run(rate, int(i)) < 0.95]
    return mid[0] if mid else None


def val_suspicious(curves: Curves) -> Onset | None:
    """V ≤ 0.42 × L, accuracy ≥ training's + 0.15, or V equal to L to 6 digits, at most evaluations after the first 20%."""
    pairs = []
    for train, val in (("loss", "val_loss"), ("accuracy", "val_accuracy")):
        a, b = curves.one(train, 5), curves.one(val, 5)
        if a is None or b is None:
            pairs.append((np.array([]), np.array([])))
            continue
        means = means_until(a, b.steps)
        late = len(b) // 5
        pairs.append((means[late:], b.values[late:]))
    (loss, val_loss), (accuracy, val_accuracy) = pairs
    if curves.broken or not len(loss):
        return None
    better = np.mean((val_loss <= 0.42 * loss) & (loss > 1e-3)) > 0.5
    higher = bool(len(accuracy)) and np.mean(val_accuracy >= accuracy + 0.15) > 0.5
    a, b = curves.one("loss"), curves.one("val_loss")
    shared = np.intersect1d(a.steps, b.steps)
    same = len(shared) >= 5 and np.allclose(np.interp(shared, a.steps, a.values), np.interp(shared, b.steps, b.values), rtol=1e-6, atol=0)
    return (int(b.steps[0]), int(b.steps[len(b) // 2])) if better or higher or same else None


def class_collapse(curves: Curves) -> Onset | None:
    """Validation accuracy stays at one value < 0.97 in ≥ 80% of the evaluations, or within 0.05 of chance from the first on."""
    val = curves.one("val_accuracy", 5)
    if val is None:
        return None
    values, counts = np.unique(val.values, return_counts=True)
    usual = float(values[counts.argmax()])
    stuck = counts.max() >= 0.8 * len(val) and usual < 0.97
    at_chance = curves.chance > 0 and bool((np.abs(val.values - curves.chance) <= 0.05).all())
    if at_chance:
        return int(val.steps[0])
    return int(val.steps[np.flatnonzero(val.values == usual)[0]]) if stuck else None


def throughput_degradation(curves: Curves, slower: float = 1.8) -> Onset | None:
    """Throughput in the last quarter ≤ 1/1.8 of the first quarter's, by what is logged, else by wall times."""
    speeds = [(p.steps, p.values) for p in curves["throughput"]] + [(p.steps, 1 / p.values) for p in curves["step_time"]]
    for p in [] if speeds else curves["loss"]:
        gaps = np.diff(p.wall_times)
        blocks = np.array_split(gaps, 40)
        if len(gaps) >= 80:
            speeds.append((p.steps[1 :: max(1, len(gaps) // 40)][:40], np.array([1 / max(b.mean(), 1e-9) for b in blocks])))
    for steps, speed in speeds:
        if len(speed) < 12:
            continue
        kept = speed[len(speed) // 20 :]
        quarter = len(kept) // 4
        before, after = float(np.median(kept[:quarter])), float(np.median(kept[-quarter:]))
        if after <= before / slower:
            level = smoothed(speed)
            slow = min(len(steps) - 1, np.flatnonzero(level > before / slower)[-1] + 1)
            return int(steps[0]), int(steps[slow])
    return None


def memory_growth(curves: Curves) -> Onset | None:
    """Memory ends > 1.15 × what it was at 20% of the run, and a quarter of that rise came in the last 40%."""
    for p in curves["memory"]:
        if len(p) < 10:
            continue
        level = smoothed(p.values)
        early, late, last = level[len(level) // 5], level[len(level) * 3 // 5], level[-1]
        if last > 1.15 * early and last - late >= 0.25 * (last - early):
            return int(p.steps[0]), int(p.steps[len(p) // 2])
    return None


def restart_artefact(curves: Curves) -> Onset | None:
    """The steps of one tag go backwards in the order of writing."""
    for p in curves.everything:
        back = np.flatnonzero(np.diff(p.steps) < 0)
        if len(back):
            return int(p.steps[back[0] + 1]), int(p.steps[back[0]])
    return None


def share_of_run(points: Points, index: int) -> float:
    first, last = float(points.steps[0]), float(points.steps[-1])
    return (float(points.steps[min(index, len(points) - 1)]) - first) / (last - first) if last > first else 0.0


def means_until(points: Points, steps: Array) -> Array:
    """The mean of the points after the previous step and up to each of `steps`."""
    edges = np.searchsorted(points.steps, steps, side="right")
    before = np.concatenate([[0], edges[:-1]])
    before = np.where(edges > before, before, np.maximum(0, edges - 1))
    return np.array([points.values[a:b].mean() if b > a else points.values[0] for a, b in zip(before, edges, strict=True)])


def middles(buckets: Array) -> Array:
    return buckets[:, :2].mean(axis=1)


def mean_abs(buckets: Array) -> float:
    return float(np.average(np.abs(middles(buckets)), weights=buckets[:, 2]))


def deviation(buckets: Array) -> float:
    centre = np.average(middles(buckets), weights=buckets[:, 2])
    return float(np.sqrt(np.average((middles(buckets) - centre) ** 2, weights=buckets[:, 2])))


def zeros(buckets: Array) -> float:
    """The share of the bucket that holds zero."""
    at_zero = (buckets[:, 0] <= 0) & (buckets[:, 1] >= 0)
    return float(buckets[at_zero, 2].sum() / buckets[:, 2].sum())


def beyond(buckets: Array, low: float, high: float) -> float:
    """The share of the buckets that reach a bound: the last one of tensorboardX is [0.92, 1.02], those of tf.summary are 1/30 wide."""
    at_bound = (buckets[:, 1] >= high) | (buckets[:, 0] <= low) | ((low > 0) & (buckets[:, 1] <= low))
    return float(buckets[at_bound, 2].sum() / buckets[:, 2].sum())


MEASURED: dict[str, Callable[[Curves], Onset | None]] = {
    definition.__name__: definition
    for definition in (
        nan_loss,
        loss_divergence,
        loss_spike,
        loss_not_decreasing,
        overfitting,
        overtraining,
        oscillating_loss,
        exploding_gradient,
        vanishing_gradient,
        dead_relu,
        saturated_activation,
        poor_initialization,
        weights_not_updating,
        lr_schedule,
        val_suspicious,
        class_collapse,
        throughput_degradation,
        memory_growth,
        restart_artefact,
    )
}
LABELS = (*MEASURED, "underfitting")  # which only a comparison with a better model of the same task shows

# What is milder than the label: nobody put it there, and to report it is neither right nor wrong.
DEBATABLE: dict[str, Callable[[Curves], Onset | None]] = {
    "loss_spike": lambda curves: loss_spike(curves, progress=0.05),
    "overfitting": lambda curves: overfitting(curves, rise=1.08),
    "overtraining": lambda curves: overtraining(curves, latest=0.6),
    "throughput_degradation": lambda curves: throughput_degradation(curves, slower=1.3),
}

_NOTHING_LEARNED = {"underfitting", "loss_not_decreasing", "class_collapse", "overtraining"}
_UNSTABLE = {"loss_spike", "oscillating_loss", "loss_divergence", "overfitting", "exploding_gradient"} | _NOTHING_LEARNED
# What may follow from a label, so that it is no error to report it too.
FOLLOWS: dict[str, set[str]] = {
    "nan_loss": {"class_collapse", "loss_divergence", "loss_not_decreasing", "exploding_gradient", "loss_spike"},
    "loss_divergence": _UNSTABLE | {"lr_schedule"},
    "loss_spike": {"oscillating_loss", "exploding_gradient", "lr_schedule"},
    "loss_not_decreasing": {"underfitting", "class_collapse", "weights_not_updating", "oscillating_loss"},
    "underfitting": {"loss_not_decreasing", "class_collapse", "overtraining"},
    "overfitting": {"overtraining"},
    "overtraining": {"overfitting"},
    "oscillating_loss": _UNSTABLE,
    "exploding_gradient": _UNSTABLE | {"lr_schedule", "nan_loss"},
    "vanishing_gradient": _NOTHING_LEARNED | {"weights_not_updating"},
    "dead_relu": _UNSTABLE | {"weights_not_updating", "vanishing_gradient", "poor_initialization"},
    "saturated_activation": _UNSTABLE | {"poor_initialization"},
    "poor_initialization": _UNSTABLE | {"vanishing_gradient", "weights_not_updating", "dead_relu", "saturated_activation"},
    "weights_not_updating": {"underfitting"},
    "lr_schedule": _NOTHING_LEARNED,
    "val_suspicious": {"underfitting", "overtraining"},
    "class_collapse": _UNSTABLE | {"dead_relu", "weights_not_updating"},
    "restart_artefact": {"loss_spike", "oscillating_loss", "overtraining", "overfitting", "throughput_degradation"},
}
