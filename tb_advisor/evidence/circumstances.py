"""What else the log says about the steps at which a loss breaks: learning rate, gradient norm, restarts, evaluations."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from tb_advisor.evidence.roles import Roles
from tb_advisor.message import Message, number
from tb_advisor.series import Series

NEARBY_POINTS = 5
USUAL_POINTS = 50


@dataclass(frozen=True, eq=False)
class Circumstances:
    """Curves and steps that may explain what a loss does; each is empty where the log does not hold it.

    `restarts` are the steps at which a training was taken up again, behind steps that it had done before.
    """

    learning_rates: tuple[Series, ...] = ()
    gradient_norms: tuple[Series, ...] = ()
    evaluations: tuple[Series, ...] = ()
    restarts: tuple[int, ...] = ()

    def before(self, loss: Series, index: int) -> Message | None:
        """What happened at one point of `loss` or in the five points before it, the likeliest cause only. The text begins
        with a blank, so that it can follow another one. None where the log says nothing.
        """
        step = int(loss.steps[index])
        since = int(loss.steps[max(0, index - NEARBY_POINTS)])
        restart = next((restart for restart in self.restarts if since <= restart <= step), None)
        if restart is not None:
            return Message(" The run had been restarted at step {restart_step}.", restart_step=restart)
        return self._rate_rose(loss, since, step) or self._norm_rose(loss, since, step)

    def beside(self, loss: Series) -> tuple[tuple[str, str], ...]:
        """Run and tag of `loss`, and of the learning rate and the gradient norm that count the same steps: what belongs
        into one chart.
        """
        others = [next((s for s in several if s.shares_axis_with(loss)), None) for several in (self.learning_rates, self.gradient_norms)]
        return tuple((series.run, series.tag) for series in (loss, *others) if series is not None)

    def follow_evaluations(self, loss: Series, indices: Iterable[int]) -> bool:
        """Whether each of several points of `loss` is the first one after an evaluation, in most runs the end of an epoch.

        Evaluations must be rare, ten points of `loss` apart or more, so that this is no chance.
        """
        indices = list(indices)
        for evaluation in self.evaluations:
            if not evaluation.shares_axis_with(loss) or len(loss) < 10 * len(evaluation):
                continue
            last = np.searchsorted(evaluation.steps, loss.steps[indices], side="left") - 1
            since = loss.steps[np.maximum(np.array(indices) - 1, 0)]
            if len(indices) > 1 and bool(((last >= 0) & (evaluation.steps[last] >= since)).all()):
                return True
        return False

    def _rate_rose(self, loss: Series, since: int, step: int) -> Message | None:
        for rate in self.learning_rates:
            nearby = rate.values[(rate.steps >= since) & (rate.steps <= step)]
            earlier = rate.value_at(since)
            if rate.shares_axis_with(loss) and len(nearby) and rate.steps[0] <= since and nearby.max() >= 1.5 * earlier > 0:
                return Message(
                    " The learning rate had just risen from {rate_before} to {rate_after}.",
                    rate_before=earlier,
                    rate_after=float(nearby.max()),
                )
        return None

    def _norm_rose(self, loss: Series, since: int, step: int) -> Message | None:
        for norm in self.gradient_norms:
            first = int(np.searchsorted(norm.steps, since))
            usual = norm.values[max(0, first - USUAL_POINTS) : first]
            nearby = norm.values[(norm.steps >= since) & (norm.steps <= step)]
            usual = usual[np.isfinite(usual)]
            if not norm.shares_axis_with(loss) or not len(nearby):
                continue
            highest = float(nearby.max())
            if not np.isfinite(highest):
                return Message(" The gradient norm was {norm} by then.", norm=number(highest))
            if len(usual) >= 5 and highest >= 5 * float(np.median(usual)) > 0:
                return Message(
                    " The gradient norm had risen to {norm}, {norm_ratio} times its usual.",
                    norm=highest,
                    norm_ratio=highest / float(np.median(usual)),
                )
        return None


def circumstances(roles: Roles, learning_rates: tuple[Series, ...]) -> Circumstances:
    """What may explain a break of a loss. Never missing: the parts that are not logged are empty."""
    norms = [a for a in roles.of("gradient_norm", evaluation=False) if not a.part]
    evaluations = roles.of("loss", evaluation=True)
    restarts = {int(part.steps[0]) for a in roles.of("loss", evaluation=False) for part in a.series.segments[1:]}
    return Circumstances(
        learning_rates=learning_rates,
        gradient_norms=tuple(a.series.surviving for a in norms),
        evaluations=tuple(a.series.surviving for a in evaluations),
        restarts=tuple(sorted(restarts)),
    )
