"""Several devices: use all of them, exchange less and at the right time, and give each the same work."""

from __future__ import annotations

from tb_advisor.fixes import sources
from tb_advisor.fixes.fix import Cost, Figure, Fix
from tb_advisor.message import Message

_TF_DISTRIBUTED = "https://www.tensorflow.org/guide/distributed_training"
_KERAS_DISTRIBUTED = "https://keras.io/guides/distributed_training_with_tensorflow/"
_DDP = "https://pytorch.org/docs/stable/generated/torch.nn.parallel.DistributedDataParallel.html"
_DDP_NOTES = "https://pytorch.org/docs/stable/notes/ddp.html"
_LIGHTNING_GPU = "https://lightning.ai/docs/pytorch/stable/accelerators/gpu_intermediate.html"
_HF_MULTI = "https://huggingface.co/docs/transformers/perf_train_gpu_many"
_JAX_PARALLEL = "https://docs.jax.dev/en/latest/sharded-computation.html"
_JAX_GPU = "https://docs.jax.dev/en/latest/gpu_performance_tips.html"

FIXES = (
    Fix(
        id="data-parallel",
        title=Message("Train on all devices, one process a device"),
        why=Message(
            "Each device computes its part of the batch. DataParallel copies the model in every step and holds one Python lock for all."
        ),
        check=Message("A new capture shows all devices at work, for about the same share of the step."),
        cost=Cost.RETRAIN,
        effect=Message("Close to linear: DistributedDataParallel scaled almost linearly to 256 GPUs."),
        source=sources.LI_2020,
        figure=Figure.STEP_TIME,
        code={
            "keras": """# several hosts: MultiWorkerMirroredStrategy(); TPU: TPUStrategy(resolver)
with tf.distribute.MirroredStrategy().scope():
    model = build()
    model.compile(optimizer="adam", loss="sparse_categorical_crossentropy")
""",
            "tensorflow": """# several hosts: MultiWorkerMirroredStrategy(); TPU: TPUStrategy(resolver)
strategy = tf.distribute.MirroredStrategy()
ds = strategy.experimental_distribute_dataset(ds)
""",
            "pytorch": """torch.distributed.init_process_group("nccl")  # torchrun --nproc_per_node=gpu train.py
model = DistributedDataParallel(model.to(rank), device_ids=[rank])
""",
            "lightning": """trainer = Trainer(accelerator="gpu", devices=-1, strategy="ddp")
""",
            "jax": """mesh = jax.make_mesh((jax.device_count(),), ("data",))
batch = jax.device_put(batch, NamedSharding(mesh, PartitionSpec("data")))
""",
        },
        urls={
            "keras": _KERAS_DISTRIBUTED,
            "tensorflow": _TF_DISTRIBUTED,
            "pytorch": _DDP,
            "lightning": _LIGHTNING_GPU,
            "jax": _JAX_PARALLEL,
        },
    ),
    Fix(
        id="overlap-communication",
        title=Message("Exchange gradients while the backward pass still runs"),
        why=Message("Gradients of the last layers are ready first. Sent in buckets at once, they cost no time of their own."),
        check=Message("The collectives lie beside kernels of the backward pass in a new capture."),
        cost=Cost.ONE_LINE,
        effect=Message(
            "Most of the exchange hides behind the backward pass: up to about a third of the step, in the measurements of the authors."
        ),
        source=sources.LI_2020,
        figure=Figure.STEP_TIME,
        code={
            "pytorch": """model = DistributedDataParallel(model, device_ids=[rank], bucket_cap_mb=25, gradient_as_bucket_view=True)
""",
            "lightning": """trainer = Trainer(strategy=DDPStrategy(gradient_as_bucket_view=True, static_graph=True))
""",
            "huggingface": """args = TrainingArguments(..., ddp_bucket_cap_mb=25, ddp_find_unused_parameters=False)
""",
            "keras": """options = tf.distribute.experimental.CommunicationOptions(bytes_per_pack=50 * 1024 * 1024)
strategy = tf.distribute.MultiWorkerMirroredStrategy(communication_options=options)
""",
            "jax": """os.environ["XLA_FLAGS"] = "--xla_gpu_enable_latency_hiding_scheduler=true"  # before importing jax
""",
        },
        urls={"pytorch": _DDP, "lightning": _LIGHTNING_GPU, "huggingface": _HF_MULTI, "keras": _TF_DISTRIBUTED, "jax": _JAX_GPU},
    ),
    Fix(
        id="accumulate-before-exchange",
        title=Message("Exchange gradients every few batches"),
        why=Message(
            "Gradients of several batches are added up on each device and exchanged once; the batch that counts is larger by that."
        ),
        check=Message("A new capture shows collectives in one of n steps only."),
        cost=Cost.RETRAIN,
        effect=Message("The exchange takes one n-th of its time; convergence is that of an n times larger batch."),
        source=sources.LI_2020,
        figure=Figure.STEP_TIME,
        code={
            "pytorch": """for i, (x, y) in enumerate(loader):
    last = (i + 1) % 4 == 0
    with contextlib.nullcontext() if last else model.no_sync():
        (loss_fn(model(x), y) / 4).backward()
    if last:
        optimizer.step()
        optimizer.zero_grad()
""",
            "lightning": """trainer = Trainer(strategy="ddp", accumulate_grad_batches=4)
""",
            "huggingface": """args = TrainingArguments(..., gradient_accumulation_steps=4)
""",
            "keras": """optimizer = keras.optimizers.Adam(1e-3, gradient_accumulation_steps=4)
""",
            "jax": """optimizer = optax.MultiSteps(optax.adam(1e-3), every_k_schedule=4)
""",
        },
        urls={
            "pytorch": f"{_DDP}#torch.nn.parallel.DistributedDataParallel.no_sync",
            "lightning": "https://lightning.ai/docs/pytorch/stable/advanced/training_tricks.html",
            "huggingface": "https://huggingface.co/docs/transformers/main_classes/trainer",
            "keras": "https://keras.io/api/optimizers/",
            "jax": "https://optax.readthedocs.io/en/latest/api/optimizer_wrappers.html",
        },
    ),
    Fix(
        id="compress-gradients",
        title=Message("Send gradients in 16 bits"),
        why=Message("Half the bytes take about half the time where the network is the limit."),
        check=Message("The collectives of a new capture are about half as long, and the loss follows the old curve."),
        cost=Cost.ONE_LINE,
        effect=Message("Half the bytes for each exchange."),
        source=sources.TORCH_COMM_HOOKS,
        figure=Figure.STEP_TIME,
        code={
            "pytorch": """from torch.distributed.algorithms.ddp_comm_hooks import default_hooks
model.register_comm_hook(state=None, hook=default_hooks.bf16_compress_hook)
""",
            "lightning": """trainer = Trainer(strategy=DDPStrategy(ddp_comm_hook=default_hooks.bf16_compress_hook))
""",
        },
        urls={"pytorch": "https://pytorch.org/docs/stable/ddp_comm_hooks.html", "lightning": _LIGHTNING_GPU},
    ),
    Fix(
        id="nccl-backend",
        title=Message("Let devices talk to each other directly"),
        why=Message("NCCL uses NVLink and the network card without the host; gloo copies every gradient through the host's memory."),
        check=Message("A new capture shows nccl kernels on the devices; NCCL_DEBUG=INFO names NVLink or the network card that is used."),
        cost=Cost.ONE_LINE,
        effect=Message("NCCL is the fastest backend for tensors on NVIDIA GPUs."),
        source=sources.TORCH_DISTRIBUTED,
        figure=Figure.STEP_TIME,
        code={
            "pytorch": """torch.distributed.init_process_group("nccl")  # not gloo
os.environ["NCCL_SOCKET_IFNAME"] = "eth0"      # the fast interface
""",
            "keras": """options = tf.distribute.experimental.CommunicationOptions(
    implementation=tf.distribute.experimental.CommunicationImplementation.NCCL)
strategy = tf.distribute.MultiWorkerMirroredStrategy(communication_options=options)
""",
        },
        urls={"pytorch": "https://pytorch.org/docs/stable/distributed.html", "keras": _TF_DISTRIBUTED},
    ),
    Fix(
        id="balance-shards",
        title=Message("Give each participant the same work"),
        why=Message("With examples of different length, equal numbers of examples are unequal work. Sort by length and deal out."),
        check=Message("The own time of all participants in a new capture is alike."),
        cost=Cost.RETRAIN,
        effect=Message("The step is as long as that of the slowest participant: what the others waited is won."),
        source=sources.TF_DISTRIBUTED_INPUT,
        figure=Figure.STEP_TIME,
        code={
            "tensorflow": """options = tf.data.Options()  # FILE needs equally large files, a multiple of the hosts
options.experimental_distribute.auto_shard_policy = tf.data.experimental.AutoShardPolicy.DATA
ds = ds.with_options(options)
""",
            "keras": """options = tf.data.Options()
options.experimental_distribute.auto_shard_policy = tf.data.experimental.AutoShardPolicy.DATA
model.fit(ds.with_options(options))
""",
            "pytorch": """sampler = DistributedSampler(dataset, shuffle=True, drop_last=True)
loader = DataLoader(dataset, batch_size=32, sampler=sampler)
""",
            "huggingface": """args = TrainingArguments(..., group_by_length=True)
""",
            "jax": """shards = grain.ShardByJaxProcess(drop_remainder=True)
sampler = grain.IndexSampler(len(source), shard_options=shards, shuffle=True, num_epochs=1, seed=0)
""",
        },
        urls={
            "tensorflow": "https://www.tensorflow.org/tutorials/distribute/input",
            "keras": "https://www.tensorflow.org/tutorials/distribute/input",
            "pytorch": "https://pytorch.org/docs/stable/data.html",
            "huggingface": "https://huggingface.co/docs/transformers/main_classes/trainer",
            "jax": "https://google-grain.readthedocs.io/en/latest/",
        },
    ),
    Fix(
        id="check-slow-host",
        title=Message("Look at the slow machine"),
        why=Message(
            "The same work that takes longer on one machine has a reason there: heat, power limits, another process, a slow disk or link."
        ),
        check=Message(
            "The slow participant stays slow when it swaps its shard with another one: then it is the machine, else it is the data."
        ),
        cost=Cost.ONE_LINE,
        effect=Message("The step takes as long as on the other machines."),
        source=sources.TF_GPU,
        figure=Figure.STEP_TIME,
        code={
            "pytorch": """print(torch.cuda.get_device_name(), torch.cuda.clock_rate(), torch.cuda.temperature(), torch.cuda.utilization())
""",
            "keras": """print(tf.config.experimental.get_device_details(tf.config.list_physical_devices("GPU")[0]))
""",
        },
        urls={"pytorch": _DDP_NOTES, "keras": _TF_DISTRIBUTED},
    ),
)
