"""Less memory at the worst moment, and no more with every step."""

from __future__ import annotations

from tb_advisor.fixes import sources
from tb_advisor.fixes.fix import Cost, Figure, Fix
from tb_advisor.message import Message

_TF_GPU = "https://www.tensorflow.org/guide/gpu#limiting_gpu_memory_growth"
_TORCH_CUDA = "https://pytorch.org/docs/stable/notes/cuda.html#memory-management"
_TORCH_FAQ = "https://pytorch.org/docs/stable/notes/faq.html"
_HF_ONE_GPU = "https://huggingface.co/docs/transformers/perf_train_gpu_one"
_LIGHTNING = "https://lightning.ai/docs/pytorch/stable/advanced/training_tricks.html"
_PEAK = Message("The highest value of the memory scalar falls, and so does the peak of the capture's worst step.")

FIXES = (
    Fix(
        id="find-allocation",
        title=Message("Find the line that allocates at that step"),
        why=Message("The step is known; what runs there and nowhere else is a batch, an evaluation, a checkpoint or a callback."),
        check=Message("The printed stack, or the snapshot, names a line; without it the memory stays level."),
        cost=Cost.ONE_LINE,
        effect=Message("The line that allocates is known."),
        source=sources.TORCH_SNAPSHOT,
        figure=Figure.MEMORY,
        code={
            "keras": """import faulthandler, psutil, threading, time

def watch_memory(limit_bytes):
    while psutil.Process().memory_info().rss < limit_bytes:
        time.sleep(0.005)
    faulthandler.dump_traceback()  # what every thread is doing at that moment

threading.Thread(target=watch_memory, args=(2 * 2**30,), daemon=True).start()
""",
            "pytorch": """torch.cuda.memory._record_memory_history()
train_some_steps(model)  # until after the spike
torch.cuda.memory._dump_snapshot("memory.pickle")  # open it at pytorch.org/memory_viz
""",
            "jax": """jax.profiler.save_device_memory_profile("memory.prof")  # at that step; then: pprof memory.prof
""",
        },
        urls={
            "keras": "https://docs.python.org/3/library/faulthandler.html",
            "pytorch": "https://pytorch.org/docs/stable/torch_cuda_memory.html",
            "jax": "https://docs.jax.dev/en/latest/device_memory_profiling.html",
        },
    ),
    Fix(
        id="free-after-evaluation",
        title=Message("Evaluate without gradients, in batches no larger than those of the training"),
        why=Message("An evaluation that keeps the graph, all outputs or a larger batch needs memory that the training never does."),
        check=Message("The spike at the steps of the evaluation is gone."),
        cost=Cost.ONE_LINE,
        effect=Message("The peak is that of the training: without a graph an evaluation keeps no activations."),
        source=sources.TORCH_FAQ,
        figure=Figure.MEMORY,
        code={
            "keras": """model.evaluate(val, batch_size=32)  # model.predict keeps the outputs of the whole dataset
""",
            "tensorflow": """for x, y in val.batch(32):  # add up the metric, keep no outputs
    metric.update_state(y, model(x, training=False))
""",
            "pytorch": """model.eval()
with torch.inference_mode():
    for x, y in val_loader:
        correct += (model(x).argmax(1) == y).sum().item()  # numbers, not tensors
torch.cuda.empty_cache()  # gives back what only the evaluation needed
""",
            "lightning": """def on_validation_epoch_end(self):
    self.outputs.clear()  # and append detached, small values only
""",
            "huggingface": """args = TrainingArguments(..., per_device_eval_batch_size=8, eval_accumulation_steps=16)
""",
            "jax": """evaluate = jax.jit(evaluate, donate_argnums=(1,))  # the batch's buffers are used again
""",
        },
        urls={
            "keras": "https://keras.io/api/models/model_training_apis/#evaluate-method",
            "tensorflow": "https://www.tensorflow.org/guide/keras/writing_a_training_loop_from_scratch",
            "pytorch": _TORCH_FAQ,
            "lightning": "https://lightning.ai/docs/pytorch/stable/common/evaluation_intermediate.html",
            "huggingface": _HF_ONE_GPU,
            "jax": "https://docs.jax.dev/en/latest/gpu_memory_allocation.html",
        },
    ),
    Fix(
        id="delete-references",
        title=Message("Keep numbers, not tensors with their graph"),
        why=Message("A loss that is kept for a running mean keeps every activation of its step alive."),
        check=Message("Memory at the end of each step is the same in step 10 and in step 1,000."),
        cost=Cost.ONE_LINE,
        effect=Message("Memory stays level: what no longer refers to a graph lets it go at the end of its step."),
        source=sources.TORCH_FAQ,
        figure=Figure.MEMORY,
        code={
            "keras": """keras.backend.clear_session()  # between models in one process
del model; gc.collect()
""",
            "tensorflow": """losses.append(float(loss))  # not the tensor
# in graph mode: with tf.compat.v1.Session() as session, so that it is closed
""",
            "pytorch": """running += loss.item()     # or loss.detach(); not running += loss
del outputs, loss          # before the next forward pass
optimizer.zero_grad(set_to_none=True)
""",
            "lightning": """self.losses.append(loss.detach())
""",
        },
        urls={
            "keras": "https://keras.io/api/utils/config_utils/#clearsession-function",
            "tensorflow": _TF_GPU,
            "pytorch": _TORCH_FAQ,
            "lightning": _LIGHTNING,
        },
    ),
    Fix(
        id="gradient-accumulation",
        title=Message("Accumulate gradients over smaller batches"),
        why=Message("Activations take memory for one small batch; the update is that of the large one."),
        check=_PEAK,
        cost=Cost.RETRAIN,
        effect=Message("Activations take one n-th of their memory; the update is that of the whole batch, but for batch normalisation."),
        source=sources.HF_GPU,
        figure=Figure.MEMORY,
        code={
            "keras": """optimizer = keras.optimizers.Adam(1e-3, gradient_accumulation_steps=4)
model.fit(x, y, batch_size=8)
""",
            "tensorflow": """for part in tf.split(batch, 4):
    with tf.GradientTape() as tape:
        loss = loss_fn(part) / 4
    total = [t + g for t, g in zip(total, tape.gradient(loss, weights))]
optimizer.apply_gradients(zip(total, weights))
""",
            "pytorch": """for i, (x, y) in enumerate(loader):
    (loss_fn(model(x), y) / 4).backward()
    if i % 4 == 3:
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
""",
            "lightning": """trainer = Trainer(accumulate_grad_batches=4)
""",
            "huggingface": """args = TrainingArguments(..., per_device_train_batch_size=8, gradient_accumulation_steps=4)
""",
            "jax": """optimizer = optax.MultiSteps(optax.adam(1e-3), every_k_schedule=4)
""",
        },
        urls={
            "keras": "https://keras.io/api/optimizers/",
            "tensorflow": "https://www.tensorflow.org/guide/autodiff",
            "pytorch": "https://pytorch.org/docs/stable/notes/amp_examples.html#gradient-accumulation",
            "lightning": f"{_LIGHTNING}#accumulate-gradients",
            "huggingface": _HF_ONE_GPU,
            "jax": "https://optax.readthedocs.io/en/latest/_collections/examples/gradient_accumulation.html",
        },
    ),
    Fix(
        id="smaller-batch",
        title=Message("Make the batch, or its longest example, smaller"),
        why=Message("Activations grow with the batch and with the longest sequence in it; one long example decides for all."),
        check=_PEAK,
        cost=Cost.RETRAIN,
        effect=Message("Memory for activations falls in proportion."),
        source=sources.HF_GPU,
        figure=Figure.MEMORY,
        code={
            "keras": """model.fit(train.batch(16))
""",
            "tensorflow": """ds = ds.bucket_by_sequence_length(lambda x, y: tf.shape(x)[0], [128, 256, 512], [32, 16, 8, 4])
""",
            "pytorch": """loader = DataLoader(dataset, batch_size=16, collate_fn=lambda items: pad([item[:512] for item in items]))
""",
            "huggingface": """args = TrainingArguments(..., per_device_train_batch_size=8, group_by_length=True)
""",
            "lightning": """trainer = Trainer()
Tuner(trainer).scale_batch_size(model, mode="binsearch")
""",
        },
        urls={
            "keras": "https://keras.io/api/models/model_training_apis/#fit-method",
            "tensorflow": "https://www.tensorflow.org/api_docs/python/tf/data/Dataset#bucket_by_sequence_length",
            "pytorch": _TORCH_FAQ,
            "huggingface": _HF_ONE_GPU,
            "lightning": f"{_LIGHTNING}#batch-size-finder",
        },
    ),
    Fix(
        id="gradient-checkpointing",
        title=Message("Compute activations again instead of keeping them"),
        why=Message("The backward pass then needs the activations of one block at a time, for about a third more computation."),
        check=_PEAK,
        cost=Cost.ONE_LINE,
        effect=Message("Memory for activations grows with the root of the number of layers, for one more forward pass."),
        source=sources.CHEN_2016,
        figure=Figure.MEMORY,
        code={
            "keras": """with keras.RematScope(mode="full"):  # Keras 3.9 and later
    model = build_model()
""",
            "tensorflow": """block = tf.recompute_grad(block)
""",
            "pytorch": """x = torch.utils.checkpoint.checkpoint(block, x, use_reentrant=False)
""",
            "huggingface": """args = TrainingArguments(..., gradient_checkpointing=True)
""",
            "jax": """block = jax.checkpoint(block)
""",
        },
        urls={
            "keras": "https://keras.io/api/utils/",
            "tensorflow": "https://www.tensorflow.org/api_docs/python/tf/recompute_grad",
            "pytorch": "https://pytorch.org/docs/stable/checkpoint.html",
            "huggingface": _HF_ONE_GPU,
            "jax": "https://docs.jax.dev/en/latest/gradient-checkpointing.html",
        },
    ),
    Fix(
        id="memory-growth-option",
        title=Message("Let the allocator grow, and give back what it holds in pieces"),
        why=Message(
            "TensorFlow takes the whole device at the start, which hides what is needed. PyTorch's cache can hold memory that no request "
            "fits into."
        ),
        check=Message("The reserved memory follows the allocated memory."),
        cost=Cost.ONE_LINE,
        effect=Message("What is reserved follows what is used, and memory in pieces can be joined."),
        source=sources.TORCH_CUDA,
        figure=Figure.MEMORY,
        code={
            "keras": """for gpu in tf.config.list_physical_devices("GPU"):
    tf.config.experimental.set_memory_growth(gpu, True)  # before the first op
""",
            "tensorflow": """for gpu in tf.config.list_physical_devices("GPU"):
    tf.config.experimental.set_memory_growth(gpu, True)  # before the first op
""",
            "pytorch": """os.environ["PYTORCH_CUDA_ALLOC_CONF"] = "expandable_segments:True"  # before torch is imported
""",
            "jax": """os.environ["XLA_PYTHON_CLIENT_PREALLOCATE"] = "false"  # before jax is imported
""",
        },
        urls={
            "keras": _TF_GPU,
            "tensorflow": _TF_GPU,
            "pytorch": _TORCH_CUDA,
            "jax": "https://docs.jax.dev/en/latest/gpu_memory_allocation.html",
        },
    ),
    Fix(
        id="find-growth",
        title=Message("Compare what is alive at two steps"),
        why=Message("What a leak leaves behind is there twice as often after twice as many steps."),
        check=Message("The difference between step 100 and step 200 names a line; once it is gone, the difference is empty."),
        cost=Cost.ONE_LINE,
        effect=Message("The line that keeps objects alive is known."),
        source=sources.PYTHON_TRACEMALLOC,
        figure=Figure.MEMORY,
        code={
            "keras": """tracemalloc.start(25)
train(100)
before = tracemalloc.take_snapshot()
train(100)
for line in tracemalloc.take_snapshot().compare_to(before, "lineno")[:10]:
    print(line)
""",
            "pytorch": """def alive():
    return collections.Counter((str(t.device), tuple(t.shape)) for t in gc.get_objects() if torch.is_tensor(t))

before = alive()
train(100)
print((alive() - before).most_common(10))
""",
            "jax": """before = len(jax.live_arrays())
train(100)
print(len(jax.live_arrays()) - before)
""",
        },
        urls={
            "keras": "https://docs.python.org/3/library/tracemalloc.html",
            "pytorch": _TORCH_FAQ,
            "jax": "https://docs.jax.dev/en/latest/device_memory_profiling.html",
        },
    ),
    Fix(
        id="bounded-cache",
        title=Message("Give caches and histories a limit"),
        why=Message("A dictionary or list that is only added to holds all batches that there were."),
        check=Message("Memory levels out once the limit is reached."),
        cost=Cost.ONE_LINE,
        effect=Message("Memory levels out at the size of the limit."),
        source=sources.PYTHON_FUNCTOOLS,
        figure=Figure.MEMORY,
        code={
            "keras": """history = collections.deque(maxlen=1000)  # not a list
ds = files.map(load).cache("/local/disk/cache")  # not in memory where the dataset is larger
""",
            "pytorch": """history = collections.deque(maxlen=1000)  # not a list

@functools.lru_cache(maxsize=10_000)
def load(path):
    return read_image(path)
""",
        },
        urls={
            "keras": "https://www.tensorflow.org/api_docs/python/tf/data/Dataset#cache",
            "pytorch": "https://docs.python.org/3/library/functools.html#functools.lru_cache",
        },
    ),
    Fix(
        id="arrays-in-workers",
        title=Message("Keep the dataset in arrays, not in Python objects, so that workers do not copy it"),
        why=Message(
            "A worker that reads an object counts its references and thereby copies the page it lies on, until each holds all of them."
        ),
        check=Message("Host memory no longer rises during an epoch by the size of the dataset for each worker."),
        cost=Cost.RETRAIN,
        effect=Message("Workers share one copy of the dataset instead of each making its own."),
        source=sources.TORCH_DATA,
        figure=Figure.MEMORY,
        code={
            "pytorch": """self.paths = np.array(paths)  # not a list of str
loader = DataLoader(dataset, num_workers=4)
""",
            "lightning": """self.paths = np.array(paths)  # not a list of str
""",
            "keras": """self.paths = np.array(paths)  # in the PyDataset, not a list of str
""",
        },
        urls={
            "lightning": "https://pytorch.org/docs/stable/data.html#multi-process-data-loading",
            "pytorch": "https://pytorch.org/docs/stable/data.html#multi-process-data-loading",
            "keras": "https://keras.io/api/utils/python_utils/#pydataset-class",
        },
    ),
    Fix(
        id="allocator-settings",
        title=Message("Let the device's own allocator place requests, or cut memory into fewer pieces"),
        why=Message(
            "cudaMallocAsync maps free pieces together, so that a request fits where they suffice in sum; expandable segments grow instead "
            "of leaving gaps."
        ),
        check=Message("The error no longer names free memory, and a new capture shows less fragmentation at the fullest moment."),
        cost=Cost.ONE_LINE,
        effect=Message("Free pieces can be joined, so that a request fits where they suffice in sum."),
        source=sources.TORCH_CUDA,
        figure=Figure.MEMORY,
        code={
            "keras": """os.environ["TF_GPU_ALLOCATOR"] = "cuda_malloc_async"  # before tensorflow is imported
""",
            "tensorflow": """os.environ["TF_GPU_ALLOCATOR"] = "cuda_malloc_async"  # before tensorflow is imported
""",
            "pytorch": """os.environ["PYTORCH_CUDA_ALLOC_CONF"] = "expandable_segments:True"  # before torch is imported
# where that is not supported: "backend:cudaMallocAsync", or "max_split_size_mb:256"
""",
            "jax": """os.environ["XLA_PYTHON_CLIENT_ALLOCATOR"] = "cuda_async"  # before jax is imported
""",
        },
        urls={
            "keras": "https://www.tensorflow.org/guide/gpu",
            "tensorflow": "https://www.tensorflow.org/guide/gpu",
            "pytorch": f"{_TORCH_CUDA.split('#')[0]}#optimizing-memory-usage-with-pytorch-alloc-conf",
            "jax": "https://docs.jax.dev/en/latest/gpu_memory_allocation.html",
        },
    ),
    Fix(
        id="sizes-that-repeat",
        title=Message("Give batches a few sizes that repeat"),
        why=Message("A piece that was freed fits the next request of the same size; with sizes that never repeat each leaves a gap."),
        check=Message("The reserved memory levels out after the first batches of each size."),
        cost=Cost.RETRAIN,
        effect=Message("Each piece that was freed fits the next request of its size: what is reserved levels out."),
        source=sources.TORCH_CUDA,
        figure=Figure.MEMORY,
        code={
            "keras": """bounds, sizes = [128, 256, 512], [32, 16, 8, 4]
ds = ds.bucket_by_sequence_length(lambda x, y: tf.shape(x)[0], bounds, sizes, pad_to_bucket_boundary=True)
""",
            "pytorch": """def collate(items):  # lengths of 64, 128, 192, …
    length = -(-max(len(item) for item in items) // 64) * 64
    return torch.stack([torch.nn.functional.pad(item, (0, length - len(item))) for item in items])

loader = DataLoader(dataset, batch_size=16, collate_fn=collate, drop_last=True)
""",
            "huggingface": """collator = DataCollatorWithPadding(tokenizer, pad_to_multiple_of=64)
""",
            "jax": """length = -(-x.shape[1] // 64) * 64
x = jnp.pad(x, ((0, 0), (0, length - x.shape[1])))
""",
        },
        urls={
            "keras": "https://www.tensorflow.org/api_docs/python/tf/data/Dataset#bucket_by_sequence_length",
            "pytorch": _TORCH_CUDA,
            "huggingface": "https://huggingface.co/docs/transformers/main_classes/data_collator",
            "jax": "https://docs.jax.dev/en/latest/gpu_memory_allocation.html",
        },
    ),
    Fix(
        id="smaller-optimizer-state",
        title=Message("Use an optimizer that keeps less, or share its state between devices"),
        why=Message("Adam keeps two numbers of 32 bits for each weight; with mixed precision its state is most of what the model takes."),
        check=Message("The lowest use of a step falls by the size of the state; the loss goes on as before."),
        cost=Cost.RETRAIN,
        effect=Message(
            "Adafactor keeps the sums of rows and columns instead of a moment for each weight, with the results of Adam in translation."
        ),
        source=sources.SHAZEER_2018,
        figure=Figure.MEMORY,
        code={
            "keras": """optimizer = keras.optimizers.Adafactor(1e-3)
""",
            "pytorch": """optimizer = bitsandbytes.optim.AdamW8bit(model.parameters(), lr=1e-3)
# or, with several devices: model = torch.distributed.fsdp.FullyShardedDataParallel(model)
""",
            "lightning": """trainer = Trainer(strategy="fsdp", devices=4)
""",
            "huggingface": """args = TrainingArguments(..., optim="adafactor")  # or "adamw_bnb_8bit", or fsdp="full_shard"
""",
            "jax": """optimizer = optax.adafactor(1e-3)
""",
        },
        urls={
            "keras": "https://keras.io/api/optimizers/adafactor/",
            "pytorch": "https://pytorch.org/docs/stable/fsdp.html",
            "lightning": "https://lightning.ai/docs/pytorch/stable/advanced/model_parallel/fsdp.html",
            "huggingface": _HF_ONE_GPU,
            "jax": "https://optax.readthedocs.io/en/latest/api/optimizers.html#optax.adafactor",
        },
    ),
    Fix(
        id="memory-share",
        title=Message("See whether more of the device can be had"),
        why=Message("JAX takes 75% of a device by default; other processes and notebooks that still run keep what they took."),
        check=Message("The capacity that the Advisor names is that of the device."),
        cost=Cost.ONE_LINE,
        effect=Message("Up to a third more memory than with JAX's default of three quarters."),
        source=sources.JAX_MEMORY,
        figure=Figure.MEMORY,
        code={
            "jax": """os.environ["XLA_PYTHON_CLIENT_MEM_FRACTION"] = "0.95"  # before jax is imported; and see nvidia-smi for others
""",
            "tensorflow": """print(tf.config.experimental.get_memory_info("GPU:0"))  # nvidia-smi shows other processes
""",
            "pytorch": """free, total = torch.cuda.mem_get_info()  # at the start of the program; nvidia-smi shows other processes
""",
        },
        urls={
            "jax": "https://docs.jax.dev/en/latest/gpu_memory_allocation.html",
            "tensorflow": "https://www.tensorflow.org/api_docs/python/tf/config/experimental/get_memory_info",
            "pytorch": "https://pytorch.org/docs/stable/generated/torch.cuda.memory.mem_get_info.html",
        },
    ),
)
