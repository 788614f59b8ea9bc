from __future__ import annotations

import random
from collections.abc import Iterator

import pytest

from packages.initializers.tests.conftest import Initializer
from packages.initializers.tests.servers import AnswerFault
from packages.initializers.tests.servers.hub_server import HubRepo, HubServer
from trainer_initializers.parts import PART_SIZE

BIG = random.Random(10).randbytes(2 * PART_SIZE + 99)
MODEL = {
    "config.json": b"{}",
    "model.safetensors": BIG,
    "pytorch_model.bin": b"\0old",
    "README.md": b"# read",
    "original/tokenizer.model": b"\0t",
}
DATASET = {"data/train.parquet": b"PAR1\0" + b"x" * 2_000_000, "tiny.py": b"print()\n", ".gitattributes": b""}


@pytest.fixture
def hub(initializer: Initializer) -> Iterator[HubServer]:
    with HubServer() as server:
        server.repos["models/meta/llama"] = HubRepo(dict(MODEL))
        server.repos["models/gpt2"] = HubRepo({"config.json": b"{}"})
        server.repos["models/meta/gated"] = HubRepo(dict(MODEL), is_gated=True)
        server.repos["datasets/tatsu/alpaca"] = HubRepo(dict(DATASET))
        server.tokens.add("hf_right")
        initializer.environ["HF_ENDPOINT"] = server.url
        yield server


@pytest.mark.parametrize(
    ("command", "uri", "environ", "names"),
    [
        pytest.param("dataset", "hf://tatsu/alpaca", {}, ["data/train.parquet", "tiny.py"], id="dataset"),
        pytest.param("dataset", "hf://tatsu/alpaca", {"IGNORE_PATTERNS": "*.py"}, ["data/train.parquet"], id="ignored"),
        pytest.param("dataset", "hf://tatsu/alpaca/data", {}, ["data/train.parquet"], id="directory of a dataset"),
        pytest.param(
            "model",
            "hf://meta/llama",
            {},
            ["config.json", "model.safetensors", "original/tokenizer.model"],
            id="model without weights of other programs",
        ),
        pytest.param(
            "model", "hf://meta/llama@main", {"ALLOW_PATTERNS": "*.bin"}, ["pytorch_model.bin"], id="revision"
        ),
        pytest.param("model", "hf://gpt2", {}, ["config.json"], id="name without a user"),
        pytest.param(
            "dataset", "hf://models/meta/llama", {"ALLOW_PATTERNS": "*.md"}, ["README.md"], id="kind in the URI"
        ),
        pytest.param(
            "model",
            "hf://meta/gated",
            {"ACCESS_TOKEN": "hf_right", "ALLOW_PATTERNS": "model*"},
            ["model.safetensors"],
            id="gated, with a token",
        ),
    ],
)
def test_fetch(
    initializer: Initializer, hub: HubServer, command: str, uri: str, environ: dict[str, str], names: list[str]
) -> None:
    """The files that the released initializer fetches are there, verified."""
    assert initializer.run(uri, command, **environ) == 0, initializer.message
    assert sorted(initializer.fetched()) == names
    everything = {**MODEL, **DATASET}
    assert initializer.fetched() == {name: everything[name] for name in names}


def test_tokens_stay_at_the_hub(initializer: Initializer, hub: HubServer) -> None:
    """The content server gets no token, and the Hub is asked once where a large file is."""
    assert initializer.run("hf://meta/gated", "model", ACCESS_TOKEN="hf_right", ALLOW_PATTERNS="model*") == 0
    content = [request for request in hub.requests if request.path.startswith("/content/")]
    assert len(content) == 3
    assert {request.authorization for request in content} == {None}
    assert len([request for request in hub.requests if "/resolve/" in request.path]) == 1


