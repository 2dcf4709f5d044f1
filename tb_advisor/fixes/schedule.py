"""What to try when the learning rate does not do what was meant."""

from __future__ import annotations

from tb_advisor.fixes import sources
from tb_advisor.fixes.fix import Cost, Figure, Fix
from tb_advisor.message import Message

FIXES = (
    Fix(
        id="schedule-length",
        title=Message("Count the schedule in the unit in which it is called"),
        why=Message("A schedule that is stepped after each batch needs its length in batches; a length in epochs ends it far too early."),
        check=Message("The logged learning rate reaches its lowest value in the last tenth of the run."),
        cost=Cost.RETRAIN,
        effect=Message("The rate falls over the whole run: the schedule's length is that of the training."),
        source=sources.TUNING_PLAYBOOK,
        figure=Figure.LEARNING_RATE,
        code={
            "keras": """total_steps = epochs * len(train)  # a Keras schedule counts batches
schedule = keras.optimizers.schedules.CosineDecay(«rate: 1e-3», decay_steps=total_steps)
model.compile(optimizer=keras.optimizers.Adam(schedule), loss=loss)
""",
            "pytorch": """scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=epochs * len(train))
for epoch in range(epochs):
    for batch in train:
        train_step(batch)
        scheduler.step()  # once a batch, as T_max counts batches
""",
            "lightning": """def configure_optimizers(self):
    optimizer = torch.optim.Adam(self.parameters(), lr=«rate: 1e-3»)
    steps = self.trainer.estimated_stepping_batches
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=steps)
    return {"optimizer": optimizer, "lr_scheduler": {"scheduler": scheduler, "interval": "step"}}
""",
            "huggingface": """args = TrainingArguments(..., lr_scheduler_type="cosine", num_train_epochs=3)
""",
            "jax": """schedule = optax.cosine_decay_schedule(init_value=«rate: 1e-3», decay_steps=epochs * steps_per_epoch)
""",
        },
        urls={
            "jax": "https://optax.readthedocs.io/en/latest/api/optimizer_schedules.html",
            "keras": "https://keras.io/api/optimizers/learning_rate_schedules/",
            "pytorch": "https://pytorch.org/docs/stable/optim.html#how-to-adjust-learning-rate",
            "lightning": "https://lightning.ai/docs/pytorch/stable/common/optimization.html",
            "huggingface": "https://huggingface.co/docs/transformers/main_classes/optimizer_schedules",
        },
    ),
    Fix(
        id="schedule-floor",
        title=Message("Give the schedule a lowest rate"),
        why=Message("A rate that ends at a few percent of its peak still moves the weights when the run goes on longer than planned."),
        check=Message("The logged learning rate stays at its lowest value instead of falling to zero."),
        cost=Cost.RETRAIN,
        effect=Message("Training goes on after the planned end instead of standing still."),
        source=sources.LOSHCHILOV_2016,
        figure=Figure.LEARNING_RATE,
        code={
            "keras": """schedule = keras.optimizers.schedules.CosineDecay(«rate: 1e-3», decay_steps=total_steps, alpha=0.05)  # ends at 5%
""",
            "pytorch": """scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=total_steps, eta_min=0.05 * «rate: 1e-3»)
""",
            "huggingface": """lowest = {"min_lr": 0.05 * «rate: 1e-4»}
args = TrainingArguments(..., lr_scheduler_type="cosine_with_min_lr", lr_scheduler_kwargs=lowest)
""",
            "jax": """schedule = optax.cosine_decay_schedule(init_value=«rate: 1e-3», decay_steps=total_steps, alpha=0.05)
""",
        },
        urls={
            "jax": "https://optax.readthedocs.io/en/latest/api/optimizer_schedules.html",
            "keras": "https://keras.io/api/optimizers/learning_rate_schedules/cosine_decay/",
            "pytorch": "https://pytorch.org/docs/stable/generated/torch.optim.lr_scheduler.CosineAnnealingLR.html",
            "huggingface": "https://huggingface.co/docs/transformers/main_classes/optimizer_schedules",
        },
    ),
    Fix(
        id="shorter-warm-up",
        title=Message("End the warm-up within the first 5% of the run"),
        why=Message("A warm-up is for the first, unstable steps. The rest of the run needs the full rate, then a falling one."),
        check=Message("The logged learning rate peaks early and falls for the rest of the run."),
        cost=Cost.RETRAIN,
        effect=Message("Most of the run trains at the rate that was meant; five epochs of warm-up were enough for batches of 8,192."),
        source=sources.GOYAL_2017,
        figure=Figure.LEARNING_RATE,
        code={
            "keras": """warm_up = total_steps // 20
schedule = keras.optimizers.schedules.CosineDecay(
    initial_learning_rate=0.0, warmup_target=«rate: 1e-3», warmup_steps=warm_up, decay_steps=total_steps - warm_up,
)
""",
            "pytorch": """warm_up = total_steps // 20
scheduler = torch.optim.lr_scheduler.SequentialLR(
    optimizer,
    [
        torch.optim.lr_scheduler.LinearLR(optimizer, start_factor=0.01, total_iters=warm_up),
        torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=total_steps - warm_up),
    ],
    milestones=[warm_up],
)
""",
            "huggingface": """args = TrainingArguments(..., warmup_ratio=0.05)
""",
            "jax": """warm_up = total_steps // 20
schedule = optax.warmup_cosine_decay_schedule(0.0, «rate: 1e-3», warm_up, decay_steps=total_steps)
""",
        },
        urls={
            "jax": "https://optax.readthedocs.io/en/latest/api/optimizer_schedules.html",
            "keras": "https://keras.io/api/optimizers/learning_rate_schedules/cosine_decay/",
            "pytorch": "https://pytorch.org/docs/stable/generated/torch.optim.lr_scheduler.SequentialLR.html",
            "huggingface": "https://huggingface.co/docs/transformers/main_classes/optimizer_schedules",
        },
    ),
    Fix(
        id="plot-schedule",
        title=Message("Run the schedule without a model before training"),
        why=Message("A wrong unit, a wrong milestone or a factor that multiplies instead of dividing is seen in a second."),
        check=Message("The printed rates rise and fall where they should."),
        cost=Cost.ONE_LINE,
        effect=Message("A wrong schedule is seen in a second instead of after the run."),
        source=sources.TORCH_SCHEDULES,
        figure=Figure.LEARNING_RATE,
        code={
            "keras": """for step in range(0, total_steps, total_steps // 20):
    print(step, float(schedule(step)))
""",
            "pytorch": """parameter = torch.nn.Parameter(torch.zeros(1))
optimizer = torch.optim.SGD([parameter], lr=«rate: 1e-3»)
scheduler = make_scheduler(optimizer)
for step in range(total_steps):
    if step % (total_steps // 20) == 0:
        print(step, scheduler.get_last_lr())
    optimizer.step()
    scheduler.step()
""",
            "jax": """for step in range(0, total_steps, total_steps // 20):
    print(step, float(schedule(step)))
""",
        },
        urls={
            "jax": "https://optax.readthedocs.io/en/latest/api/optimizer_schedules.html",
            "keras": "https://keras.io/api/optimizers/learning_rate_schedules/",
            "pytorch": "https://pytorch.org/docs/stable/optim.html#how-to-adjust-learning-rate",
        },
    ),
)
