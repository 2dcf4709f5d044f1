"""What a run already does: advice that it follows is not given.

Each condition is a function of evidence by name, like a rule. True says that the run does what the fix advises; where the log does not
tell, the fix is shown.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from tb_advisor.evidence.device_time import DeviceTime
from tb_advisor.evidence.gradients import Gradients
from tb_advisor.evidence.histograms import LayerHistograms
from tb_advisor.evidence.hparams import Hyperparameter
from tb_advisor.evidence.layers import Model
from tb_advisor.evidence.losses import Loss
from tb_advisor.evidence.metrics import Metric
from tb_advisor.evidence.trace_steps import StepTimes
from tb_advisor.series import Series

_TOLERANCE = 0.01
_IMBALANCE_WORDS = frozenset("f1 auc auprc prc precision recall balanced macro kappa mcc".split())


def rate_decays(learning_rate: Series) -> bool:
    """Whether the learning rate ends at half of its peak or less."""
    return 0 < learning_rate.end <= 0.5 * float(learning_rate.values.max())


def rate_warms_up(learning_rate: Series) -> bool:
    """Whether the learning rate rises to its peak from half of it or less within the first 30% of its points, and has fallen or
    stayed at the end.
    """
    values = learning_rate.values
    peak = int(values.argmax())
    return bool(0 < peak <= 0.3 * len(values) and values[0] <= 0.5 * values[peak] and (np.diff(values[: peak + 1]) >= 0).all())


def rate_is_zero(learning_rate: Series) -> bool:
    """Whether the learning rate is zero in the whole run."""
    return not (learning_rate.values > 0).any()


def norm_sits_at_ceiling(gradient_norm: Series) -> bool:
    """Whether half of the logged gradient norms are within 0.5% of the largest: clipping works, and more of it is no help."""
    norms = gradient_norm.finite.values
    return len(norms) >= 20 and float(norms.max()) > 0 and float((norms >= 0.995 * norms.max()).mean()) >= 0.5


def ends_at_best(val_loss: Series) -> bool:
    """Whether the validation loss comes within 1% of its best in the last tenth of the evaluations only."""
    values = val_loss.finite.values
    if len(values) < 3 or values[-1] != val_loss.values[-1]:
        return False
    best = float(values.min())
    first = int(np.flatnonzero(values <= best + _TOLERANCE * abs(best))[0])
    return first >= 0.9 * (len(values) - 1)


def stops_at_nan(losses: tuple[Loss, ...]) -> bool:
    """Whether no loss has two points behind its first NaN or infinite one."""
    broken = [np.flatnonzero(~np.isfinite(loss.series.values)) for loss in losses]
    return all(not len(bad) or len(loss.series) - 1 - int(bad[0]) <= 1 for loss, bad in zip(losses, broken, strict=True))


def logs_learning_rate(learning_rates: tuple[Series, ...]) -> bool:
    """Whether a learning rate is logged."""
    return bool(learning_rates)


def logs_validation_loss(val_loss: Series) -> bool:
    """Whether a validation loss is logged."""
    return len(val_loss) > 0


def logs_gradient_norm(gradients: Gradients) -> bool:
    """Whether the gradient's norm over the whole model is logged."""
    return gradients.norm is not None


def logs_histograms(layer_histograms: tuple[LayerHistograms, ...]) -> bool:
    """Whether histograms of layers are logged."""
    return bool(layer_histograms)


def logs_metric(metrics: tuple[Metric, ...]) -> bool:
    """Whether a metric is logged."""
    return bool(metrics)


def logs_metric_of_rare_classes(metrics: tuple[Metric, ...]) -> bool:
    """Whether a metric is logged that sees rare classes: F1, the area under a curve, recall."""
    return any(metric.part & _IMBALANCE_WORDS for metric in metrics)


def prefetches(step_times: tuple[StepTimes, ...]) -> bool:
    """Whether every capture of a tf.data pipeline shows a prefetch that the program asks for."""
    pipelines = [times.pipeline for times in step_times if times.pipeline is not None]
    return bool(pipelines) and all(pipeline.has_prefetch and not pipeline.injected_prefetch for pipeline in pipelines)


def maps_in_parallel(step_times: tuple[StepTimes, ...]) -> bool:
    """Whether the captures show parallel maps and no other ones."""
    names = _stages(step_times)
    return bool(names & {"ParallelMap", "MapAndBatch"}) and "Map" not in names


