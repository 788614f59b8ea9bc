"""Which ordinary lines of a log tell of progress, in the style of public training scripts, and which do not."""

from __future__ import annotations

import pytest

from trainer.progress.lines.plain_lines import PlainLines
from trainer.progress.protocol import Message
from trainer.progress.run import TrainingRun

FIELDS = {"percent": "progress_percentage", "step": "current_step", "steps": "total_steps"} | {
    "epoch": "current_epoch",
    "epochs": "total_epochs",
    "train": "train_metrics",
    "eval": "eval_metrics",
}


def block_of(*texts: str, second: int = 0) -> bytes:
    """Lines of a log, one for each second."""
    times = (f"2026-01-01T00:{(second + at) // 60:02}:{(second + at) % 60:02}Z" for at in range(len(texts)))
    return "".join(f"{time} {text}\n" for time, text in zip(times, texts, strict=True)).encode()


def read(*texts: str) -> list[Message]:
    """The messages in lines of a log."""
    return [found.message for found in PlainLines().read(block_of(*texts))]


def told(*texts: str) -> dict[str, object]:
    """What a training has reported after these lines, without what it has not."""
    run = TrainingRun()
    for message, time in PlainLines().read(block_of(*texts)):
        assert run.take(message, time) == ()
    status = run.status
    shown = {short: getattr(status, name) for short, name in FIELDS.items()} if status is not None else {}
    return {name: value for name, value in shown.items() if value is not None}


