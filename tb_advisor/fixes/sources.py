"""Who says what fixes bring: papers by author and year, then documentation."""

from __future__ import annotations

from tb_advisor.fixes.fix import Source

ANDRYCHOWICZ_2020 = Source(
    "Andrychowicz et al. 2020, What Matters in On-Policy Reinforcement Learning?", "https://arxiv.org/abs/2006.05990"
)
AUDIBERT_2022 = Source("Audibert et al. 2022, tf.data service", "https://arxiv.org/abs/2210.14826")
BARDES_2021 = Source("Bardes et al. 2021, VICReg", "https://arxiv.org/abs/2105.04906")
BENGIO_2012 = Source(
    "Bengio 2012, Practical recommendations for gradient-based training of deep architectures", "https://arxiv.org/abs/1206.5533"
)
BOUTHILLIER_2021 = Source(
    "Bouthillier et al. 2021, Accounting for variance in machine learning benchmarks", "https://arxiv.org/abs/2103.03098"
)
BUDA_2017 = Source(
    "Buda et al. 2017, A systematic study of the class imbalance problem in convolutional neural networks",
    "https://arxiv.org/abs/1710.05381",
)
CHEN_2016 = Source("Chen et al. 2016, Training deep nets with sublinear memory cost", "https://arxiv.org/abs/1604.06174")
CLEVERT_2015 = Source("Clevert et al. 2015, Exponential linear units", "https://arxiv.org/abs/1511.07289")
COBBE_2020 = Source("Cobbe et al. 2020, Phasic policy gradient", "https://arxiv.org/abs/2009.04416")
CUBUK_2019 = Source("Cubuk et al. 2019, RandAugment", "https://arxiv.org/abs/1909.13719")
GLOROT_2010 = Source(
    "Glorot and Bengio 2010, Understanding the difficulty of training deep feedforward neural networks",
    "https://proceedings.mlr.press/v9/glorot10a.html",
)
GOYAL_2017 = Source("Goyal et al. 2017, Accurate, large minibatch SGD", "https://arxiv.org/abs/1706.02677")
GULRAJANI_2017 = Source("Gulrajani et al. 2017, Improved training of Wasserstein GANs", "https://arxiv.org/abs/1704.00028")
HESTNESS_2017 = Source("Hestness et al. 2017, Deep learning scaling is predictable, empirically", "https://arxiv.org/abs/1712.00409")
HEUSEL_2017 = Source("Heusel et al. 2017, GANs trained by a two time-scale update rule", "https://arxiv.org/abs/1706.08500")
HE_2015_INIT = Source("He et al. 2015, Delving deep into rectifiers", "https://arxiv.org/abs/1502.01852")
HE_2015_RESNET = Source("He et al. 2015, Deep residual learning for image recognition", "https://arxiv.org/abs/1512.03385")
HINTON_2015 = Source("Hinton et al. 2015, Distilling the knowledge in a neural network", "https://arxiv.org/abs/1503.02531")
HOWARD_2017 = Source("Howard et al. 2017, MobileNets", "https://arxiv.org/abs/1704.04861")
IOFFE_2015 = Source("Ioffe and Szegedy 2015, Batch normalization", "https://arxiv.org/abs/1502.03167")
KAPLAN_2020 = Source("Kaplan et al. 2020, Scaling laws for neural language models", "https://arxiv.org/abs/2001.08361")
KAPOOR_2022 = Source(
    "Kapoor and Narayanan 2022, Leakage and the reproducibility crisis in ML-based science", "https://arxiv.org/abs/2207.07048"
)
KARPATHY_2019 = Source("Karpathy 2019, A recipe for training neural networks", "https://karpathy.github.io/2019/04/25/recipe/")
KOHAVI_1995 = Source(
    "Kohavi 1995, A study of cross-validation and bootstrap for accuracy estimation and model selection",
    "https://www.ijcai.org/Proceedings/95-2/Papers/016.pdf",
)
KRISHNAMOORTHI_2018 = Source(
    "Krishnamoorthi 2018, Quantizing deep convolutional networks for efficient inference", "https://arxiv.org/abs/1806.08342"
)
KRIZHEVSKY_2012 = Source(
    "Krizhevsky et al. 2012, ImageNet classification with deep convolutional neural networks",
    "https://papers.nips.cc/paper/2012/hash/c399862d3b9d6b76c8436e924a68c45b-Abstract.html",
)
LAKSHMINARAYANAN_2016 = Source("Lakshminarayanan et al. 2016, Deep ensembles", "https://arxiv.org/abs/1612.01474")
LECUN_1998 = Source("LeCun et al. 1998, Efficient BackProp", "http://yann.lecun.com/exdb/publis/pdf/lecun-98b.pdf")
LIN_2013 = Source("Lin et al. 2013, Network in network", "https://arxiv.org/abs/1312.4400")
LIN_2017 = Source("Lin et al. 2017, Focal loss for dense object detection", "https://arxiv.org/abs/1708.02002")
LI_2020 = Source("Li et al. 2020, PyTorch distributed", "https://arxiv.org/abs/2006.15704")
LOSHCHILOV_2016 = Source("Loshchilov and Hutter 2016, SGDR", "https://arxiv.org/abs/1608.03983")
LOSHCHILOV_2017 = Source("Loshchilov and Hutter 2017, Decoupled weight decay regularization", "https://arxiv.org/abs/1711.05101")
MCCANDLISH_2018 = Source("McCandlish et al. 2018, An empirical model of large-batch training", "https://arxiv.org/abs/1812.06162")
MICIKEVICIUS_2017 = Source("Micikevicius et al. 2017, Mixed precision training", "https://arxiv.org/abs/1710.03740")
MNIH_2016 = Source("Mnih et al. 2016, Asynchronous methods for deep reinforcement learning", "https://arxiv.org/abs/1602.01783")
NORTHCUTT_2021 = Source("Northcutt et al. 2021, Pervasive label errors in test sets", "https://arxiv.org/abs/2103.14749")
PASCANU_2012 = Source("Pascanu et al. 2012, On the difficulty of training recurrent neural networks", "https://arxiv.org/abs/1211.5063")
PRECHELT_1998 = Source("Prechelt 1998, Early stopping, but when?", "https://doi.org/10.1007/3-540-49430-8_3")
SAITO_2015 = Source(
    "Saito and Rehmsmeier 2015, The precision-recall plot is more informative than the ROC plot",
    "https://doi.org/10.1371/journal.pone.0118432",
)
SALIMANS_2016 = Source("Salimans et al. 2016, Improved techniques for training GANs", "https://arxiv.org/abs/1606.03498")
SCHULMAN_2017 = Source("Schulman et al. 2017, Proximal policy optimization algorithms", "https://arxiv.org/abs/1707.06347")
SHAZEER_2018 = Source("Shazeer and Stern 2018, Adafactor", "https://arxiv.org/abs/1804.04235")
SRIVASTAVA_2014 = Source("Srivastava et al. 2014, Dropout", "https://jmlr.org/papers/v15/srivastava14a.html")
SZEGEDY_2015 = Source("Szegedy et al. 2015, Rethinking the Inception architecture", "https://arxiv.org/abs/1512.00567")
ZHANG_2016 = Source("Zhang et al. 2016, Understanding deep learning requires rethinking generalization", "https://arxiv.org/abs/1611.03530")
ZHU_2017 = Source("Zhu and Gupta 2017, To prune, or not to prune", "https://arxiv.org/abs/1710.01878")
HF_GPU = Source("Transformers, GPU training", "https://huggingface.co/docs/transformers/perf_train_gpu_one")
JAX_CACHE = Source("JAX, Persistent compilation cache", "https://docs.jax.dev/en/latest/persistent_compilation_cache.html")
JAX_FAQ_WHERE = Source("JAX FAQ, Gradients contain NaN where using where", "https://docs.jax.dev/en/latest/faq.html")
KERAS_CHECKPOINT = Source("Keras API, ModelCheckpoint", "https://keras.io/api/callbacks/model_checkpoint/")
KERAS_COMPILE = Source("Keras API, Model.compile", "https://keras.io/api/models/model_training_apis/#compile-method")
KERAS_FIT = Source("Keras API, Model.fit", "https://keras.io/api/models/model_training_apis/#fit-method")
KERAS_TENSORBOARD = Source("Keras API, TensorBoard", "https://keras.io/api/callbacks/tensorboard/")
KERAS_TERMINATE = Source("Keras API, TerminateOnNaN", "https://keras.io/api/callbacks/terminate_on_nan/")
ML_CRASH_COURSE = Source(
    "Machine Learning Crash Course, feature crosses",
    "https://developers.google.com/machine-learning/crash-course/categorical-data/feature-crosses",
)
ML_CRASH_COURSE_NN = Source(
    "Machine Learning Crash Course, activation functions",
    "https://developers.google.com/machine-learning/crash-course/neural-networks/activation-functions",
)
NVIDIA_SMI = Source("NVIDIA, nvidia-smi", "https://docs.nvidia.com/deploy/nvidia-smi/index.html")
NVIDIA_TENSOR_CORES = Source(
    "NVIDIA, Get started with deep learning performance",
    "https://docs.nvidia.com/deeplearning/performance/dl-performance-getting-started/index.html",
)
PYTHON_FAULTHANDLER = Source("Python, faulthandler", "https://docs.python.org/3/library/faulthandler.html")
PYTHON_FUNCTOOLS = Source("Python, functools.lru_cache", "https://docs.python.org/3/library/functools.html#functools.lru_cache")
PYTHON_TRACEMALLOC = Source("Python, tracemalloc", "https://docs.python.org/3/library/tracemalloc.html")
SB3_CALLBACKS = Source("Stable-Baselines3, Callbacks", "https://stable-baselines3.readthedocs.io/en/master/guide/callbacks.html")
SB3_TIPS = Source(
    "Stable-Baselines3, Reinforcement learning tips and tricks", "https://stable-baselines3.readthedocs.io/en/master/guide/rl_tips.html"
)
TB_RUNS = Source("TensorBoard, README: runs", "https://github.com/tensorflow/tensorboard/blob/master/README.md")
TENSORBOARD_SAMPLES = Source(
    "TensorBoard, README: is TensorBoard showing all my data?", "https://github.com/tensorflow/tensorboard/blob/master/README.md"
)
TF_CHECKPOINT = Source("TensorFlow guide, Training checkpoints", "https://www.tensorflow.org/guide/checkpoint")
TF_DATA = Source("TensorFlow guide, Better performance with the tf.data API", "https://www.tensorflow.org/guide/data_performance")
TF_DATA_ANALYZE = Source(
    "TensorFlow guide, Analyze tf.data performance with the Profiler", "https://www.tensorflow.org/guide/data_performance_analysis"
)
TF_DATA_PYTHON = Source(
    "TensorFlow guide, tf.data: applying arbitrary Python logic", "https://www.tensorflow.org/guide/data#applying_arbitrary_python_logic"
)
TF_DEBUGGER = Source("TensorBoard, Debugging numerical issues with Debugger V2", "https://www.tensorflow.org/tensorboard/debugger_v2")
TF_DEBUGGING = Source("TensorFlow API, tf.debugging", "https://www.tensorflow.org/api_docs/python/tf/debugging")
TF_DISTRIBUTED_INPUT = Source("TensorFlow tutorial, Distributed input", "https://www.tensorflow.org/tutorials/distribute/input")
TF_FUNCTION = Source("TensorFlow guide, Better performance with tf.function", "https://www.tensorflow.org/guide/function")
TF_GPU = Source("TensorFlow guide, Optimize GPU performance with the Profiler", "https://www.tensorflow.org/guide/gpu_performance_analysis")
TF_IMBALANCED = Source(
    "TensorFlow tutorial, Classification on imbalanced data", "https://www.tensorflow.org/tutorials/structured_data/imbalanced_data"
)
TF_MIXED = Source("TensorFlow guide, Mixed precision", "https://www.tensorflow.org/guide/mixed_precision")
TF_NUMERICS = Source(
    "TensorFlow API, tf.debugging.enable_check_numerics", "https://www.tensorflow.org/api_docs/python/tf/debugging/enable_check_numerics"
)
TF_OVERFITTING = Source("TensorFlow tutorial, Overfit and underfit", "https://www.tensorflow.org/tutorials/keras/overfit_and_underfit")
TF_PROFILER = Source("TensorFlow guide, Profiler", "https://www.tensorflow.org/guide/profiler")
TF_SCALARS = Source("TensorBoard, Scalars", "https://www.tensorflow.org/tensorboard/scalars_and_keras")
TF_SERVING = Source("TensorFlow Serving, Serving a model", "https://www.tensorflow.org/tfx/serving/serving_basic")
TF_SOFTMAX_LOGITS = Source(
    "TensorFlow API, sparse_softmax_cross_entropy_with_logits",
    "https://www.tensorflow.org/api_docs/python/tf/nn/sparse_softmax_cross_entropy_with_logits",
)
TF_XLA_SHAPES = Source("TensorFlow, XLA: known issues", "https://www.tensorflow.org/xla/known_issues")
TORCHVISION_SPEED = Source(
    "Torchvision, Transforms: performance considerations", "https://pytorch.org/vision/stable/transforms.html#performance-considerations"
)
TORCH_2 = Source("PyTorch 2.x", "https://pytorch.org/get-started/pytorch-2.0/")
TORCH_ASYNC_SAVE = Source(
    "PyTorch tutorial, Asynchronous saving", "https://pytorch.org/tutorials/recipes/distributed_async_checkpoint_recipe.html"
)
TORCH_AUTOGRAD = Source("PyTorch notes, Autograd mechanics", "https://pytorch.org/docs/stable/notes/autograd.html")
TORCH_COMM_HOOKS = Source("PyTorch, DDP communication hooks", "https://pytorch.org/docs/stable/ddp_comm_hooks.html")
TORCH_CUDA = Source("PyTorch notes, CUDA semantics", "https://pytorch.org/docs/stable/notes/cuda.html")
TORCH_DATA = Source("PyTorch, torch.utils.data", "https://pytorch.org/docs/stable/data.html")
TORCH_DEFAULT_DTYPE = Source("PyTorch, set_default_dtype", "https://pytorch.org/docs/stable/generated/torch.set_default_dtype.html")
TORCH_DISTRIBUTED = Source("PyTorch, torch.distributed", "https://pytorch.org/docs/stable/distributed.html")
TORCH_FAQ = Source("PyTorch notes, Frequently asked questions", "https://pytorch.org/docs/stable/notes/faq.html")
TORCH_OPTIM = Source("PyTorch, torch.optim", "https://pytorch.org/docs/stable/optim.html")
TORCH_RANDOMNESS = Source("PyTorch notes, Reproducibility", "https://pytorch.org/docs/stable/notes/randomness.html")
TORCH_SCHEDULES = Source("PyTorch, How to adjust learning rate", "https://pytorch.org/docs/stable/optim.html#how-to-adjust-learning-rate")
TORCH_SNAPSHOT = Source("PyTorch, Understanding CUDA memory usage", "https://pytorch.org/docs/stable/torch_cuda_memory.html")
TORCH_TENSORBOARD = Source("PyTorch, torch.utils.tensorboard", "https://pytorch.org/docs/stable/tensorboard.html")
TORCH_TUNING = Source("PyTorch recipe, Performance tuning guide", "https://pytorch.org/tutorials/recipes/recipes/tuning_guide.html")
TUNING_PLAYBOOK = Source(
    "Deep Learning Tuning Playbook", "https://developers.google.com/machine-learning/guides/deep-learning-tuning-playbook"
)
JAX_MEMORY = Source("JAX, GPU memory allocation", "https://docs.jax.dev/en/latest/gpu_memory_allocation.html")
