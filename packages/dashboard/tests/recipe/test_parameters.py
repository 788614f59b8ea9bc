"""The parameters that a command line names."""

from __future__ import annotations

import shlex

import pytest

from trainer.kube.logs.redaction import REDACTED
from trainer_dashboard.recipe.parameters import parameters_of

LR = {"lr": "1e-3"}


@pytest.mark.parametrize(
    ("command", "parameters"),
    [
        ("python train.py --lr 0.1 --batch-size=32 --fp16", {"lr": "0.1", "batch-size": "32", "fp16": ""}),
        ("--lr 1e-3", LR),
        ("python train.py model.lr=0.1 +trainer.devices=2", {"model.lr": "0.1", "+trainer.devices": "2"}),
        ("python train.py --shift -0.5 --size 2 3", {"shift": "-0.5", "size": "2 3"}),
        ("python train.py --lr 1 --size 2 3 --lr=1e-3", LR | {"size": "2 3"}),
        ("python train.py --fp16 --lr 1e-3 --fp16", {"fp16": ""} | LR),
        ("python train.py lr=1 lr=1e-3", LR),
        ("python train.py --token hf_abc123 --token hf_abc456", {"token": REDACTED}),
        ("python train.py data", {}),
        ("python", {}),
        ("", {}),
        ("python -c print(1) --lr 1e-3", LR),
        ("python3.11 -u -W ignore -X dev train --lr 1e-3", LR),
        ("python -m trl.sft --lr 1e-3", LR),
        ("torchrun --nnodes 2 --rdzv-endpoint=a:1 train.py --lr 1e-3", LR),
        ("torchrun --nproc-per-node 2 -m pkg.train --lr 1e-3", LR),
        ("torchrun --nnodes 2 train", {}),
        ("python -m torch.distributed.run --nproc_per_node 2 train.py --lr 1e-3", LR),
        ("python -u -m torch.distributed.run --nproc_per_node 2 -m pkg.train --lr 1e-3", LR),
        ("python -m torch.distributed.launch --use-env --nnodes 2 train.py --lr 1e-3", LR),
        ("accelerate launch --config_file a.yaml --num_processes 2 train.py --lr 1e-3", LR),
        ("deepspeed --num_gpus 2 --module pkg.train --lr 1e-3", LR),
        ("mpirun -np 4 -x A=1 -mca btl tcp python train.py --lr 1e-3", LR),
        ("numactl --cpunodebind 0 python train.py --lr 1e-3", LR),
        ("uv run train.py --lr 1e-3", LR),
        ("yolo train data=coco.yaml epochs=3", {"data": "coco.yaml", "epochs": "3"}),
        ("bash run.sh --lr 1e-3", LR),
        ("env A=1 sh run.sh --lr 1e-3", LR),
        ("python train.py --hub-token hf_abc123 --lr 1e-3", {"hub-token": REDACTED} | LR),
        ("python train.py --max-new-tokens 20", {"max-new-tokens": "20"}),
    ],
)
def test_command(command: str, parameters: dict[str, str]) -> None:
    """Options of the program count, and not those of an interpreter or launcher."""
    assert parameters_of(shlex.split(command)) == parameters


@pytest.mark.parametrize(
    ("script", "parameters"),
    [
        pytest.param("python train.py --lr 1e-3", LR, id="one"),
        pytest.param("pip install --upgrade x && cd /w; torchrun --nnodes 2 a.py --lr 1e-3", LR, id="last"),
        pytest.param("torchrun a.py --lr 1e-3 && python notify.py --to me", LR, id="launcher"),
        pytest.param("python a.py --lr 1e-3\nwait", LR, id="lines"),
        pytest.param("python a.py \\\n  --lr 1e-3 \\\n  # --no 1\n", LR, id="continued"),
        pytest.param("python a.py --lr 1e-3 > log 2>&1 | tee --append log", LR, id="pipe"),
        pytest.param("HF=1 exec python a.py --lr 1e-3 &", LR, id="assignment"),
        pytest.param("(cd /w && python a.py --lr 1e-3)", LR, id="subshell"),
        pytest.param("python a.py --name 'a b' --n \"it's \\\"x\\\"\"", {"name": "a b", "n": 'it\'s "x"'}, id="quotes"),
        pytest.param("python a.py --lr $LR --t a\\ b --n 'x;y'", {"lr": "$LR", "t": "a b", "n": "x;y"}, id="escapes"),
        pytest.param("python a.py --color #fff --lr=1e-3 a#b", {"color": ""}, id="comment"),
        pytest.param("bash -c 'python a.py --lr 1e-3'", LR, id="nested"),
        pytest.param("echo --lr 1", {"lr": "1"}, id="nothing-better"),
        pytest.param("python a.py --lr 1e-3 --open 'no end", LR | {"open": "no end"}, id="open-quote"),
        pytest.param("", {}, id="empty"),
    ],
)  # fmt: skip
def test_script(script: str, parameters: dict[str, str]) -> None:
    """The script of a shell is split as the shell does, and its last command that trains counts."""
    assert parameters_of(["bash", "-c", script]) == parameters


@pytest.mark.parametrize(
    "words",
    [
        ["/bin/sh", "-c", 'python a.py "$@"', "--", "--lr", "1e-3"],
        ["bash", "-euo", "pipefail", "-c", "python a.py --lr 1e-3"],
        ["bash", "-c", "-e", "python a.py --lr 1e-3"],
        ["env", "A=1", "bash", "-lc", "python a.py --lr 1e-3"],
    ],
)
def test_shell(words: list[str]) -> None:
    """Options of the shell are none of the script, whose arguments stand where it asks for them."""
    assert parameters_of(words) == LR


@pytest.mark.parametrize("part", ['"\\', "'\"", "a=", "$(", "#", "\\\n", "1<", "sh -c '"])
def test_hostile_script(part: str) -> None:
    """Of a script that never ends no more is read than there may be."""
    assert parameters_of(["sh", "-c", f"{part * 100_000}\npython a.py --lr 1e-3"]) == {}
    assert len(parameters_of([f"--a{number}" for number in range(2000)])) == 500
