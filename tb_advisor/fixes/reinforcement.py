"""What to try when an agent forgets, does not explore or does not learn, and when one side of a GAN wins."""

from __future__ import annotations

from tb_advisor.fixes import sources
from tb_advisor.fixes.fix import Cost, Figure, Fix
from tb_advisor.message import Message

_SB3_PPO = "https://stable-baselines3.readthedocs.io/en/master/modules/ppo.html"
_SB3_TIPS = "https://stable-baselines3.readthedocs.io/en/master/guide/rl_tips.html"
_KERAS_PPO = "https://keras.io/examples/rl/ppo_cartpole/"
_KERAS_WGAN = "https://keras.io/examples/generative/wgan_gp/"
_KERAS_GAN = "https://keras.io/examples/generative/dcgan_overriding_train_step/"
_TORCH_DCGAN = "https://pytorch.org/tutorials/beginner/dcgan_faces_tutorial.html"

FIXES = (
    Fix(
        id="keep-best-policy",
        title=Message("Evaluate the policy now and then and keep the best one"),
        why=Message("The return of a policy goes up and down; the last one is rarely the best."),
        check=Message("The evaluation of the saved policy gives the best return of the curve."),
        cost=Cost.ONE_LINE,
        effect=Message("The best policy of the run remains, whatever came after it."),
        source=sources.SB3_CALLBACKS,
        figure=Figure.EPISODE_RETURN,
        code={
            "pytorch": """callback = EvalCallback(eval_env, best_model_save_path="best", eval_freq=10_000)
model.learn(1_000_000, callback=callback)
""",
            "keras": """mean_return = evaluate(actor, eval_env, episodes=20)
if mean_return > best_return:
    best_return = mean_return
    actor.save_weights("best.weights.h5")
""",
        },
        urls={
            "pytorch": "https://stable-baselines3.readthedocs.io/en/master/guide/callbacks.html#evalcallback",
            "keras": _KERAS_PPO,
        },
    ),
    Fix(
        id="smaller-policy-updates",
        title=Message("Make each update of the policy smaller"),
        why=Message(
            "Experience of the old policy says nothing about one that is far from it. A target for the KL divergence ends an update early."
        ),
        check=Message("approx_kl stays near 0.01 to 0.03 and clip_fraction below 0.2."),
        cost=Cost.RETRAIN,
        effect=Message("Fewer collapses: limited updates are what makes PPO stable over several epochs of the same data."),
        source=sources.SCHULMAN_2017,
        figure=Figure.POLICY_KL,
        code={
            "pytorch": """model = PPO("MlpPolicy", env, learning_rate=1e-4, clip_range=0.1, n_epochs=4, target_kl=0.02)
""",
            "keras": """ratio = tf.exp(new_log_probability - old_log_probability)
surrogate = tf.minimum(ratio * advantage, tf.clip_by_value(ratio, 0.9, 1.1) * advantage)
if tf.reduce_mean(old_log_probability - new_log_probability) > 0.02:
    stop_this_update = True
""",
        },
        urls={"pytorch": _SB3_PPO, "keras": _KERAS_PPO},
    ),
    Fix(
        id="entropy-bonus",
        title=Message("Reward entropy so that the policy goes on exploring"),
        why=Message("Without a bonus the first action that pays a little drives out all others before better ones are found."),
        check=Message("The entropy falls slowly while the return rises, and does not reach zero."),
        cost=Cost.RETRAIN,
        effect=Message("Exploration goes on; without the bonus policies settle early on what is not the best."),
        source=sources.MNIH_2016,
        figure=Figure.ENTROPY,
        code={
            "pytorch": """model = PPO("MlpPolicy", env, ent_coef=0.01)  # 0.0 by default
# DQN: DQN("MlpPolicy", env, exploration_fraction=0.3, exploration_final_eps=0.05)
""",
            "keras": """policy_loss = -tf.reduce_mean(surrogate) - 0.01 * tf.reduce_mean(entropy)
""",
            "jax": """loss = -surrogate.mean() - 0.01 * distribution.entropy().mean()
""",
        },
        urls={"jax": "https://rlax.readthedocs.io/en/latest/", "pytorch": _SB3_PPO, "keras": _KERAS_PPO},
    ),
    Fix(
        id="normalize-rewards",
        title=Message("Normalise observations and rewards"),
        why=Message("Returns in the thousands make gradients of the value function so large that those of the policy are lost."),
        check=Message("The value loss begins near 1 and explained variance rises above zero."),
        cost=Cost.RETRAIN,
        effect=Message("Normalised observations were decisive in most environments of a study of 250,000 agents."),
        source=sources.ANDRYCHOWICZ_2020,
        figure=Figure.EXPLAINED_VARIANCE,
        code={
            "pytorch": """env = VecNormalize(DummyVecEnv([make_env]), norm_obs=True, norm_reward=True, clip_reward=10.0)
""",
            "keras": """env = gymnasium.wrappers.NormalizeReward(gymnasium.wrappers.NormalizeObservation(env), gamma=0.99)
""",
        },
        urls={
            "pytorch": "https://stable-baselines3.readthedocs.io/en/master/guide/vec_envs.html#vecnormalize",
            "keras": "https://gymnasium.farama.org/api/wrappers/reward_wrappers/",
        },
    ),
    Fix(
        id="more-rollouts",
        title=Message("Collect more experience for each update"),
        why=Message("The gradient of the policy is an average over episodes; of a few it is mostly noise."),
        check=Message("The return varies less from update to update and rises over the same number of environment steps."),
        cost=Cost.RETRAIN,
        effect=Message("Gradients with less noise, for more environment steps between updates."),
        source=sources.SB3_TIPS,
        figure=Figure.EPISODE_RETURN,
        code={
            "pytorch": """env = make_vec_env("CartPole-v1", n_envs=16)
model = PPO("MlpPolicy", env, n_steps=512, batch_size=1024)
""",
            "keras": """steps_per_epoch = 8000  # was 4000
""",
        },
        urls={"pytorch": _SB3_TIPS, "keras": _KERAS_PPO},
    ),
    Fix(
        id="train-value-function",
        title=Message("Train the value function more, apart from the policy"),
        why=Message("A value function that shares its layers with the policy, or gets as few updates, lags behind the returns."),
        check=Message("Explained variance rises towards 1."),
        cost=Cost.RETRAIN,
        effect=Message("Separate training of policy and value function raised the sample efficiency of PPO on Procgen."),
        source=sources.COBBE_2020,
        figure=Figure.EXPLAINED_VARIANCE,
        code={
            "pytorch": """model = PPO("MlpPolicy", env, vf_coef=1.0, policy_kwargs={"net_arch": {"pi": [64, 64], "vf": [256, 256]}})
""",
            "keras": """for _ in range(80):  # several updates of the value function for one of the policy
    train_value_function(observations, returns)
""",
        },
        urls={"pytorch": "https://stable-baselines3.readthedocs.io/en/master/guide/custom_policy.html", "keras": _KERAS_PPO},
    ),
    Fix(
        id="two-time-scale-update",
        title=Message("Give generator and discriminator learning rates of their own"),
        why=Message("Adversarial training converges where one side learns faster than the other; lower the rate of the side that wins."),
        check=Message("Both losses move around their level of the start instead of away from it."),
        cost=Cost.RETRAIN,
        effect=Message("Convergence to a local equilibrium, and better samples than with one rate for both."),
        source=sources.HEUSEL_2017,
        figure=Figure.DISCRIMINATOR_LOSS,
        code={
            "keras": """gan.compile(
    d_optimizer=keras.optimizers.Adam(1e-4, beta_1=0.5),  # the side that wins
    g_optimizer=keras.optimizers.Adam(4e-4, beta_1=0.5),
)
""",
            "pytorch": """optimizer_d = torch.optim.Adam(discriminator.parameters(), lr=1e-4, betas=(0.5, 0.999))  # the side that wins
optimizer_g = torch.optim.Adam(generator.parameters(), lr=4e-4, betas=(0.5, 0.999))
""",
        },
        urls={"keras": _KERAS_GAN, "pytorch": _TORCH_DCGAN},
    ),
    Fix(
        id="soften-discriminator",
        title=Message("Keep the discriminator from being sure"),
        why=Message("Labels of 0.9 for real samples and a little noise on its input leave a gradient where real and fake do not overlap."),
        check=Message("The discriminator's accuracy stays below 90%."),
        cost=Cost.RETRAIN,
        effect=Message("The generator keeps a gradient; one-sided smoothing is among the tricks that made GANs train stably."),
        source=sources.SALIMANS_2016,
        figure=Figure.DISCRIMINATOR_LOSS,
        code={
            "keras": """real_labels = 0.9 * tf.ones((batch_size, 1))
real_images += 0.05 * tf.random.normal(tf.shape(real_images))
""",
            "pytorch": """real_labels = torch.full((batch_size,), 0.9, device=device)
real = real + 0.05 * torch.randn_like(real)
""",
        },
        urls={"keras": _KERAS_GAN, "pytorch": _TORCH_DCGAN},
    ),
    Fix(
        id="gradient-penalty",
        title=Message("Use the Wasserstein loss with a gradient penalty"),
        why=Message("Its gradient does not vanish when the critic wins, and its value follows the quality of the samples."),
        check=Message("The critic's loss falls steadily in absolute value while samples get better."),
        cost=Cost.REDESIGN,
        effect=Message("Stable training of many architectures with almost no tuning of hyperparameters."),
        source=sources.GULRAJANI_2017,
        figure=Figure.DISCRIMINATOR_LOSS,
        code={
            "keras": """with tf.GradientTape() as tape:
    tape.watch(mixed)
    score = critic(mixed, training=True)
norm = tf.sqrt(tf.reduce_sum(tape.gradient(score, mixed) ** 2, axis=[1, 2, 3]))
critic_loss = tf.reduce_mean(fake_score) - tf.reduce_mean(real_score) + 10 * tf.reduce_mean((norm - 1) ** 2)
""",
            "pytorch": """(gradient,) = torch.autograd.grad(critic(mixed).sum(), mixed, create_graph=True)
penalty = ((gradient.flatten(1).norm(dim=1) - 1) ** 2).mean()
critic_loss = critic(fake).mean() - critic(real).mean() + 10 * penalty
""",
        },
        urls={"keras": _KERAS_WGAN, "pytorch": "https://pytorch.org/docs/stable/generated/torch.autograd.grad.html"},
    ),
    Fix(
        id="compare-within-batch",
        title=Message("Let the discriminator see how much the samples of a batch differ"),
        why=Message("A generator that makes one sample only is then easy to tell, and has to vary what it makes."),
        check=Message("Samples from different noise look different."),
        cost=Cost.REDESIGN,
        effect=Message("Generators that collapse to one sample are told at once; minibatch discrimination gave visibly better samples."),
        source=sources.SALIMANS_2016,
        figure=Figure.DISCRIMINATOR_LOSS,
        code={
            "keras": """spread = tf.reduce_mean(tf.math.reduce_std(features, axis=0))
features = tf.concat([features, tf.fill((tf.shape(features)[0], 1), spread)], axis=1)
""",
            "pytorch": """spread = features.std(dim=0).mean()
features = torch.cat([features, spread.expand(len(features), 1)], dim=1)
""",
        },
        urls={"keras": _KERAS_GAN, "pytorch": _TORCH_DCGAN},
    ),
)