@pytest.mark.parametrize(
    "fault",
    [
        pytest.param(AnswerFault(status=500, times=2, matches="/content/"), id="content server fails"),
        pytest.param(AnswerFault(status=403, matches="/content/"), id="signature has expired"),
        pytest.param(AnswerFault(cut=100, times=3, matches="/content/"), id="truncated"),
        pytest.param(AnswerFault(flips=True, matches="/content/"), id="bytes that change on the way"),
        pytest.param(AnswerFault(status=503, matches="/tree/"), id="hub fails"),
    ],
)
def test_fault_is_survived(initializer: Initializer, hub: HubServer, fault: AnswerFault) -> None:
    """What fails once does not fail the fetch, and the file is right."""
    hub.faults.append(AnswerFault(fault.status, fault.cut, flips=fault.flips, times=fault.times, matches=fault.matches))
    assert initializer.run("hf://meta/llama", "model") == 0, initializer.message
    assert initializer.fetched()["model.safetensors"] == BIG


@pytest.mark.parametrize(
    ("uri", "environ", "message"),
    [
        pytest.param("hf://meta/absent", {}, "there is no model meta/absent, or it is private", id="no repository"),
        pytest.param("hf://meta/llama@v9", {}, "the model meta/llama has no revision v9", id="no revision"),
        pytest.param("hf://meta/gated", {}, "is gated: accept its terms at http://", id="gated"),
        pytest.param("hf://meta/llama", {"ACCESS_TOKEN": "hf_wrong"}, "ACCESS_TOKEN", id="wrong token"),
        pytest.param("hf://", {}, "names no repository", id="no name"),
        pytest.param("hf://a--b/c..d", {}, "write it as hf://user/name", id="bad name"),
        pytest.param("hf://meta/llama/nothing", {}, "has no files that are asked for", id="no directory"),
    ],
)
def test_bad_source(initializer: Initializer, hub: HubServer, uri: str, environ: dict[str, str], message: str) -> None:
    """The termination message says what is wrong with the repository, and what to do."""
    assert initializer.run(uri, "model", **environ) == 2
    assert message in initializer.message
    assert len(initializer.message.splitlines()) == 1
    assert "hf_wrong" not in initializer.message


@pytest.mark.filterwarnings("ignore:Use 'content=:DeprecationWarning")  # huggingface_hub uploads so
@pytest.mark.parametrize(
    ("uri", "below"),
    [
        pytest.param("hf://me/tuned", "", id="root"),
        pytest.param("hf://me/tuned/runs/1/", "runs/1/", id="directory"),
        pytest.param("hf://me/tuned@main/runs", "runs/", id="directory of a revision"),
    ],
)
def test_export(
    initializer: Initializer, hub: HubServer, monkeypatch: pytest.MonkeyPatch, uri: str, below: str
) -> None:
    """An export makes the repository, commits what has changed below the path, and nothing when nothing has."""
    target = initializer.target
    target.mkdir(parents=True)
    for name, content in {"adapter.safetensors": BIG, "config.json": b"{}"}.items():
        (target / name).write_bytes(content)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_DISABLE_XET", True)  # the server takes plain uploads
    run = {"command": "export", "ACCESS_TOKEN": "hf_right"}
    assert initializer.run(uri, **run) == 0, initializer.message
    repo = hub.repos["models/me/tuned"]
    assert repo.files == {f"{below}adapter.safetensors": BIG, f"{below}config.json": b"{}"}
    assert (repo.commits, len(hub.uploads)) == (1, 1)
    assert initializer.run(uri, **run) == 0
    assert repo.commits == 1
    (target / "config.json").write_bytes(b"[]")
    assert initializer.run(uri, **run) == 0
    assert (repo.files[f"{below}config.json"], repo.commits, len(hub.uploads)) == (b"[]", 2, 1)


def test_export_without_a_token(initializer: Initializer, hub: HubServer) -> None:
    """The error names the credential that is missing."""
    initializer.target.mkdir(parents=True)
    (initializer.target / "x").write_bytes(b"x")
    assert initializer.run("hf://me/tuned", "export") == 2
    assert "ACCESS_TOKEN" in initializer.message
