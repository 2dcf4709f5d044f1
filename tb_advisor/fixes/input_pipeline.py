"""Faster input: what to try when steps wait for their batch, and how to record a capture that shows it."""

from __future__ import annotations

from tb_advisor.fixes.fix import Fix
from tb_advisor.message import Message

_TF_PERFORMANCE = "https://www.tensorflow.org/guide/data_performance"
_TORCH_DATA = "https://pytorch.org/docs/stable/data.html"
_TORCH_TUNING = "https://pytorch.org/tutorials/recipes/recipes/tuning_guide.html"
_LIGHTNING = "https://lightning.ai/docs/pytorch/stable/advanced/speed.html"
_CHECK = Message("In a new capture the wait is below 5% of the step time.")

FIXES = (
    Fix(
        id="prefetch",
        title=Message("Make the next batch while the step runs: prefetch"),
        why=Message("The pipeline then works during the step, not between two steps; where it is faster than the step, the wait is gone."),
        check=_CHECK,
        code={
            "keras": """ds = ds.batch(32).prefetch(tf.data.AUTOTUNE)  # last in the pipeline
model.fit(ds)
""",
            "tensorflow": """ds = ds.batch(32).prefetch(tf.data.AUTOTUNE)  # last in the pipeline
""",
            "pytorch": """loader = DataLoader(dataset, batch_size=32, num_workers=4, prefetch_factor=4)
""",
            "jax": """batches = tfds.as_numpy(ds.batch(32).prefetch(tf.data.AUTOTUNE))
""",
        },
        urls={
            "keras": f"{_TF_PERFORMANCE}#prefetching",
            "tensorflow": f"{_TF_PERFORMANCE}#prefetching",
            "pytorch": _TORCH_DATA,
            "jax": f"{_TF_PERFORMANCE}#prefetching",
        },
    ),
    Fix(
        id="parallel-map",
        title=Message("Run the map function in parallel"),
        why=Message("One call at a time uses one core. With AUTOTUNE, tf.data finds the number of calls that keeps all cores busy."),
        check=Message("The stage is called ParallelMap in the capture, and its own time a step is smaller than the step."),
        code={
            "keras": """ds = ds.map(decode, num_parallel_calls=tf.data.AUTOTUNE, deterministic=False)
""",
            "tensorflow": """ds = ds.map(decode, num_parallel_calls=tf.data.AUTOTUNE, deterministic=False)
""",
            "pytorch": """loader = DataLoader(dataset, batch_size=32, num_workers=os.cpu_count() // 2)
""",
        },
        urls={
            "keras": f"{_TF_PERFORMANCE}#parallelizing_data_transformation",
            "tensorflow": f"{_TF_PERFORMANCE}#parallelizing_data_transformation",
            "pytorch": _TORCH_DATA,
        },
    ),
    Fix(
        id="cache-dataset",
        title=Message("Keep what does not change between epochs"),
        why=Message("Reading and decoding then happen in the first epoch only. Shuffling and augmentation stay behind the cache."),
        check=Message("From the second epoch on, steps no longer wait; host memory grows by the size of the dataset."),
        code={
            "keras": """ds = ds.map(decode).cache()  # or .cache("/local/disk/train") where memory is too small
ds = ds.shuffle(10_000).map(augment).batch(32).prefetch(tf.data.AUTOTUNE)
""",
            "tensorflow": """ds = ds.map(decode).cache()  # or .cache("/local/disk/train") where memory is too small
ds = ds.shuffle(10_000).map(augment).batch(32).prefetch(tf.data.AUTOTUNE)
""",
            "pytorch": """class Decoded(Dataset):
    def __init__(self, files):
        self.images = [decode(file) for file in files]  # or memory-mapped with numpy.load(..., mmap_mode="r")
""",
        },
        urls={
            "keras": f"{_TF_PERFORMANCE}#caching",
            "tensorflow": f"{_TF_PERFORMANCE}#caching",
            "pytorch": _TORCH_DATA,
        },
    ),
    Fix(
        id="tensorflow-ops",
        title=Message("Replace Python functions in the pipeline by TensorFlow ops"),
        why=Message(
            "numpy_function, py_function and from_generator run under Python's global lock, one element at a time, however many parallel "
            "calls are asked for. More parallel calls do not help."
        ),
        check=Message("The capture holds no PyFunc event."),
        code={
            "keras": """ds = ds.map(lambda path: tf.image.resize(tf.io.decode_jpeg(tf.io.read_file(path)), (224, 224)))
# what only Python can do: do it once, before the training, and read it back from TFRecord files
""",
            "tensorflow": """ds = ds.map(lambda path: tf.image.resize(tf.io.decode_jpeg(tf.io.read_file(path)), (224, 224)))
# what only Python can do: do it once, before the training, and read it back from TFRecord files
""",
        },
        urls={
            "keras": "https://www.tensorflow.org/guide/data#applying_arbitrary_python_logic",
            "tensorflow": "https://www.tensorflow.org/guide/data#applying_arbitrary_python_logic",
        },
    ),
    Fix(
        id="vectorize-map",
        title=Message("Batch first, then map over the whole batch"),
        why=Message("A function over a batch is called once a step instead of once an element, and its ops are vectorised."),
        check=Message("The map stage is called once a step in the capture."),
        code={
            "keras": """ds = ds.batch(32).map(normalise_batch, num_parallel_calls=tf.data.AUTOTUNE)
""",
            "tensorflow": """ds = ds.batch(32).map(normalise_batch, num_parallel_calls=tf.data.AUTOTUNE)
""",
            "pytorch": """loader = DataLoader(dataset, batch_size=32, collate_fn=lambda items: transform(torch.stack(items)))
""",
        },
        urls={
            "keras": f"{_TF_PERFORMANCE}#vectorizing_mapping",
            "tensorflow": f"{_TF_PERFORMANCE}#vectorizing_mapping",
            "pytorch": _TORCH_DATA,
        },
    ),
    Fix(
        id="parallel-interleave",
        title=Message("Read several files at a time"),
        why=Message("One file is read at the speed of one stream. Several at once hide the latency of the disk or the network."),
        check=Message("The capture shows ParallelInterleave, and the reading stage no longer works longest."),
        code={
            "keras": """files = tf.data.Dataset.list_files("train-*.tfrecord")
ds = files.interleave(tf.data.TFRecordDataset, cycle_length=8, num_parallel_calls=tf.data.AUTOTUNE, deterministic=False)
""",
            "tensorflow": """files = tf.data.Dataset.list_files("train-*.tfrecord")
ds = files.interleave(tf.data.TFRecordDataset, cycle_length=8, num_parallel_calls=tf.data.AUTOTUNE, deterministic=False)
""",
        },
        urls={
            "keras": f"{_TF_PERFORMANCE}#parallelizing_data_extraction",
            "tensorflow": f"{_TF_PERFORMANCE}#parallelizing_data_extraction",
        },
    ),
    Fix(
        id="dataloader-workers",
        title=Message("Load in worker processes"),
        why=Message("With num_workers=0 the training process loads each batch itself. Workers load ahead while the step runs."),
        check=Message("The capture names _MultiProcessingDataLoaderIter, and it takes less than 5% of the step."),
        code={
            "pytorch": """loader = DataLoader(dataset, batch_size=32, num_workers=4, persistent_workers=True, prefetch_factor=4)
# raise num_workers until the wait is gone or all cores are busy
""",
            "lightning": """def train_dataloader(self):
    return DataLoader(self.train, batch_size=32, num_workers=4, persistent_workers=True)
""",
            "huggingface": """args = TrainingArguments(..., dataloader_num_workers=4, dataloader_persistent_workers=True)
""",
            "keras": """train = Images(files, workers=4, use_multiprocessing=True)  # class Images(keras.utils.PyDataset)
model.fit(train)
""",
        },
        urls={
            "pytorch": f"{_TORCH_DATA}#multi-process-data-loading",
            "lightning": _LIGHTNING,
            "huggingface": "https://huggingface.co/docs/transformers/main_classes/trainer",
            "keras": "https://keras.io/api/utils/python_utils/#pydataset-class",
        },
    ),
    Fix(
        id="lighter-dataset",
        title=Message("Do less for each example"),
        why=Message(
            "Workers that do not keep up need less to do: decode and resize once before the training, cast and augment whole batches on "
            "the device."
        ),
        check=Message("Fetching dataset[0] in a loop takes less than the step time divided by the batch size, times the workers."),
        code={
            "pytorch": """images = np.load("train_224.npy", mmap_mode="r")         # decoded and resized once
batch = augment(batch.to(device, non_blocking=True))      # torchvision.transforms.v2 on the device
""",
            "lightning": """def on_after_batch_transfer(self, batch, dataloader_idx):
    return self.augment(batch)  # on the device
""",
            "keras": """model = keras.Sequential([keras.layers.RandomFlip(), keras.layers.Rescaling(1 / 255), *layers])  # on the device
""",
        },
        urls={
            "pytorch": "https://pytorch.org/vision/stable/transforms.html#performance-considerations",
            "lightning": _LIGHTNING,
            "keras": "https://keras.io/guides/preprocessing_layers/",
        },
    ),
    Fix(
        id="pin-memory",
        title=Message("Copy from pinned memory while the device works"),
        why=Message("A copy from pageable memory stops the host; one from pinned memory runs beside the kernels."),
        check=Message("The capture shows copies 'Pinned -> Device' instead of 'Pageable -> Device'."),
        code={
            "pytorch": """loader = DataLoader(dataset, batch_size=32, num_workers=4, pin_memory=True)
for x, y in loader:
    x, y = x.to(device, non_blocking=True), y.to(device, non_blocking=True)
""",
            "lightning": """return DataLoader(self.train, batch_size=32, num_workers=4, pin_memory=True)
""",
        },
        urls={"pytorch": _TORCH_TUNING, "lightning": _LIGHTNING},
    ),
    Fix(
        id="load-in-background",
        title=Message("Load the next batch in a thread of its own"),
        why=Message("A loop that loads and then computes does one thing at a time. A thread that stays a few batches ahead does both."),
        check=_CHECK,
        code={
            "jax": """def ahead(batches, count=2):
    pool, pending = ThreadPoolExecutor(1), collections.deque()
    for _ in range(count):
        pending.append(pool.submit(next, batches))
    while True:
        pending.append(pool.submit(next, batches))
        yield jax.device_put(pending.popleft().result())
""",
            "tensorflow": """ds = tf.data.Dataset.from_generator(load, output_signature=spec).batch(32).prefetch(tf.data.AUTOTUNE)
""",
            "pytorch": """loader = DataLoader(dataset, batch_size=32, num_workers=4, prefetch_factor=4)
""",
        },
        urls={
            "jax": "https://docs.jax.dev/en/latest/profiling.html",
            "tensorflow": f"{_TF_PERFORMANCE}#prefetching",
            "pytorch": _TORCH_DATA,
        },
    ),
    Fix(
        id="record-more-steps",
        title=Message("Record ten steps in the middle of the training"),
        why=Message("Fewer than three whole steps, or the first ones, say nothing about the usual step. Ten cost a few megabytes."),
        check=Message("The Advisor names the step marker of the capture and at least five steps."),
        code={
            "keras": """keras.callbacks.TensorBoard("logs/run1", profile_batch=(10, 20))
""",
            "tensorflow": """for step in range(steps):
    if step == 10:
        tf.profiler.experimental.start("logs/run1")
    with tf.profiler.experimental.Trace("train", step_num=step, _r=1):
        train_step(next(batches))  # the fetch belongs inside
    if step == 20:
        tf.profiler.experimental.stop()
""",
            "pytorch": """with torch.profiler.profile(
    schedule=torch.profiler.schedule(wait=5, warmup=2, active=10, repeat=1),
    on_trace_ready=torch.profiler.tensorboard_trace_handler("logs/run1"),
    profile_memory=True,
) as profiler:
    for batch in loader:
        train_step(batch)
        profiler.step()  # marks the step
""",
            "lightning": """schedule = torch.profiler.schedule(wait=5, warmup=2, active=10)
trainer = Trainer(profiler=PyTorchProfiler(dirpath="logs/run1", schedule=schedule))
""",
            "jax": """jax.profiler.start_trace("logs/run1")
for step in range(10, 20):
    with jax.profiler.StepTraceAnnotation("train", step_num=step):
        state = train_step(state, next(batches))
jax.block_until_ready(state)
jax.profiler.stop_trace()
""",
        },
        urls={
            "keras": "https://keras.io/api/callbacks/tensorboard/",
            "tensorflow": "https://www.tensorflow.org/guide/profiler",
            "pytorch": "https://pytorch.org/docs/stable/profiler.html",
            "lightning": "https://lightning.ai/docs/pytorch/stable/tuning/profiler_intermediate.html",
            "jax": "https://docs.jax.dev/en/latest/profiling.html",
        },
    ),
    Fix(
        id="time-parts-of-step",
        title=Message("Log how long loading and computing take"),
        why=Message("The part whose time grows with the step time is the one to look into; the other can be left alone."),
        check=Message("Two curves, of which one rises together with the step time."),
        code={
            "keras": """class Timing(keras.callbacks.Callback):
    def on_train_batch_begin(self, batch, logs=None):
        self.began = time.perf_counter()
    def on_train_batch_end(self, batch, logs=None):
        tf.summary.scalar("compute_s", time.perf_counter() - self.began, step=self.model.optimizer.iterations)
""",
            "tensorflow": """began = time.perf_counter()
batch = next(batches)
loaded = time.perf_counter()
train_step(batch)
tf.summary.scalar("time/data_s", loaded - began, step=step)
tf.summary.scalar("time/compute_s", time.perf_counter() - loaded, step=step)
""",
            "pytorch": """began = time.perf_counter()
batch = next(batches)
loaded = time.perf_counter()
train_step(batch)
torch.cuda.synchronize()
writer.add_scalar("time/data_s", loaded - began, step)
writer.add_scalar("time/compute_s", time.perf_counter() - loaded, step)
""",
            "lightning": """trainer = Trainer(profiler="simple")  # time of each hook at the end; DeviceStatsMonitor() for the device
""",
        },
        urls={
            "keras": "https://keras.io/guides/writing_your_own_callbacks/",
            "tensorflow": "https://www.tensorflow.org/guide/data_performance",
            "pytorch": _TORCH_TUNING,
            "lightning": "https://lightning.ai/docs/pytorch/stable/tuning/profiler_basic.html",
        },
    ),
    Fix(
        id="check-machine",
        title=Message("Look for throttling and for other work on the machine"),
        why=Message("A hot device lowers its clock, and a neighbour takes cores, disk and network; the code is the same as before."),
        check=Message("The clock stays at its level, and the step time on an idle machine is that of the first steps."),
        code={
            "keras": """print(psutil.cpu_percent(percpu=True), psutil.cpu_freq().current)
print(subprocess.run(["nvidia-smi", "-q", "-d", "CLOCK,PERFORMANCE,TEMPERATURE"], capture_output=True, text=True).stdout)
""",
            "pytorch": """print(psutil.cpu_percent(percpu=True), psutil.cpu_freq().current)
print(torch.cuda.clock_rate(), torch.cuda.temperature(), torch.cuda.utilization())
""",
        },
        urls={
            "keras": "https://psutil.readthedocs.io/en/latest/",
            "pytorch": "https://pytorch.org/docs/stable/generated/torch.cuda.clock_rate.html",
        },
    ),
)