def interleaves_in_parallel(step_times: tuple[StepTimes, ...]) -> bool:
    """Whether the captures show files that are read in parallel."""
    return "ParallelInterleave" in _stages(step_times)


def caches(step_times: tuple[StepTimes, ...]) -> bool:
    """Whether the captures show a cache."""
    return any("Cache" in name for name in _stages(step_times))


def copies_from_pinned_memory(device_time: tuple[DeviceTime, ...]) -> bool:
    """Whether the devices copy, and from pinned memory alone."""
    return any(device.copies for device in device_time) and all(device.pageable_share == 0 for device in device_time)


def computes_in_half_precision(device_time: tuple[DeviceTime, ...]) -> bool:
    """Whether most of the time in matrix multiplications and convolutions is in 16 bits or less."""
    total = sum(device.matrix_ms for device in device_time)
    return total > 0 and sum(device.half_ms for device in device_time) >= 0.5 * total


def multiplies_in_tf32(device_time: tuple[DeviceTime, ...]) -> bool:
    """Whether kernels of TF32 ran."""
    return any(device.tf32_ms > 0 for device in device_time)


def runs_fused_kernels(device_time: tuple[DeviceTime, ...]) -> bool:
    """Whether a compiler made the kernels of every device."""
    return bool(device_time) and all(device.fused for device in device_time)


def has_normalization(model: Model) -> bool:
    """Whether every third weighted layer of the model, or more, has a normalisation."""
    return _count(model, "normalization") * 3 >= _count(model, "dense") + _count(model, "conv") > 0


def has_dropout(model: Model) -> bool:
    """Whether the model has dropout."""
    return _count(model, "dropout") > 0


def _is_set(*meanings: str) -> Callable[..., bool]:
    def is_set(hyperparameters: tuple[Hyperparameter, ...]) -> bool:
        return any(h.meaning in meanings and (h.number or 0) > 0 for h in hyperparameters)

    return is_set


def _is_on(*meanings: str) -> Callable[..., bool]:
    def is_on(hyperparameters: tuple[Hyperparameter, ...]) -> bool:
        return any(h.meaning in meanings and h.value is True for h in hyperparameters)

    return is_on


def _accumulates(hyperparameters: tuple[Hyperparameter, ...]) -> bool:
    meanings = ("gradient accumulation steps", "accumulate grad batches")
    return any(h.meaning in meanings and (h.number or 0) > 1 for h in hyperparameters)


def _stages(step_times: tuple[StepTimes, ...]) -> frozenset[str]:
    return frozenset(stage.name for times in step_times if times.pipeline is not None for stage in times.pipeline.stages)


def _count(model: Model, role: str) -> int:
    return sum(layer.role == role for layer in model.layers)


_CLIPS = _is_set("max grad norm", "gradient clip val", "grad clip", "clip norm", "clipnorm", "global clipnorm")

FOLLOWED: Mapping[str, tuple[Callable[..., bool], ...]] = {
    "allow-tf32": (multiplies_in_tf32, _is_on("tf32")),
    "cache-dataset": (caches,),
    "clip-gradients": (norm_sits_at_ceiling, _CLIPS),
    "compile-step": (runs_fused_kernels, _is_on("torch compile")),
    "decay-learning-rate": (rate_decays,),
    "dropout": (has_dropout, _is_set("dropout")),
    "early-stopping": (ends_at_best,),
    "gradient-accumulation": (_accumulates,),
    "gradient-checkpointing": (_is_on("gradient checkpointing"),),
    "imbalance-metric": (logs_metric_of_rare_classes,),
    "label-smoothing": (_is_set("label smoothing", "label smoothing factor"),),
    "log-gradient-norm": (logs_gradient_norm,),
    "log-histograms": (logs_histograms,),
    "log-learning-rate": (logs_learning_rate,),
    "log-metric": (logs_metric,),
    "log-validation-loss": (logs_validation_loss,),
    "lower-learning-rate": (rate_is_zero,),
    "mixed-precision": (computes_in_half_precision, _is_on("bf16", "fp16")),
    "normalize-layers": (has_normalization,),
    "parallel-interleave": (interleaves_in_parallel,),
    "parallel-map": (maps_in_parallel,),
    "pin-memory": (copies_from_pinned_memory,),
    "prefetch": (prefetches,),
    "terminate-on-nan": (stops_at_nan,),
    "warm-up": (rate_warms_up, _is_set("warmup")),
    "weight-decay": (_is_set("weight decay"),),
}
