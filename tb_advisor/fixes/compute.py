"""Faster steps: fewer and larger pieces of work for the device, and a host that does not hold it up."""

from __future__ import annotations

from tb_advisor.fixes import sources
from tb_advisor.fixes.fix import Cost, Figure, Fix
from tb_advisor.message import Message

_TF_FUNCTION = "https://www.tensorflow.org/guide/function"
_TF_GPU = "https://www.tensorflow.org/guide/gpu_performance_analysis"
_TF_XLA = "https://www.tensorflow.org/xla"
_KERAS_COMPILE = "https://keras.io/api/models/model_training_apis/"
_KERAS_MIXED = "https://keras.io/api/mixed_precision/"
_TORCH_TUNING = "https://pytorch.org/tutorials/recipes/recipes/tuning_guide.html"
_TORCH_COMPILE = "https://pytorch.org/docs/stable/generated/torch.compile.html"
_TORCH_CUDA = "https://pytorch.org/docs/stable/notes/cuda.html"
_TORCH_AMP = "https://pytorch.org/docs/stable/amp.html"
_LIGHTNING_TRAINER = "https://lightning.ai/docs/pytorch/stable/common/trainer.html"
_LIGHTNING_SPEED = "https://lightning.ai/docs/pytorch/stable/advanced/speed.html"
_HF_TRAINER = "https://huggingface.co/docs/transformers/main_classes/trainer"
_HF_GPU = "https://huggingface.co/docs/transformers/perf_train_gpu_one"
_JAX_JIT = "https://docs.jax.dev/en/latest/jit-compilation.html"
_JAX_ASYNC = "https://docs.jax.dev/en/latest/async_dispatch.html"
_JAX_GPU = "https://docs.jax.dev/en/latest/gpu_performance_tips.html"
_JAX_CACHE = "https://docs.jax.dev/en/latest/persistent_compilation_cache.html"

