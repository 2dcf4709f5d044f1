import pytest

from tb_advisor.message import Missing
from tests.builders import series
from tests.evidence.test_losses import evidence

REWARD = series(range(40), run="exp", tag="rollout/ep_rew_mean")


def test_the_return_of_the_training_comes_before_that_of_an_evaluation():
    evaluation = series(range(90), run="exp", tag="eval/mean_reward")
    assert evidence(evaluation, REWARD)["episode_return"].tag == "rollout/ep_rew_mean"
    assert evidence(evaluation)["episode_return"].tag == "eval/mean_reward"


@pytest.mark.parametrize(
    ("tag", "why"),
    [
        ("Self-play/ELO", "play against each other"),
        ("Environment/Lesson Number/jump", "curriculum"),
    ],
)
def test_a_return_against_a_moving_target_is_no_measure(tag, why):
    with pytest.raises(Missing, match=why):
        evidence(series([1.0] * 5, run="exp", tag=tag), REWARD)["episode_return"]


def test_a_score_of_supervised_training_is_no_return():
    with pytest.raises(Missing, match="role of a return"):
        evidence(series(range(40), run="exp", tag="score"), series([1.0] * 40, run="exp", tag="loss"))["episode_return"]


def test_entropy_loss_is_the_negative_entropy():
    negated = evidence(series([-0.7, -0.6], run="exp", tag="train/entropy_loss"), REWARD)["policy"]
    plain = evidence(series([0.7, 0.6], run="exp", tag="Policy/Entropy"), REWARD)["policy"]
    assert negated.entropy.values.tolist() == plain.entropy.values.tolist() == [0.7, 0.6]


def test_updates_need_both_curves():
    kl, clipped = (series([0.1] * 9, run="exp", tag=tag) for tag in ("train/approx_kl", "train/clip_fraction"))
    assert evidence(kl, clipped, REWARD)["policy"].clip_fraction is not None
    with pytest.raises(Missing, match="neither the policy's entropy"):
        evidence(kl, REWARD)["policy"]


def test_nothing_is_said():
    with pytest.raises(Missing, match="explained variance"):
        evidence(REWARD)["explained_variance"]
    with pytest.raises(Missing, match="neither the policy's entropy"):
        evidence(series([0.7, 0.6], run="exp", tag="loss"))["policy"]
