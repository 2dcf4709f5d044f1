"""The rules, one diagnosis a file. A new rule adds its module's name to `MODULES`, nothing else."""

from __future__ import annotations

from functools import cache
from importlib import import_module

from tb_advisor.rule import Rule

MODULES = (
    "chart_hides_points",
    "class_collapse",
    "communication_bound",
    "dead_units",
    "device_idle_gaps",
    "discriminator_wins",
    "double_precision",
    "eager_execution",
    "embedding_collapse",
    "exploding_gradients",
    "frozen_weights",
    "full_precision_compute",
    "function_retracing",
    "generalization_gap",
    "generator_collapse",
    "gradient_clipping_saturation",
    "heavy_layers",
    "host_bound_steps",
    "host_device_copies",
    "incomplete_capture",
    "input_bound_steps",
    "kernel_launch_bound",
    "learning_rate_jump",
    "learning_rate_zero",
    "loss_divergence",
    "loss_floor_too_early",
    "loss_not_decreasing",
    "loss_spikes",
    "low_device_utilization",
    "memory_growth",
    "memory_spike",
    "metric_loss_disagreement",
    "missing_learning_rate",
    "missing_validation",
    "missing_warmup",
    "missing_xla",
    "no_return_improvement",
    "noisy_validation",
    "non_finite_loss",
    "non_finite_operation",
    "non_finite_weights",
    "oscillating_loss",
    "overfitting",
    "overtraining",
    "policy_collapse",
    "poor_initialization",
    "prunable_weights",
    "quantization_outliers",
    "redundant_layers",
    "restart_overlap",
    "reward_collapse",
    "saturated_activations",
    "saturating_activations_in_deep_net",
    "slow_compilation",
    "slow_input_operation",
    "sparse_logging",
    "stalled_run",
    "step_time_outliers",
    "straggler_device",
    "suspicious_validation",
    "throughput_degradation",
    "underfitting",
    "unfinished_training",
    "update_ratio",
    "value_function_useless",
    "vanishing_gradients",
    "weight_growth",
)


@cache
def all_rules() -> tuple[Rule, ...]:
    """Every rule, sorted by id."""
    return tuple(getattr(import_module(f"{__name__}.{name}"), name) for name in MODULES)