STYLES = [
    pytest.param(["Epoch 3/10"], {"epoch": 2, "epochs": 10, "percent": 20}, id="header"),
    pytest.param(
        ["Epoch 3/10 loss=0.31"], {"epoch": 3, "epochs": 10, "percent": 30, "train": {"loss": "0.31"}}, id="f-string"
    ),
    pytest.param(
        ["Epoch [3/10], Loss: 0.3142"],
        {"epoch": 3, "epochs": 10, "percent": 30, "train": {"Loss": "0.3142"}},
        id="brackets",
    ),
    pytest.param(
        ["epoch 4 of 8 | train loss 0.5 | val loss 0.6 | val acc 81.2%"],
        {
            "epoch": 4,
            "epochs": 8,
            "percent": 50,
            "train": {"train_loss": "0.5"},
            "eval": {"val_loss": "0.6", "val_acc": "81.2"},
        },
        id="words",
    ),
    pytest.param(["step 120/5000"], {"step": 120, "steps": 5000, "percent": 2}, id="step"),
    pytest.param(["loss: 0.31, acc=0.91"], {"train": {"loss": "0.31", "acc": "0.91"}}, id="only metrics"),
    pytest.param(["[ 40%]"], {"percent": 40}, id="percent"),
    pytest.param(
        ["training progress: 62.5%, loss 1.5"], {"percent": 62, "train": {"loss": "1.5"}}, id="percent in words"
    ),
    pytest.param(
        ["Epoch [1/5], Step [100/600], Loss: 0.3021"],
        {"epoch": 0, "epochs": 5, "step": 100, "steps": 3000, "percent": 3, "train": {"Loss": "0.3021"}},
        id="PyTorch tutorials",
    ),
    pytest.param(
        ["Train Epoch: 2 [6400/60000 (11%)]\tLoss: 0.412033"],
        {"epoch": 1, "step": 66400, "train": {"Loss": "0.412033"}},
        id="PyTorch MNIST",
    ),
    pytest.param(
        [
            "Train Epoch: 2 [59520/60000 (99%)]\tLoss: 0.04",
            "Test set: Average loss: 0.0412, Accuracy: 9870/10000 (99%)",
        ],
        {"epoch": 1, "step": 119520, "train": {"Loss": "0.04"}, "eval": {"Average_loss": "0.0412"}},
        id="PyTorch MNIST, test",
    ),
    pytest.param(
        ["Epoch 2", "-------------------------------", "loss: 1.303167  [ 6464/60000]"],
        {"epoch": 1, "step": 66464, "train": {"loss": "1.303167"}},
        id="PyTorch quickstart",
    ),
    pytest.param(
        ["Epoch 0/24", "----------", "train Loss: 0.6582 Acc: 0.6475", "val Loss: 0.2121 Acc: 0.9281"],
        {
            "epoch": 0,
            "epochs": 24,
            "percent": 0,
            "train": {"train_Loss": "0.6582", "Acc": "0.6475"},
            "eval": {"val_Loss": "0.2121", "Acc": "0.9281"},
        },
        id="PyTorch transfer learning",
    ),
    pytest.param(
        ["[2,  4000] loss: 1.612"], {"epoch": 1, "step": 4000, "train": {"loss": "1.612"}}, id="PyTorch CIFAR"
    ),
    pytest.param(
        ["Epoch: [0][ 10/5005]\tTime  0.321 ( 1.101)\tLoss 6.9312e+00 (6.9544e+00)\tAcc@1   0.39 (  0.21)"],
        {"epoch": 0, "step": 10, "train": {"Loss": "6.9312e+00", "Acc@1": "0.39"}},
        id="PyTorch ImageNet",
    ),
    pytest.param(
        [
            (
                "Epoch: [0]  [ 100/5005]  eta: 0:41:07  lr: 0.1  img/s: 812.2  loss: 6.88 (6.92) "
                " acc1: 0.4 (0.2)  time: 0.49"
            )
        ],
        {"epoch": 0, "step": 100, "train": {"lr": "0.1", "loss": "6.88", "acc1": "0.4"}},
        id="torchvision",
    ),
    pytest.param(
        ["Train: 0 [ 150/1251 ( 12%)]  Loss: 6.93 (6.95)  Time: 0.41s, 624.11/s  LR: 1.000e-05  Data: 0.01"],
        {"epoch": 0, "step": 150, "train": {"Loss": "6.93", "LR": "1.000e-05"}},
        id="timm",
    ),
    pytest.param(
        ["iter 100: loss 3.1007, time 205.11ms, mfu 17.02%"], {"step": 100, "train": {"loss": "3.1007"}}, id="nanoGPT"
    ),
    pytest.param(
        ["step 250: train loss 2.4012, val loss 2.5103"],
        {"step": 250, "train": {"train_loss": "2.4012"}, "eval": {"val_loss": "2.5103"}},
        id="nanoGPT, evaluation",
    ),
    pytest.param(
        ["step   12/18865 | loss 10.501 (+nanz)| norm 5.12 (+nanz)| lr 1.03e-05 | 310.20 ms"],
        {"step": 12, "steps": 18865, "percent": 0, "train": {"loss": "10.501", "lr": "1.03e-05"}},
        id="llm.c",
    ),
    pytest.param(
        ["Epoch 2/4", "20/50 [========>.....................] - ETA: 3s - loss: 0.3012 - accuracy: 0.9120"],
        {
            "epoch": 1,
            "epochs": 4,
            "step": 70,
            "steps": 200,
            "percent": 35,
            "train": {"loss": "0.3012", "accuracy": "0.9120"},
        },
        id="Keras 2",
    ),
    pytest.param(
        [
            "Epoch 1/2",
            (
                "\x1b[1m50/50\x1b[0m \x1b[32m━━━━━━━━━━━━━━━━━━━━\x1b[0m\x1b[37m\x1b[0m "
                "\x1b[1m1s\x1b[0m 9ms/step - loss: 0.41 - val_loss: 0.39"
            ),
        ],
        {
            "epoch": 0,
            "epochs": 2,
            "step": 50,
            "steps": 100,
            "percent": 50,
            "train": {"loss": "0.41"},
            "eval": {"val_loss": "0.39"},
        },
        id="Keras 3",
    ),
    pytest.param(
        [" 40%|████      | 40/100 [00:12<00:18,  3.21it/s, loss=0.412]"],
        {"step": 40, "steps": 100, "percent": 40, "train": {"loss": "0.412"}},
        id="tqdm",
    ),
    pytest.param(
        ["Epoch 2/5:  10%|█         | 3/30 [00:01<00:09]\rEpoch 2/5:  50%|█████     | 15/30 [00:05<00:05, 3.0it/s]"],
        {"epoch": 1, "epochs": 5, "step": 45, "steps": 150, "percent": 30},
        id="tqdm, of an epoch",
    ),
    pytest.param(
        ["Epochs:  30%|███       | 3/10 [00:40<01:33]"], {"epoch": 3, "epochs": 10, "percent": 30}, id="tqdm, epochs"
    ),
    pytest.param(
        ["Epoch 1:  20%|██        | 20/100 [00:02<00:08,  9.80it/s, v_num=3, train_loss=0.61]"],
        {"epoch": 0, "step": 20, "train": {"train_loss": "0.61"}},
        id="Lightning",
    ),
    pytest.param(
        [
            " 60%|██████    | 300/500 [01:00<00:40,  5.01it/s]",
            "{'loss': 0.3121, 'grad_norm': 1.52, 'learning_rate': 2e-05, 'epoch': 1.8}",
        ],
        {
            "step": 300,
            "steps": 500,
            "epoch": 1,
            "percent": 60,
            "train": {"loss": "0.3121", "grad_norm": "1.52", "learning_rate": "2e-05"},
        },
        id="Hugging Face Trainer",
    ),
    pytest.param(
        ["{'eval_loss': 0.41, 'eval_accuracy': 0.88, 'eval_runtime': 3.1, 'epoch': 2.0}"],
        {"epoch": 2, "eval": {"eval_loss": "0.41", "eval_accuracy": "0.88"}},
        id="Hugging Face Trainer, evaluation",
    ),
    pytest.param(
        ["Steps:   8%|▊         | 80/1000 [00:40<07:40,  2.0it/s, lr=0.0001, step_loss=0.0312]"],
        {"step": 80, "steps": 1000, "percent": 8, "train": {"lr": "0.0001", "step_loss": "0.0312"}},
        id="diffusers",
    ),
    pytest.param(
        [
            "      Epoch    GPU_mem   box_loss   cls_loss   dfl_loss  Instances       Size",
            (
                "      3/100      2.31G      1.201      1.514      1.107         20        640:  "
                "40%|████      | 40/100 [00:10<00:15]"
            ),
        ],
        {
            "epoch": 2,
            "epochs": 100,
            "step": 240,
            "steps": 10000,
            "percent": 2,
            "train": {"box_loss": "1.201", "cls_loss": "1.514", "dfl_loss": "1.107"},
        },
        id="ultralytics",
    ),
    pytest.param(
        ["epoch 003:    120 / 500 loss=8.912, nll_loss=8.301, ppl=315.2, wps=20312, lr=1.2e-05, gnorm=2.1"],
        {
            "epoch": 2,
            "step": 1120,
            "train": {"loss": "8.912", "nll_loss": "8.301", "ppl": "315.2", "lr": "1.2e-05", "gnorm": "2.1"},
        },
        id="fairseq",
    ),
    pytest.param(
        ['2026-01-01 00:00:00 | INFO | train_inner | {"epoch": 1, "update": 0.21, "loss": "9.112", "lr": "5e-06"}'],
        {"epoch": 1, "train": {"loss": "9.112", "lr": "5e-06"}},
        id="fairseq, JSON",
    ),
    pytest.param(
        ["INFO:tensorflow:loss = 0.3112, step = 1200 (2.312 sec)"],
        {"step": 1200, "train": {"loss": "0.3112"}},
        id="TensorFlow estimator",
    ),
    pytest.param(
        ["Iteration 12, loss = 0.41230112"], {"step": 12, "train": {"loss": "0.41230112"}}, id="scikit-learn MLP"
    ),
    pytest.param(["building tree 30 of 100"], {"step": 30, "steps": 100, "percent": 30}, id="scikit-learn forest"),
    pytest.param(
        ["      Iter       Train Loss   Remaining Time ", "        10           1.0312            1.21s"],
        {"step": 10, "train": {"Train_Loss": "1.0312"}},
        id="scikit-learn boosting",
    ),
    pytest.param(
        ["[10]\ttrain-rmse:0.3112\teval-rmse:0.4011"],
        {"step": 11, "train": {"train-rmse": "0.3112"}, "eval": {"eval-rmse": "0.4011"}},
        id="XGBoost",
    ),
    pytest.param(["[10] train-rmse:0.3"], {"step": 11, "train": {"train-rmse": "0.3"}}, id="XGBoost, a blank"),
    pytest.param(
        ["[100]\ttraining's l2: 0.2011\tvalid_1's l2: 0.2312"],
        {"step": 101, "train": {"training_l2": "0.2011"}, "eval": {"valid_1_l2": "0.2312"}},
        id="LightGBM",
    ),
    pytest.param(
        ["10:\tlearn: 0.5123\ttest: 0.5411\tbest: 0.5411 (10)\ttotal: 1.2s\tremaining: 10s"],
        {"step": 11, "train": {"learn": "0.5123"}},
        id="CatBoost",
    ),
    pytest.param(
        [
            (
                " iteration      100/    5000 | consumed samples:  1600 | learning rate: "
                "1.500E-04 | lm loss: 6.512E+00 | grad norm: 1.21 |"
            )
        ],
        {
            "step": 100,
            "steps": 5000,
            "percent": 2,
            "train": {"learning_rate": "1.500E-04", "lm_loss": "6.512E+00", "grad_norm": "1.21"},
        },
        id="Megatron",
    ),
    pytest.param(
        [
            (
                "[2026-01-01 00:00:00,123] [INFO] [logging.py:96:log_dist] [Rank 0] step=100, "
                "skipped=0, lr=[1e-05], mom=[(0.9, 0.99)]"
            )
        ],
        {"step": 100, "train": {"lr": "1e-05"}},
        id="DeepSpeed",
    ),
    pytest.param(
        [
            (
                "[01/01 00:00:00 d2.utils.events]:  eta: 0:10:01  iter: 119  total_loss: 1.312  "
                "loss_cls: 0.512  lr: 0.00025  max_mem: 2010M"
            )
        ],
        {"step": 119, "train": {"total_loss": "1.312", "loss_cls": "0.512", "lr": "0.00025"}},
        id="Detectron2",
    ),
    pytest.param(
        ["01/01 00:00:00 - mmengine - INFO - Epoch(train) [1][100/500]  lr: 1.0e-02  eta: 0:30:00  loss: 0.5123"],
        {"epoch": 0, "step": 100, "train": {"lr": "1.0e-02", "loss": "0.5123"}},
        id="mmengine",
    ),
    pytest.param(
        ["01/01 00:00:00 - mmengine - INFO - Iter(train) [  100/40000]  lr: 1.0e-02  loss: 2.51"],
        {"step": 100, "steps": 40000, "percent": 0, "train": {"lr": "1.0e-02", "loss": "2.51"}},
        id="mmengine, iterations",
    ),
    pytest.param(
        [
            (
                "[2026/01/01 00:00:00] ppcls INFO: [Train][Epoch 3/100][Iter: "
                "20/500]lr(LinearWarmup): 0.0125, CELoss: 6.91, loss: 6.91"
            )
        ],
        {
            "epoch": 2,
            "epochs": 100,
            "step": 1020,
            "steps": 50000,
            "percent": 2,
            "train": {"CELoss": "6.91", "loss": "6.91"},
        },
        id="PaddleClas",
    ),
    pytest.param(
        ["Epoch 1/5", "step 100/938 - loss: 0.2011 - acc: 0.9212 - 5ms/step"],
        {
            "epoch": 0,
            "epochs": 5,
            "step": 100,
            "steps": 4690,
            "percent": 2,
            "train": {"loss": "0.2011", "acc": "0.9212"},
        },
        id="PaddlePaddle",
    ),
    pytest.param(
        [
            "epoch     train_loss  valid_loss  accuracy  time    ",
            "0         0.412311    0.301231    0.901200  00:12     ",
        ],
        {"epoch": 1, "train": {"train_loss": "0.412311", "accuracy": "0.901200"}, "eval": {"valid_loss": "0.301231"}},
        id="fastai",
    ),
    pytest.param(
        ["train epoch: 2, loss: 0.1021, accuracy: 97.21"],
        {"epoch": 2, "train": {"loss": "0.1021", "accuracy": "97.21"}},
        id="flax MNIST",
    ),
    pytest.param(
        [
            (
                "I0101 00:00:00.123456 140 train.py:147] epoch:  3, train_loss: 0.0512, "
                "train_accuracy: 98.41, test_loss: 0.0612"
            )
        ],
        {"epoch": 3, "train": {"train_loss": "0.0512", "train_accuracy": "98.41"}, "eval": {"test_loss": "0.0612"}},
        id="flax",
    ),
    pytest.param(
        ["1|40|Loss: 1.312:  40%|████      | 40/100 [00:40<01:00,  1.0s/it]"],
        {"step": 40, "steps": 100, "percent": 40, "train": {"Loss": "1.312"}},
        id="torchtune",
    ),
    pytest.param(
        ["global_step 700/1000, loss 0.2"],
        {"step": 700, "steps": 1000, "percent": 70, "train": {"loss": "0.2"}},
        id="global steps",
    ),
    pytest.param(
        ["[1,0]<stdout>:step 10/100 loss 0.5"],
        {"step": 10, "steps": 100, "percent": 10, "train": {"loss": "0.5"}},
        id="mpirun",
    ),
]


