"""What rules look at: named, derived once from a job or from a family of jobs, memoised.

A piece of evidence is a function whose parameters are other evidence, down to `job` itself. Where the log does not hold
it, it raises `Missing` with what was looked for.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

from tb_advisor.evidence.roles import TagRole
from tb_advisor.logdir.jobs import Job


@cache
def providers() -> Mapping[str, Callable[..., Any]]:
    """All evidence by name."""
    from tb_advisor.evidence import (
        adversarial,
        capture_places,
        checkpoints,
        circumstances,
        debugger,
        device_time,
        embeddings,
        gradients,
        graph,
        histograms,
        host_time,
        hparams,
        learning_rate,
        losses,
        memory,
        metrics,
        model,
        restarts,
        returns,
        roles,
        run_state,
        speed,
        sweeps,
        trace_steps,
        trials,
        weights,
    )

    functions: tuple[Callable[..., Any], ...] = (
        adversarial.adversarial_losses,
        capture_places.capture_places,
        checkpoints.checkpoints,
        circumstances.circumstances,
        debugger.debugger_dump,
        device_time.device_time,
        embeddings.embeddings,
        gradients.gradient_norm,
        gradients.gradients,
        gradients.layer_gradients,
        graph.graph,
        histograms.activation_histograms,
        histograms.gradient_histograms,
        histograms.layer_histograms,
        histograms.weight_histograms,
        host_time.host_time,
        hparams.hyperparameters,
        learning_rate.learning_rate,
        learning_rate.learning_rates,
        losses.losses,
        losses.train_loss,
        losses.val_loss,
        memory.allocation_retries,
        memory.allocator_memory,
        memory.learning_curve,
        memory.logged_memory,
        metrics.accuracies,
        metrics.metrics,
        metrics.train_accuracy,
        metrics.val_accuracy,
        model.model,
        restarts.restarts,
        returns.episode_return,
        returns.explained_variance,
        returns.policy,
        roles.roles,
        run_state.finished,
        run_state.task,
        run_state.writer,
        speed.longest_pause,
        speed.pace,
        sweeps.sweeps,
        trace_steps.marked_steps,
        trace_steps.step_times,
        trace_steps.traces,
        trials.trial,
        trials.trials,
        weights.trained_weights,
    )
    return {function.__name__: function for function in functions}


class Evidence:
    """The evidence of one job, or of a family of jobs where `family` and its `trials` are given. Each piece is derived once;
    that it is missing, or why it failed, is remembered too.

    `tag_roles` are the roles of tags that the user set. What is read of captures may take `memory_bytes`, where that is given.
    """

    def __init__(self, job: Job | None = None, tag_roles: tuple[TagRole, ...] = (), **known: Any) -> None:
        self._known: dict[str, Any] = {"job": job, "tag_roles": tag_roles, "memory_bytes": None, **known}
        self._failed: dict[str, Exception] = {}

    def __getitem__(self, name: str) -> Any:
        """The piece of evidence called `name`. Raises `Missing` where it is not in the log, `KeyError` where there is
        no such evidence.
        """
        if name in self._failed:
            raise self._failed[name]
        if name not in self._known:
            provider = providers()[name]
            try:
                self._known[name] = provider(*(self[needed] for needed in inspect.signature(provider).parameters))
            except Exception as error:
                self._failed[name] = error
                raise
        return self._known[name]
