"""Faster input: what to try when steps wait for their batch, and how to record a capture that shows it."""

from __future__ import annotations

from tb_advisor.fixes import sources
from tb_advisor.fixes.fix import Cost, Figure, Fix
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
        cost=Cost.ONE_LINE,
        effect=Message("A step takes the longer of loading and computing instead of their sum."),
        source=sources.TF_DATA,
        figure=Figure.WAIT_FOR_INPUT,
        code={
            "keras": """ds = ds.batch(«batch: 32»).prefetch(tf.data.AUTOTUNE)  # last in the pipeline
model.fit(ds)
""",
            "tensorflow": """ds = ds.batch(«batch: 32»).prefetch(tf.data.AUTOTUNE)  # last in the pipeline
""",
            "pytorch": """loader = DataLoader(dataset, batch_size=«batch: 32», num_workers=«workers: 4», prefetch_factor=4)
""",
            "jax": """batches = tfds.as_numpy(ds.batch(«batch: 32»).prefetch(tf.data.AUTOTUNE))
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
        cost=Cost.ONE_LINE,
        effect=Message("The stage takes its time divided by the number of cores, as long as it runs TensorFlow ops."),
        source=sources.TF_DATA,
        figure=Figure.WAIT_FOR_INPUT,
        code={
            "keras": """ds = ds.map(decode, num_parallel_calls=tf.data.AUTOTUNE, deterministic=False)
""",
            "tensorflow": """ds = ds.map(decode, num_parallel_calls=tf.data.AUTOTUNE, deterministic=False)
""",
            "pytorch": """loader = DataLoader(dataset, batch_size=«batch: 32», num_workers=«workers: 4»)
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
        cost=Cost.ONE_LINE,
        effect=Message("From the second epoch on, everything before the cache costs nothing."),
        source=sources.TF_DATA,
        figure=Figure.WAIT_FOR_INPUT,
        code={
            "keras": """ds = ds.map(decode).cache()  # or .cache("/local/disk/train") where memory is too small
ds = ds.shuffle(10_000).map(augment).batch(«batch: 32»).prefetch(tf.data.AUTOTUNE)
""",
            "tensorflow": """ds = ds.map(decode).cache()  # or .cache("/local/disk/train") where memory is too small
ds = ds.shuffle(10_000).map(augment).batch(«batch: 32»).prefetch(tf.data.AUTOTUNE)
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
        cost=Cost.REDESIGN,
        effect=Message("The stage is freed of Python's global lock and can use all cores."),
        source=sources.TF_DATA_PYTHON,
        figure=Figure.WAIT_FOR_INPUT,
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
        cost=Cost.RETRAIN,
        effect=Message("The overhead of a call is paid once a batch: several times as fast for small functions."),
        source=sources.TF_DATA,
        figure=Figure.WAIT_FOR_INPUT,
        code={
            "keras": """ds = ds.batch(«batch: 32»).map(normalise_batch, num_parallel_calls=tf.data.AUTOTUNE)
""",
            "tensorflow": """ds = ds.batch(«batch: 32»).map(normalise_batch, num_parallel_calls=tf.data.AUTOTUNE)
""",
            "pytorch": """loader = DataLoader(dataset, batch_size=«batch: 32», collate_fn=lambda items: transform(torch.stack(items)))
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
        cost=Cost.ONE_LINE,
        effect=Message("Reading takes as long as the bandwidth allows instead of waiting for one file after the other."),
        source=sources.TF_DATA,
        figure=Figure.WAIT_FOR_INPUT,
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
        cost=Cost.ONE_LINE,
        effect=Message("Loading runs beside the step: it takes its time divided by the number of workers, hidden behind the step."),
        source=sources.TORCH_TUNING,
        figure=Figure.WAIT_FOR_INPUT,
        code={
            "pytorch": """options = {"num_workers": «workers: 4», "persistent_workers": True, "prefetch_factor": 4}
loader = DataLoader(dataset, batch_size=«batch: 32», **options)
# raise num_workers until the wait is gone or all cores are busy
""",
            "lightning": """def train_dataloader(self):
    return DataLoader(self.train, batch_size=«batch: 32», num_workers=«workers: 4», persistent_workers=True)
""",
            "huggingface": """args = TrainingArguments(..., dataloader_num_workers=«workers: 4», dataloader_persistent_workers=True)
""",
            "keras": """train = Images(files, workers=«workers: 4», use_multiprocessing=True)  # class Images(keras.utils.PyDataset)
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
        cost=Cost.REDESIGN,
        effect=Message("A loader that is the limit gets faster by what is no longer done for each example."),
        source=sources.TORCHVISION_SPEED,
        figure=Figure.WAIT_FOR_INPUT,
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
        cost=Cost.ONE_LINE,
        effect=Message("Copies run beside kernels, and are faster from pinned memory."),
        source=sources.TORCH_TUNING,
        figure=Figure.COPY_TIME,
        code={
            "pytorch": """loader = DataLoader(dataset, batch_size=«batch: 32», num_workers=«workers: 4», pin_memory=True)
for x, y in loader:
    x, y = x.to(device, non_blocking=True), y.to(device, non_blocking=True)
""",
            "lightning": """return DataLoader(self.train, batch_size=«batch: 32», num_workers=«workers: 4», pin_memory=True)
""",
        },
        urls={"pytorch": _TORCH_TUNING, "lightning": _LIGHTNING},
    ),
    Fix(
        id="load-in-background",
        title=Message("Load the next batch in a thread of its own"),
        why=Message("A loop that loads and then computes does one thing at a time. A thread that stays a few batches ahead does both."),
        check=_CHECK,
        cost=Cost.RETRAIN,
        effect=Message("A step takes the longer of loading and computing instead of their sum."),
        source=sources.TF_DATA,
        figure=Figure.WAIT_FOR_INPUT,
        code={
            "jax": """def ahead(batches, count=2):
    pool, pending = ThreadPoolExecutor(1), collections.deque()
    for _ in range(count):
        pending.append(pool.submit(next, batches))
    while True:
        pending.append(pool.submit(next, batches))
        yield jax.device_put(pending.popleft().result())
""",
            "tensorflow": """ds = tf.data.Dataset.from_generator(load, output_signature=spec).batch(«batch: 32»).prefetch(tf.data.AUTOTUNE)
""",
            "pytorch": """loader = DataLoader(dataset, batch_size=«batch: 32», num_workers=«workers: 4», prefetch_factor=4)
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
        cost=Cost.ONE_LINE,
        effect=Message("A capture from which every rule about steps can be judged."),
        source=sources.TF_PROFILER,
        figure=Figure.LOGGED_TAGS,
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
        cost=Cost.ONE_LINE,
        effect=Message("It is known whether loading or computing got slower."),
        source=sources.TF_DATA_ANALYZE,
        figure=Figure.LOGGED_TAGS,
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
        cost=Cost.ONE_LINE,
        effect=Message("The step time of the first steps comes back."),
        source=sources.NVIDIA_SMI,
        figure=Figure.STEP_TIME,
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
    Fix(
        id="tfrecord-files",
        title=Message("Store the examples in a few large files"),
        why=Message("Opening a small file takes longer than reading it, most of all over a network. Files of 100 MB are read in one go."),
        check=Message("The reading stage no longer works longest in the capture."),
        cost=Cost.REDESIGN,
        effect=Message("Large files that are read in one go instead of many small ones; each host of several can read files of its own."),
        source=sources.TF_DATA_ANALYZE,
        figure=Figure.WAIT_FOR_INPUT,
        code={
            "keras": """with tf.io.TFRecordWriter("train-00.tfrecord") as writer:
    for image, label in examples:
        writer.write(tf.train.Example(features=tf.train.Features(feature={
            "image": tf.train.Feature(bytes_list=tf.train.BytesList(value=[image])),
            "label": tf.train.Feature(int64_list=tf.train.Int64List(value=[label])),
        })).SerializeToString())

ds = tf.data.TFRecordDataset(tf.io.gfile.glob("train-*.tfrecord"), num_parallel_reads=tf.data.AUTOTUNE)
""",
            "tensorflow": """ds.shard(10, 0).save("train")  # or tf.io.TFRecordWriter; read it back with:
ds = tf.data.Dataset.load("train")
""",
            "pytorch": """images = np.lib.format.open_memmap("train.npy", mode="w+", dtype=np.uint8, shape=(count, 224, 224, 3))
for i, file in enumerate(files):
    images[i] = decode(file)  # once; training reads np.load("train.npy", mmap_mode="r")
""",
        },
        urls={
            "keras": "https://www.tensorflow.org/tutorials/load_data/tfrecord",
            "tensorflow": "https://www.tensorflow.org/api_docs/python/tf/data/Dataset#save",
            "pytorch": "https://pytorch.org/docs/stable/data.html",
        },
    ),
    Fix(
        id="data-service",
        title=Message("Prepare the input on other machines"),
        why=Message(
            "Where all cores of the host work on the input, more parallel calls bring nothing. The service adds other machines' cores."
        ),
        check=Message("The wait for input falls with each worker that is added."),
        cost=Cost.REDESIGN,
        effect=Message("Up to 32 times as fast where the hosts of the accelerators limit the input."),
        source=sources.AUDIBERT_2022,
        figure=Figure.WAIT_FOR_INPUT,
        code={
            "keras": """# one dispatcher and many workers: tf.data.experimental.service.DispatchServer(), WorkerServer()
ds = ds.apply(tf.data.experimental.service.distribute(processing_mode="parallel_epochs", service="grpc://dispatcher:5000"))
model.fit(ds.prefetch(tf.data.AUTOTUNE))
""",
            "tensorflow": """# one dispatcher and many workers: tf.data.experimental.service.DispatchServer(), WorkerServer()
ds = ds.apply(tf.data.experimental.service.distribute(processing_mode="parallel_epochs", service="grpc://dispatcher:5000"))
""",
        },
        urls={
            "keras": "https://www.tensorflow.org/api_docs/python/tf/data/experimental/service",
            "tensorflow": "https://www.tensorflow.org/api_docs/python/tf/data/experimental/service",
        },
    ),
)