@pytest.mark.parametrize(("lines", "expected"), STYLES)
def test_styles(lines: list[str], expected: dict[str, object]) -> None:
    """Progress and metrics of a style become those of the training, and nothing that would be an error."""
    assert told(*lines) == expected


@pytest.mark.parametrize(
    "line",
    [
        "",
        "2026/11/29 10:00:00 started",
        "Sun Nov 29 10:00:00 2026",
        "/data/epoch/3/10/loss/0.3.txt",
        "saved model to /checkpoints/epoch_3/step_120/model.pt",
        "saving checkpoint of epoch 3/10",
        "using 1/2 GPUs",
        "1/2 GPUs",
        "about 3/4 of the loss is regularization",
        "the loss: 3 terms are summed",
        "we found an accuracy of 0.91 in earlier work",
        '10.0.0.1 - - [29/Nov/2026:10:00:00 +0000] "GET /epoch/3/10?step=120/5000 HTTP/1.1" 200 512',
        "GET http://127.0.0.1:8000/steps/3 200 OK 40%",
        "torch 2.10.1, step 1.2.3",
        "torch==2.10.1+cu128 accelerate==1.2",
        "Step 1/5 : FROM python:3.12",
        "Step 1: install the requirements",
        "step 2 of 3: reading the data",
        "steps per epoch: 500",
        "num_epochs: 10, max_steps=5000, batch_size=32",
        "epochs=10",
        "batch size: 16",
        "INFO:tensorflow:global_step/sec: 85.12",
        "[ 40%] Building CXX object src/kernel.cpp.o",
        "Downloading data:  45%|████▌     | 100M/230M [00:01<00:02, 60.1MB/s]",
        "Downloading shards:  50%|█████     | 1/2 [00:10<00:10, 10.1s/it]",
        "Fetching 5 files:  40%|████      | 2/5 [00:01<00:01,  2.0it/s]",
        "Loading checkpoint shards:  50%|█████     | 2/4 [00:03<00:03,  1.5s/it]",
        "Map:  40%|████      | 400/1000 [00:01<00:01, 3200.12 examples/s]",
        "Tokenizing:  10%|█         | 10/100 [00:01<00:09]",
        "100%|██████████| 170M/170M [00:05<00:00, 31.2MB/s]",
        "   ━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━ 10.2/12.0 MB 5.1 MB/s eta 0:00:01",
        "11490434/11490434 [==============================] - 0s 0us/step downloading",
        "Collecting numpy<3,>=2.0 (from torch==2.10)",
        " 40% |################                | 4.1MB 2.0MB/s",
        "Validation: 40%|████      | 4/10 [00:01<00:01]",
        "Evaluating:  40%|████      | 4/10 [00:01<00:01]",
        "Sanity Checking DataLoader 0:  50%|█████     | 1/2 [00:00<00:00]",
        "GPU 0: 40% | 20/80 GB",
        "CPU usage 40%, 3/16 cores",
        "Traceback (most recent call last):",
        '  File "/app/train.py", line 120, in step',
        "RuntimeError: mat1 and mat2 shapes cannot be multiplied (4x3 and 4x2)",
        "trainable params: 1,024 || all params: 10,240 || trainable%: 10.0",
        "ratio 3/10",
        "10.0.0.1:8080 epoch",
        "Epoch time",
        "0/0 [=====>] - loss",
        "page 3/10",
        "Retry 1/5 after 3.0 seconds",
        "[1/4] Compiling kernel.cu",
    ],
)
def test_what_is_no_progress(line: str) -> None:
    """Dates, paths, ratios, other programs and work beside the training tell nothing."""
    assert read(line) == []


@pytest.mark.parametrize(
    ("lines", "places"),
    [
        pytest.param([f"Epoch {epoch}/9 loss=0.{epoch}" for epoch in (1, 2, 3)], [1, 2, 3], id="epochs"),
        pytest.param(["Epoch 1/9", "loss: 0.5", "acc: 0.9"], [0], id="one epoch"),
        pytest.param(
            [f"step {step}/90 loss=0.5" for step in range(30)], [*range(9), 29], id="more than are told apart"
        ),
    ],
)
def test_one_second(lines: list[str], places: list[int]) -> None:
    """The lines of a fast loop are told apart, ten of a second at most; the last one always counts."""
    block = "".join(f"2026-01-01T00:00:00.{number:09}Z {line}\n" for number, line in enumerate(lines)).encode()
    found = [each.message for each in PlainLines().read(block)]
    assert [each.current_step if each.total_steps else each.current_epoch for each in found] == places
