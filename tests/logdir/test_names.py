import pytest

from tb_advisor.logdir.names import canonical, is_setting, read_name


@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("lr=0.1_bs=32", {"lr": 0.1, "bs": 32}),
        ("lr0.1", {"lr": 0.1}),
        ("seed_3", {"seed": 3}),
        ("bs-64", {"bs": 64}),
        ("sweep/adam_lr1e-3_wd0.01_seed1", {"lr": 0.001, "wd": 0.01, "seed": 1}),
        ("lr0.1/seed0", {"lr": 0.1, "seed": 0}),
        ("lr=0.1,weight_decay=0.2,opt=adam_w", {"lr": 0.1, "weight_decay": 0.2, "opt": "adam_w"}),
        ("model.lr=1e-3,seed=3", {"model.lr": 0.001, "seed": 3}),
        ("exp3_lr=0.01", {"lr": 0.01}),
        ("lr_0.1-dropout-0.5", {"lr": 0.1, "dropout": 0.5}),
        ("batch_size-128", {"batch_size": 128}),
    ],
)
def test_hyperparameters_in_a_name(name, settings):
    assert read_name(name).settings == settings


@pytest.mark.parametrize(
    "name", ["resnet50", "version_3", "run1", "lr_low", "lr3e4", "clr0.1", "test", "", "2020-01-01", "w_16", "a=", "=1"]
)
def test_names_without_hyperparameters(name):
    assert read_name(name).settings == {}


@pytest.mark.parametrize(
    ("name", "rest"),
    [
        ("adam_lr0.1", "adam"),
        ("sweep/lr0.1_2", ""),
        ("Jun25_23-40-26_4b09f93e3ce6", ""),
        ("version_3", ""),
        ("w_16_lr0.1", "w 16"),
        ("lr0.1_fold_3", "fold 3"),
        ("ResNet50", "resnet50"),
        ("digits/mlp_lr0.1", "mlp"),
        ("lr0.1/digits/seed_1", "digits"),
        ("logs/lr0.1/lightning_logs/version_0", "lightning logs"),
    ],
)
def test_what_is_left_of_a_name(name, rest):
    assert read_name(name).rest == rest


def test_directories_that_are_settings():
    assert [name for name in ("lr0.1", "seed_3", "lr=0.1_bs=32", "adam_lr0.1", "runs", "v1") if is_setting(name)] == [
        "lr0.1",
        "seed_3",
        "lr=0.1_bs=32",
    ]


def test_one_hyperparameter_under_several_names():
    assert {canonical(name) for name in ("lr", "learning_rate", "LearningRate", "optim/lr", "model.learning-rate")} == {"learning rate"}
    assert canonical("per_device_train_batch_size") == "per device train batch size"
