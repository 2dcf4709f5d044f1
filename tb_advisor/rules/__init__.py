"""The rules, one diagnosis a file. A new rule adds its module's name to `MODULES`, nothing else."""

from __future__ import annotations

from functools import cache
from importlib import import_module

from tb_advisor.rule import Rule

MODULES = (
    "chart_hides_points",
    "class_collapse",
    "dead_units",
    "discriminator_wins",
    "exploding_gradients",
    "frozen_weights",
    "generalization_gap",
    "generator_collapse",
    "gradient_clipping_saturation",
    "incomplete_capture",
    "input_bound_steps",
    "learning_rate_jump",
    "learning_rate_zero",
    "loss_divergence",
    "loss_floor_too_early",
    "loss_not_decreasing",
    "loss_spikes",
    "memory_growth",
    "memory_spike",
    "metric_loss_disagreement",
    "missing_learning_rate",
    "missing_validation",
    "missing_warmup",
    "no_return_improvement",
    "noisy_validation",
    "non_finite_loss",
    "non_finite_weights",
    "oscillating_loss",
    "overfitting",
    "overtraining",
    "policy_collapse",
    "poor_initialization",
    "restart_overlap",
    "reward_collapse",
    "saturated_activations",
    "sparse_logging",
    "stalled_run",
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