FIXES = (
    Fix(
        id="graph-execution",
        title=Message("Run the step as a graph"),
        why=Message("A graph is built once; after that one call runs all ops, in parallel where they allow it, without Python in between."),
        check=Message("A new capture shows no more than a few EagerLocalExecute events a step, and a call of the function."),
        cost=Cost.ONE_LINE,
        effect=Message("Several times as fast for many small operations; little for a few large ones."),
        source=sources.TF_FUNCTION,
        figure=Figure.STEP_TIME,
        code={
            "keras": """model.compile(optimizer="adam", loss="sparse_categorical_crossentropy", run_eagerly=False)
tf.config.run_functions_eagerly(False)  # if it was set for debugging
""",
            "tensorflow": """@tf.function
def train_step(x, y):
    with tf.GradientTape() as tape:
        loss = loss_fn(y, model(x, training=True))
    optimizer.apply_gradients(zip(tape.gradient(loss, model.trainable_variables), model.trainable_variables))
    return loss
""",
            "jax": """@jax.jit
def train_step(state, batch):
    return update(state, batch)
""",
        },
        urls={"keras": _KERAS_COMPILE, "tensorflow": _TF_FUNCTION, "jax": _JAX_JIT},
    ),
    Fix(
        id="steps-per-execution",
        title=Message("Run several steps in one call"),
        why=Message("Callbacks, logs and the Python of the loop then cost once for n steps instead of once a step."),
        check=Message("The time between two steps shrinks; callbacks run every n steps."),
        cost=Cost.ONE_LINE,
        effect=Message("A great gain on TPUs, and for small models with a large overhead of Python."),
        source=sources.KERAS_COMPILE,
        figure=Figure.STEP_TIME,
        code={
            "keras": """model.compile(optimizer="adam", loss="sparse_categorical_crossentropy", steps_per_execution=16)
""",
            "tensorflow": """@tf.function
def train_steps(iterator):
    for _ in tf.range(16):
        train_step(next(iterator))
""",
            "jax": """state, losses = jax.lax.scan(train_step, state, batches)  # batches: 16 batches, stacked
""",
        },
        urls={"keras": _KERAS_COMPILE, "tensorflow": _TF_FUNCTION, "jax": _JAX_JIT},
    ),
    Fix(
        id="compile-step",
        title=Message("Compile the step"),
        why=Message("XLA and torch.compile make one kernel of many small ones, and CUDA graphs launch all kernels of a step at once."),
        check=Message("A new capture shows fewer kernels a step, with names such as fusion or triton, and shorter steps."),
        cost=Cost.ONE_LINE,
        effect=Message("On an A100, torch.compile made training 43% faster on average over 163 models."),
        source=sources.TORCH_2,
        figure=Figure.STEP_TIME,
        code={
            "keras": """model.compile(optimizer="adam", loss="sparse_categorical_crossentropy", jit_compile=True)
""",
            "tensorflow": """@tf.function(jit_compile=True)
def train_step(x, y):
    ...
""",
            "pytorch": """model = torch.compile(model)  # mode="reduce-overhead" uses CUDA graphs, for small kernels
""",
            "lightning": """model = torch.compile(LitModel())
trainer.fit(model)
""",
            "huggingface": """args = TrainingArguments(..., torch_compile=True)
""",
            "jax": """train_step = jax.jit(train_step, donate_argnums=0)
""",
        },
        urls={
            "keras": _KERAS_COMPILE,
            "tensorflow": f"{_TF_XLA}/tutorials/jit_compile",
            "pytorch": _TORCH_COMPILE,
            "lightning": "https://lightning.ai/docs/pytorch/stable/advanced/compile.html",
            "huggingface": _HF_GPU,
            "jax": _JAX_JIT,
        },
    ),
    Fix(
        id="fused-optimizer",
        title=Message("Update all weights with few kernels"),
        why=Message(
            "An optimizer that goes from weight to weight launches several kernels for each; a fused one launches a handful in all."
        ),
        check=Message("The kernels of Optimizer.step are a handful instead of several a weight."),
        cost=Cost.ONE_LINE,
        effect=Message("The update takes a few kernels; fused is the fastest of PyTorch's implementations, then foreach, then the loop."),
        source=sources.TORCH_OPTIM,
        figure=Figure.STEP_TIME,
        code={
            "pytorch": """optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, fused=True)
optimizer.zero_grad(set_to_none=True)
""",
            "huggingface": """args = TrainingArguments(..., optim="adamw_torch_fused")
""",
            "keras": """model.compile(optimizer="adam", loss="mse", jit_compile=True)  # XLA fuses the update
""",
        },
        urls={"pytorch": "https://pytorch.org/docs/stable/optim.html", "huggingface": _HF_TRAINER, "keras": _KERAS_COMPILE},
    ),
    Fix(
        id="input-signature",
        title=Message("Give the function a signature, and tensors instead of Python values"),
        why=Message("Each new Python number or shape is a new function to TensorFlow. A signature with open dimensions fits all of them."),
        check=Message("No call of the function is traced after the first step."),
        cost=Cost.ONE_LINE,
        effect=Message("One trace instead of one for each new shape or number."),
        source=sources.TF_FUNCTION,
        figure=Figure.COMPILE_TIME,
        code={
            "tensorflow": """@tf.function(input_signature=[tf.TensorSpec([None, 28, 28], tf.float32), tf.TensorSpec([None], tf.int64)])
def train_step(x, y):
    ...

train_step(x, y)  # a step number or a rate goes in as tf.constant(step), not as an int
""",
            "keras": """ds = ds.batch(32, drop_remainder=True)  # one shape
model.compile(optimizer="adam", loss="mse")  # once, before the loop: each compile() makes new functions
""",
        },
        urls={"tensorflow": f"{_TF_FUNCTION}#controlling_retracing", "keras": f"{_TF_FUNCTION}#controlling_retracing"},
    ),
    Fix(
        id="reduce-retracing",
        title=Message("Make the function once, and let shapes be open"),
        why=Message(
            "A function that is defined in the loop is new in each step. With reduce_retracing a second shape opens the dimension."
        ),
        check=Message("No call of the function is traced, and nothing is compiled, after the first steps."),
        cost=Cost.ONE_LINE,
        effect=Message("TensorFlow opens the dimensions that change, and one trace serves all of them."),
        source=sources.TF_FUNCTION,
        figure=Figure.COMPILE_TIME,
        code={
            "tensorflow": """@tf.function(reduce_retracing=True)  # outside of the loop
def train_step(x, y):
    ...
""",
            "keras": """model.compile(optimizer="adam", loss="mse")  # once, before the loop
""",
            "pytorch": """torch._dynamo.config.cache_size_limit = 16
train_step = torch.compile(train_step, dynamic=True)  # outside of the loop
""",
            "jax": """# outside of the loop; numbers that change are not static
train_step = jax.jit(train_step, static_argnames=("training",))
""",
        },
        urls={
            "tensorflow": f"{_TF_FUNCTION}#controlling_retracing",
            "keras": f"{_TF_FUNCTION}#controlling_retracing",
            "pytorch": "https://pytorch.org/docs/stable/torch.compiler_troubleshooting.html",
            "jax": _JAX_JIT,
        },
    ),
    Fix(
        id="static-shapes",
        title=Message("Keep the shapes of batches the same"),
        why=Message(
            "Every new shape is compiled again. Padding to a few lengths and dropping the last, smaller batch leaves a few shapes."
        ),
        check=Message("After the first steps nothing is compiled or traced."),
        cost=Cost.RETRAIN,
        effect=Message("A program is compiled once for each shape: as many compilations as there are lengths to which batches are padded."),
        source=sources.TF_XLA_SHAPES,
        figure=Figure.COMPILE_TIME,
        code={
            "keras": """ds = ds.padded_batch(32, padded_shapes=([256], []), drop_remainder=True)
""",
            "tensorflow": """ds = ds.bucket_by_sequence_length(
    lambda x, y: tf.shape(x)[0], bucket_boundaries=[64, 128, 256], bucket_batch_sizes=[32] * 4,
    pad_to_bucket_boundary=True, drop_remainder=True,
)
""",
            "pytorch": """loader = DataLoader(dataset, batch_size=32, drop_last=True, collate_fn=pad_to_multiple_of_64)
model = torch.compile(model, dynamic=True)
""",
            "huggingface": """collator = DataCollatorWithPadding(tokenizer, pad_to_multiple_of=64)
args = TrainingArguments(..., dataloader_drop_last=True)
""",
            "jax": """batch = jax.tree.map(lambda x: jnp.pad(x, [(0, 0), (0, 256 - x.shape[1])]), batch)  # one length for all batches
""",
        },
        urls={
            "keras": "https://www.tensorflow.org/api_docs/python/tf/data/Dataset#padded_batch",
            "tensorflow": "https://www.tensorflow.org/api_docs/python/tf/data/Dataset#bucket_by_sequence_length",
            "pytorch": "https://pytorch.org/docs/stable/torch.compiler_dynamic_shapes.html",
            "huggingface": "https://huggingface.co/docs/transformers/main_classes/data_collator",
            "jax": _JAX_JIT,
        },
    ),
    Fix(
        id="compilation-cache",
        title=Message("Keep compiled programs between runs"),
        why=Message("What was compiled once is then read from disk in the next run, and after a restart."),
        check=Message("The first steps of a second run are nearly as fast as the others."),
        cost=Cost.ONE_LINE,
        effect=Message("The second start reads compiled programs from disk instead of compiling them."),
        source=sources.JAX_CACHE,
        figure=Figure.COMPILE_TIME,
        code={
            "jax": """jax.config.update("jax_compilation_cache_dir", "/var/tmp/jax_cache")
""",
            "pytorch": """os.environ["TORCHINDUCTOR_FX_GRAPH_CACHE"] = "1"  # before torch.compile
""",
        },
        urls={"jax": _JAX_CACHE, "pytorch": "https://pytorch.org/tutorials/recipes/torch_compile_caching_tutorial.html"},
    ),
    Fix(
        id="avoid-sync",
        title=Message("Do not fetch values in every step"),
        why=Message("item(), print, float() and if on a tensor wait until the device is done; until then the host can prepare nothing."),
        check=Message("A new capture shows no cudaStreamSynchronize or aten::item in most steps."),
        cost=Cost.ONE_LINE,
        effect=Message("The host runs ahead of the device again, and the gap at each fetched value is gone."),
        source=sources.TORCH_TUNING,
        figure=Figure.STEP_TIME,
        code={
            "pytorch": """total += loss.detach()          # stays on the device
if step % 100 == 0:
    writer.add_scalar("loss", total.item() / 100, step)
    total.zero_()
optimizer = torch.optim.Adam(model.parameters(), fused=True)  # its step counters stay on the device as well
""",
            "lightning": """self.log("loss", loss)                # not loss.item()
trainer = Trainer(log_every_n_steps=100)
""",
            "huggingface": """args = TrainingArguments(..., logging_steps=100)
""",
            "keras": """keras.callbacks.TensorBoard("logs", update_freq=100)
""",
            "tensorflow": """loss_metric.update_state(loss)   # stays on the device
if step % 100 == 0:
    tf.summary.scalar("loss", loss_metric.result(), step)
""",
            "jax": """losses.append(loss)                     # an array that is not computed yet
if step % 100 == 0:
    print(np.mean(jax.device_get(losses)))
""",
        },
        urls={
            "pytorch": f"{_TORCH_TUNING}#avoid-unnecessary-cpu-gpu-synchronization",
            "lightning": _LIGHTNING_SPEED,
            "huggingface": _HF_TRAINER,
            "keras": "https://keras.io/api/callbacks/tensorboard/",
            "tensorflow": _TF_GPU,
            "jax": _JAX_ASYNC,
        },
    ),
    Fix(
        id="non-blocking-copy",
        title=Message("Copy without waiting"),
        why=Message("A copy with non_blocking=True from pinned memory returns at once and runs beside the kernels."),
        check=Message("Copies lie beside kernels in a new capture."),
        cost=Cost.ONE_LINE,
        effect=Message("Copies run beside the kernels of the step."),
        source=sources.TORCH_TUNING,
        figure=Figure.COPY_TIME,
        code={
            "pytorch": """loader = DataLoader(dataset, batch_size=32, pin_memory=True)
for x, y in loader:
    x, y = x.to(device, non_blocking=True), y.to(device, non_blocking=True)
""",
            "keras": """os.environ["TF_GPU_THREAD_MODE"] = "gpu_private"  # before importing tensorflow: threads for launches alone
""",
            "tensorflow": """os.environ["TF_GPU_THREAD_MODE"] = "gpu_private"  # before importing tensorflow: threads for launches alone
ds = ds.apply(tf.data.experimental.prefetch_to_device("/gpu:0"))
""",
            "jax": """batch = jax.device_put(batch)  # one batch ahead of the step: it returns at once
""",
        },
        urls={"pytorch": _TORCH_TUNING, "keras": _TF_GPU, "tensorflow": _TF_GPU, "jax": _JAX_ASYNC},
    ),
    Fix(
        id="keep-on-device",
        title=Message("Keep on the device what is used there again"),
        why=Message("Tensors that are made on the host, or come back for a metric, cross the bus in every step."),
        check=Message("The copies a step in a new capture are those of the batch."),
        cost=Cost.RETRAIN,
        effect=Message("The copies of these tensors are gone from every step."),
        source=sources.TORCH_TUNING,
        figure=Figure.COPY_TIME,
        code={
            "pytorch": """mask = torch.zeros(n, device=device)          # not torch.zeros(n).to(device)
metric = torchmetrics.Accuracy(task="multiclass", num_classes=10).to(device)
""",
            "lightning": """self.register_buffer("mask", torch.zeros(n))  # moves with the module
""",
            "keras": """metrics = ["accuracy"]  # metrics of Keras run in the graph; a metric in NumPy copies all predictions
""",
            "tensorflow": """with tf.device("/gpu:0"):
    table = tf.Variable(embeddings, trainable=False)  # not a constant that is fed in every step
""",
            "jax": """state = jax.device_put(state)  # once, before the loop
""",
        },
        urls={"pytorch": _TORCH_TUNING, "lightning": _LIGHTNING_SPEED, "keras": _TF_GPU, "tensorflow": _TF_GPU, "jax": _JAX_ASYNC},
    ),
    Fix(
        id="reuse-memory",
        title=Message("Leave memory with the allocator"),
        why=Message("Freeing device memory waits until the device is done. The caching allocator keeps blocks and hands them out again."),
        check=Message("A new capture shows no cudaMalloc and cudaFree after the first steps."),
        cost=Cost.ONE_LINE,
        effect=Message("Memory is allocated without waiting for the device: cudaFree does wait."),
        source=sources.TORCH_CUDA,
        figure=Figure.STEP_TIME,
        code={
            "pytorch": """os.environ.pop("PYTORCH_NO_CUDA_MEMORY_CACHING", None)               # before importing torch
os.environ["PYTORCH_CUDA_ALLOC_CONF"] = "expandable_segments:True"
# and no torch.cuda.empty_cache() in the loop
""",
        },
        urls={"pytorch": f"{_TORCH_CUDA}#cuda-memory-management"},
    ),
    Fix(
        id="less-host-work",
        title=Message("Move Python out of the step"),
        why=Message(
            "What the host does between two kernels adds to the step. Logging, metrics and checkpoints can wait, or run in a thread."
        ),
        check=Message("The event that is named in the gap is gone from most steps."),
        cost=Cost.RETRAIN,
        effect=Message(
            "Up to all of the time in which the device waits for the host; private threads keep tf.data from delaying launches."
        ),
        source=sources.TF_GPU,
        figure=Figure.DEVICE_UTILIZATION,
        code={
            "keras": """model.fit(ds, callbacks=[keras.callbacks.TensorBoard("logs", update_freq="epoch")])  # not every batch
os.environ["TF_GPU_THREAD_MODE"] = "gpu_private"  # before importing tensorflow
""",
            "tensorflow": """os.environ["TF_GPU_THREAD_MODE"] = "gpu_private"  # before importing tensorflow: threads for launches alone
""",
            "pytorch": """if step % 100 == 0:
    log(metrics)
torch.set_num_threads(4)  # leave cores to the loop
""",
            "lightning": """trainer = Trainer(log_every_n_steps=100, enable_progress_bar=False)
""",
            "jax": """train_step = jax.jit(train_step, donate_argnums=0)  # all of the step, the update included
""",
        },
        urls={
            "keras": "https://keras.io/api/callbacks/tensorboard/",
            "tensorflow": _TF_GPU,
            "pytorch": _TORCH_TUNING,
            "lightning": _LIGHTNING_TRAINER,
            "jax": _JAX_JIT,
        },
    ),
    Fix(
        id="larger-batch",
        title=Message("Use a larger batch"),
        why=Message("Larger kernels cost the same launches. The learning rate may have to grow with the batch."),
        check=Message("The time a step grows less than the batch; the device is busy for a larger share of it."),
        cost=Cost.RETRAIN,
        effect=Message("Up to a critical size, twice the batch needs about half the steps; beyond it more batch brings little."),
        source=sources.MCCANDLISH_2018,
        figure=Figure.DEVICE_UTILIZATION,
        code={
            "keras": """model.fit(x, y, batch_size=256)
""",
            "tensorflow": """ds = ds.batch(256).prefetch(tf.data.AUTOTUNE)
""",
            "pytorch": """loader = DataLoader(dataset, batch_size=256, num_workers=4, pin_memory=True)
""",
            "lightning": """Tuner(trainer).scale_batch_size(model)  # finds the largest that fits
""",
            "huggingface": """args = TrainingArguments(..., per_device_train_batch_size=64, auto_find_batch_size=True)
""",
            "jax": """batches = tfds.as_numpy(ds.batch(256).prefetch(tf.data.AUTOTUNE))
""",
        },
        urls={
            "keras": _KERAS_COMPILE,
            "tensorflow": _TF_GPU,
            "pytorch": _TORCH_TUNING,
            "lightning": "https://lightning.ai/docs/pytorch/stable/advanced/training_tricks.html",
            "huggingface": _HF_GPU,
            "jax": _JAX_GPU,
        },
    ),
    Fix(
        id="mixed-precision",
        title=Message("Compute in 16 bits, keep the weights in 32"),
        why=Message("Tensor cores multiply 16-bit numbers many times as fast, and activations take half the memory."),
        check=Message("A new capture shows kernels with half, bf16 or s16816 in their names; the loss follows the old curve."),
        cost=Cost.ONE_LINE,
        effect=Message(
            "More than three times as fast on GPUs with tensor cores where matrix multiplications decide, with the accuracy of 32 bits."
        ),
        source=sources.TF_MIXED,
        figure=Figure.STEP_TIME,
        code={
            "keras": """keras.mixed_precision.set_global_policy("mixed_bfloat16")  # "mixed_float16" before Ampere
""",
            "tensorflow": """tf.keras.mixed_precision.set_global_policy("mixed_bfloat16")  # "mixed_float16" before Ampere
""",
            "pytorch": """with torch.autocast("cuda", dtype=torch.bfloat16):  # float16 and a GradScaler before Ampere
    loss = loss_fn(model(x), y)
loss.backward()
""",
            "lightning": """trainer = Trainer(precision="bf16-mixed")
""",
            "huggingface": """args = TrainingArguments(..., bf16=True)
""",
            "jax": """model = Model(dtype=jnp.bfloat16, param_dtype=jnp.float32)  # flax
""",
        },
        urls={
            "keras": _KERAS_MIXED,
            "tensorflow": "https://www.tensorflow.org/guide/mixed_precision",
            "pytorch": _TORCH_AMP,
            "lightning": "https://lightning.ai/docs/pytorch/stable/common/precision.html",
            "huggingface": _HF_GPU,
            "jax": _JAX_GPU,
        },
    ),
    Fix(
        id="allow-tf32",
        title=Message("Let 32-bit multiplications use TF32"),
        why=Message(
            "From Ampere on, tensor cores multiply float32 with ten bits of mantissa, several times as fast, without other changes."
        ),
        check=Message("A new capture shows kernels with tf32 in their names."),
        cost=Cost.ONE_LINE,
        effect=Message("Large matrix multiplications about seven times as fast on an A100, with relative errors of about 0.002."),
        source=sources.TORCH_CUDA,
        figure=Figure.STEP_TIME,
        code={
            "pytorch": """torch.set_float32_matmul_precision("high")
""",
            "lightning": """torch.set_float32_matmul_precision("high")  # before Trainer
""",
            "huggingface": """args = TrainingArguments(..., tf32=True)
""",
            "keras": """tf.config.experimental.enable_tensor_float_32_execution(True)  # the default
""",
            "jax": """jax.config.update("jax_default_matmul_precision", "tensorfloat32")
""",
        },
        urls={
            "pytorch": f"{_TORCH_CUDA}#tensorfloat-32-tf32-on-ampere-and-later-devices",
            "lightning": _LIGHTNING_SPEED,
            "huggingface": _HF_GPU,
            "keras": "https://www.tensorflow.org/api_docs/python/tf/config/experimental/enable_tensor_float_32_execution",
            "jax": "https://docs.jax.dev/en/latest/jax.default_matmul_precision.html",
        },
    ),
    Fix(
        id="sizes-divisible-by-8",
        title=Message("Choose sizes that are multiples of 8"),
        why=Message("Batch, channels, hidden sizes and vocabulary that 8 (64 on A100 and later) divides use tensor cores without padding."),
        check=Message("The kernels of the layer have tensor core names (s884, s1688, s16816)."),
        cost=Cost.RETRAIN,
        effect=Message("Multiplications run on tensor cores, or without padding on them."),
        source=sources.NVIDIA_TENSOR_CORES,
        figure=Figure.STEP_TIME,
        code={
            "keras": """keras.layers.Dense(1000 + (-1000) % 8)
""",
            "pytorch": """vocabulary = 50257 + (-50257) % 64
embedding = torch.nn.Embedding(vocabulary, 768)
""",
            "huggingface": """model.resize_token_embeddings(len(tokenizer), pad_to_multiple_of=64)
""",
        },
        urls={
            "keras": "https://www.tensorflow.org/guide/mixed_precision",
            "pytorch": _TORCH_TUNING,
            "huggingface": "https://huggingface.co/docs/transformers/main_classes/model",
        },
    ),
    Fix(
        id="move-periodic-work",
        title=Message("Take rare work out of the step"),
        why=Message("Checkpoints and logs that are written in the loop stop it; written in the background they do not."),
        check=Message("The slow steps of a new capture are as long as the others."),
        cost=Cost.ONE_LINE,
        effect=Message("Training goes on while the checkpoint is written: the pause is that of the copy from the device."),
        source=sources.TORCH_ASYNC_SAVE,
        figure=Figure.STEP_TIME,
        code={
            "keras": """keras.callbacks.BackupAndRestore("backup", save_freq="epoch")  # not every few batches
""",
            "tensorflow": """options = tf.train.CheckpointOptions(enable_async=True)
checkpoint.write("ckpt", options=options)
""",
            "pytorch": """future = torch.distributed.checkpoint.async_save(state, checkpoint_id="ckpt")
gc.disable()  # and gc.collect() between epochs, where the slow steps come from garbage collection
""",
            "lightning": """trainer = Trainer(plugins=[AsyncCheckpointIO()])
""",
            "jax": """options = orbax.checkpoint.CheckpointManagerOptions(save_interval_steps=1000, enable_async_checkpointing=True)
manager = orbax.checkpoint.CheckpointManager("/data/ckpt", options=options)
""",
        },
        urls={
            "keras": "https://keras.io/api/callbacks/backup_and_restore/",
            "tensorflow": "https://www.tensorflow.org/api_docs/python/tf/train/CheckpointOptions",
            "pytorch": "https://pytorch.org/docs/stable/distributed.checkpoint.html",
            "lightning": "https://lightning.ai/docs/pytorch/stable/common/checkpointing_expert.html",
            "jax": "https://orbax.readthedocs.io/en/latest/",
        },
    ),
)
