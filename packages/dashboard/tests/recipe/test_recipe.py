"""What a TrainJob runs, as its page says it."""

from __future__ import annotations

import tracemalloc
from typing import Any

import pytest

from packages.dashboard.tests.conftest import train_job
from trainer.kube.logs.redaction import REDACTED
from trainer_dashboard.recipe.recipe import recipe_of


def recipe(**trainer: Any) -> dict[str, Any]:
    """That of a TrainJob with such a trainer."""
    job = train_job()
    job["spec"]["trainer"] = trainer
    return recipe_of(job)


START = ["python3", "/mnt/trainer/source/start.py"]


@pytest.mark.parametrize(
    ("command", "shown", "repository", "revision", "is_packed"),
    [
        pytest.param(["python", "train.py"], ["python", "train.py"], "", "", False, id="command"),
        pytest.param([*START, "--", "torchrun", "a.py"], ["torchrun", "a.py"], "", "", True, id="packed"),
        pytest.param(
            [*START, "--git", "https://host/repository", "abc123", "--", "python3", "a.py"],
            ["python3", "a.py"], "https://host/repository", "abc123", False, id="git",
        ),
        pytest.param(
            ["mpirun", "-x", "PATH", *START, "--", "python3", "a.py"],
            ["mpirun", "-x", "PATH", "python3", "a.py"], "", "", True, id="mpi",
        ),
        pytest.param(START, START, "", "", False, id="start-alone"),
        pytest.param(None, [], "", "", False, id="left-to-the-runtime"),
    ],
)  # fmt: skip
def test_command(command: Any, shown: list[str], repository: str, revision: str, is_packed: bool) -> None:
    """The command is that of the user, without the program that prepares a node, which says where the code is from."""
    found = recipe(command=command)
    assert (found["command"], found["repository"], found["revision"]) == (shown, repository, revision)
    assert found["isPacked"] is is_packed


@pytest.mark.parametrize(
    ("words", "shown"),
    [
        (["--hub-token", "hf_abc123"], ["--hub-token", REDACTED]),
        (["--hub-token=hf_abc123", "--lr", "1"], [f"--hub-token={REDACTED}", "--lr", "1"]),
        (["--hub-token", "--lr"], ["--hub-token", "--lr"]),
        (["--tokenizer", "gpt2"], ["--tokenizer", "gpt2"]),
        (["--password", "-Secret1"], ["--password", REDACTED]),
        (["--api-keys", "Secret1", "Secret2", "--lr"], ["--api-keys", REDACTED, REDACTED, "--lr"]),
        (["-u", "user:Secret1"], ["-u", f"user:{REDACTED}"]),
        (["--db=postgres://u:Secret1@h"], [f"--db=postgres://u:{REDACTED}@h"]),
        (["-c", "cd /w && HF_TOKEN=Secret1 python t.py"], ["-c", f"cd /w && HF_TOKEN={REDACTED} python t.py"]),
        (["x" * 5000], ["x" * 2048 + "..."]),
    ],
)
def test_arguments(words: list[str], shown: list[str]) -> None:
    """Values that may be secret are hidden, and very long words are cut."""
    assert recipe(args=words)["args"] == shown


def test_split_option() -> None:
    """The value of the last option of the command is the first of the arguments."""
    found = recipe(command=["python", "t.py", "--hub-token"], args=["hf_abc123", "--lr"])
    assert (found["command"], found["args"]) == (["python", "t.py", "--hub-token"], [REDACTED, "--lr"])


@pytest.mark.parametrize(
    ("trainer", "parameters"),
    [
        pytest.param(
            {"command": [*START, "--", "torchrun", "--nnodes", "2", "a.py"], "args": ["--lr", "0.1"]}, [("lr", "0.1")],
            id="packed",
        ),
        pytest.param(
            {"command": ["bash", "-c"], "args": [f"{'# why' * 600}\npython a.py --hub-token hf_abc123 --lr 1"]},
            [("hub-token", REDACTED), ("lr", "1")],
            id="shell",
        ),
        pytest.param({}, [], id="left-to-the-runtime"),
    ],
)  # fmt: skip
def test_parameters(trainer: dict[str, Any], parameters: list[tuple[str, str]]) -> None:
    """Parameters are those of the program, of long scripts too, and none of them is a secret."""
    assert recipe(**trainer)["parameters"] == parameters


def test_credentials_in_addresses() -> None:
    """Passwords in the addresses of code, data and proxies are hidden."""
    job = train_job()
    job["spec"]["trainer"] = {
        "command": [*START, "--git", "https://u:Secret1@host/repository", "main", "--", "python3", "a.py"],
        "env": [{"name": "HTTPS_PROXY", "value": "http://u:Secret1@proxy"}],
    }
    job["spec"]["initializer"] = {"dataset": {"storageUri": "s3://KEY:Secret1@host/x"}}
    found = recipe_of(job)
    assert "Secret1" not in str(found)
    assert found["repository"] == f"https://u:{REDACTED}@host/repository"


def test_variables() -> None:
    """A variable has its value, or where that comes from; one that may be secret is hidden."""
    secret = {"secretKeyRef": {"name": "hub", "key": "token"}}
    variables = [
        {"name": "HF_HOME", "value": "/cache"},
        {"name": "HUB_TOKEN", "value": "hf_abc123"},
        {"name": "KEY", "valueFrom": secret},
    ]
    assert recipe(env=variables)["env"] == [
        {"name": "HF_HOME", "value": "/cache", "origin": ""},
        {"name": "HUB_TOKEN", "value": REDACTED, "origin": ""},
        {"name": "KEY", "value": "", "origin": "secret hub token"},
    ]


def test_rest() -> None:
    """The page has resources, data, and the revision that an annotation names."""
    job = train_job()
    job["metadata"]["annotations"] = {"example.com/git-revision": "abc123"}
    job["spec"]["trainer"] = {
        "image": "a:1",
        "numProcPerNode": 4,
        "resourcesPerNode": {"limits": {"nvidia.com/gpu": 2}},
    }
    job["spec"]["initializer"] = {"dataset": {"storageUri": "hf://data"}, "model": {}}
    found = recipe_of(job)
    assert (found["image"], found["processes"], found["revision"]) == ("a:1", "4", "abc123")
    assert (found["resources"], found["data"]) == ({"nvidia.com/gpu": "2"}, [["dataset", "hf://data"]])


def test_emptiness() -> None:
    """Whatever is in the place of a list or an object, there is an answer."""
    found = recipe(command="python", args={}, env=[{}, {"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "x"}}}])
    assert (found["command"], found["args"]) == ([], [])
    assert [each["origin"] for each in found["env"]] == ["", "field x"]


def test_bounds() -> None:
    """Of a TrainJob as large as the API server takes only a part is read, and nothing of it is kept."""
    huge = ["--" + f"{index}" + "a" * 1_000_000 for index in range(2)]
    tracemalloc.start()
    variables = [{"name": "A", "value": "b" * 2000}] * 400
    found = recipe(command=huge, args=["python --token hunter2 " * 200] * 400, env=variables)
    kept = tracemalloc.get_traced_memory()[0] - len(str(found))
    tracemalloc.stop()
    words = [*found["command"], *found["args"]]
    assert sum(map(len, words)) < 64 * 1024
    assert words[-1] == "..."
    assert "hunter2" not in str(words)
    assert [len(each["value"]) for each in found["env"]][-2:] == [2000, 3]
    assert kept < 4_000_000
