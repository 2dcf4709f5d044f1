"""Healthy runs whose losses are not supposed to fall: reinforcement learning and a generative adversarial network."""

import time

import numpy as np

from tests.accuracy.catalog import training
from tests.accuracy.log import Log
from tests.accuracy.network import Adam, Array, Network, softmax


class CartPole:
    """The pole on a cart of Barto, Sutton and Anderson (1983), many at once; an episode ends after 200 steps."""

    def __init__(self, count: int, generator: np.random.Generator) -> None:
        self.generator = generator
        self.state = generator.uniform(-0.05, 0.05, (count, 4))
        self.age = np.zeros(count, int)

    def step(self, push_right: Array) -> tuple[Array, Array]:
        """Apply the forces; which episodes ended, and how long they had lasted."""
        x, speed, angle, turn = self.state.T
        force = np.where(push_right, 10.0, -10.0)
        inner = (force + 0.05 * turn**2 * np.sin(angle)) / 1.1
        turning = (9.8 * np.sin(angle) - np.cos(angle) * inner) / (0.5 * (4 / 3 - 0.1 * np.cos(angle) ** 2 / 1.1))
        pushing = inner - 0.05 * turning * np.cos(angle) / 1.1
        self.state = np.stack([x + 0.02 * speed, speed + 0.02 * pushing, angle + 0.02 * turn, turn + 0.02 * turning], axis=1)
        self.age += 1
        ended = (np.abs(self.state[:, 0]) > 2.4) | (np.abs(self.state[:, 2]) > 0.21) | (self.age >= 200)
        lengths = self.age[ended].copy()
        self.state[ended] = self.generator.uniform(-0.05, 0.05, (int(ended.sum()), 4))
        self.age[ended] = 0
        return ended, lengths


def actor_critic(log: Log, *, seed: int, updates: int, horizon: int, rate: float, count: int = 16) -> None:
    """Advantage actor-critic with a value network."""
    generator = np.random.default_rng(seed)
    env = CartPole(count, generator)
    policy, value = Network((4, 32, 2), generator, "tanh"), Network((4, 32, 1), generator, "tanh")
    adams = Adam(), Adam()
    finished: list[int] = []
    begin = time.perf_counter()
    for update in range(updates):
        states, actions, ends = [], [], []
        for _ in range(horizon):
            states.append(env.state.copy())
            actions.append(softmax(policy(env.state))[:, 1] > generator.random(count))
            ended, lengths = env.step(actions[-1])
            ends.append(ended)
            finished += lengths.tolist()
        returns = np.zeros((horizon, count))
        future = value(env.state)[:, 0] * 100
        for t in reversed(range(horizon)):
            future = returns[t] = 1 + 0.99 * future * ~ends[t]
        x, a, target = np.concatenate(states), np.concatenate(actions).astype(int), np.concatenate(returns) / 100
        guess = value(x)[:, 0]
        value_gradients = value.gradients((guess - target)[:, None] * 2 / len(x))
        advantage = target - guess
        advantage = (advantage - advantage.mean()) / (advantage.std() + 1e-8)
        p = softmax(policy(x))
        error = (p - np.eye(2)[a]) * advantage[:, None] / len(x)
        policy_gradients = policy.gradients(error)
        adams[0].step(policy.parameters, policy_gradients, rate)
        adams[1].step(value.parameters, value_gradients, 3 * rate)
        entropy = float(-(p * np.log(p + 1e-9)).sum(axis=1).mean())
        recent = finished[-50:] or [0]
        log(
            (update + 1) * horizon * count,
            policy_loss=float(-(np.log(p[np.arange(len(a)), a] + 1e-9) * advantage).mean()),
            value_loss=float(((100 * advantage.std() * (target - guess)) ** 2).mean()),
            entropy_loss=-entropy,
            entropy=entropy,
            explained_variance=float(1 - np.var(target - guess) / (np.var(target) + 1e-9)),
            episode_reward=float(np.mean(recent)),
            episode_length=float(np.mean(recent)),
            policy_lr=rate,
            frames=(update + 1) * horizon * count,
            fps=(update + 1) * horizon * count / (time.perf_counter() - begin),
            policy_norm=float(np.sqrt(sum((g**2).sum() for g in policy_gradients))),
        )
    if np.mean(finished[-50:]) < 2 * np.mean(finished[:50]):
        raise SystemExit(f"the pole was not learned: {np.mean(finished[:50])} steps at first, {np.mean(finished[-50:])} in the end")


@training(
    "cartpole",
    {
        "episode_reward": "rollout/ep_rew_mean",
        "episode_length": "rollout/ep_len_mean",
        "policy_loss": "train/policy_gradient_loss",
        "value_loss": "train/value_loss",
        "entropy_loss": "train/entropy_loss",
        "explained_variance": "train/explained_variance",
        "policy_lr": "train/learning_rate",
        "fps": "time/fps",
    },
)
def cartpole_stable_baselines_tags(log: Log) -> None:
    actor_critic(log, seed=1, updates=200, horizon=32, rate=7e-3)


@training(
    "cartpole",
    {
        "episode_reward": "rreturn_mean",
        "policy_loss": "policy_loss",
        "value_loss": "value_loss",
        "entropy": "entropy",
        "policy_norm": "grad_norm",
        "frames": "frames",
        "fps": "FPS",
    },
)
def cartpole_rl_starter_tags(log: Log) -> None:
    actor_critic(log, seed=2, updates=150, horizon=40, rate=1e-2)


def adversarial(log: Log, *, seed: int, steps: int) -> None:
    """A generator of points on a ring against a discriminator, both with the usual cross entropy."""
    generator = np.random.default_rng(seed)
    maker, judge = Network((4, 32, 2), generator), Network((2, 32, 1), generator)
    adams = Adam(), Adam()
    for step in range(steps):
        turn = generator.uniform(0, 2 * np.pi, 64)
        real = np.stack([np.cos(turn), np.sin(turn)], axis=1) + generator.normal(0, 0.05, (64, 2))
        fake = maker(generator.normal(0, 1, (64, 4)))
        truth = np.repeat([1.0, 0.0], 64)[:, None]
        output = judge(np.concatenate([real, fake]))
        sure = 1 / (1 + np.exp(-output))
        judge_loss = float(-(truth * np.log(sure + 1e-9) + (1 - truth) * np.log(1 - sure + 1e-9)).mean())
        adams[0].step(judge.parameters, judge.gradients((sure - truth) / 128), 1e-3)
        output = judge(fake)
        sure = 1 / (1 + np.exp(-output))
        error = (sure - 1) / 64
        for layer in reversed(range(2)):
            error = error @ judge.kernels[layer].T * ((judge.layers[layer] > 0) if layer else 1)
        adams[1].step(maker.parameters, maker.gradients(error), 1e-3)
        log(step, generator_loss=float(-np.log(sure + 1e-9).mean()), discriminator_loss=judge_loss)


@training("ring", {"generator_loss": "loss/g/total", "discriminator_loss": "loss/d/total"})
def ring_gan(log: Log) -> None:
    adversarial(log, seed=3, steps=600)


@training("ring", {"generator_loss": "generator_loss", "discriminator_loss": "discriminator_loss"}, framework="tensorflow")
def ring_gan_by_tensorflow(log: Log) -> None:
    adversarial(log, seed=4, steps=400)
