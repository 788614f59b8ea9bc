from __future__ import annotations

from pathlib import Path

import pytest

from packages.initializers.tests.conftest import Initializer, contents

FILES = {"a.json": b"{}", "data/b.bin": b"bb", "data/c.tmp": b"", "logs/d.log": b"d"}


@pytest.fixture
def source(tmp_path: Path) -> Path:
    for name, content in FILES.items():
        path = tmp_path / "pvc" / "shared" / "set" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    return tmp_path / "pvc" / "shared" / "set"


@pytest.mark.parametrize(
    ("environ", "names"),
    [
        pytest.param({}, list(FILES), id="all"),
        pytest.param({"IGNORE_PATTERNS": " *.log , *.tmp "}, ["a.json", "data/b.bin"], id="ignored"),
        pytest.param({"IGNORE_PATTERNS": "data/"}, ["a.json", "logs/d.log"], id="ignored directory"),
        pytest.param({"ALLOW_PATTERNS": "data/*"}, ["data/b.bin", "data/c.tmp"], id="allowed"),
        pytest.param({"ALLOW_PATTERNS": "data/*", "IGNORE_PATTERNS": "*.tmp"}, ["data/b.bin"], id="ignored wins"),
    ],
)
def test_claim(initializer: Initializer, source: Path, environ: dict[str, str], names: list[str]) -> None:
    """Files of a mounted claim are copied with their directories; patterns choose among them."""
    environ["PVC_PATH"] = str(source.parents[1])
    assert initializer.run("pvc://shared/set", **environ) == 0, initializer.message
    assert initializer.fetched() == {name: FILES[name] for name in sorted(names)}


def test_directory_and_file(initializer: Initializer, source: Path) -> None:
    """`file://` copies a directory or one file."""
    assert initializer.run(f"file://{source}/data/b.bin") == 0
    assert initializer.fetched() == {"b.bin": b"bb"}


def test_what_changes_and_what_vanishes(initializer: Initializer, source: Path) -> None:
    """A fetch into the same target makes it what the source is now."""
    assert initializer.run(f"file://{source}") == 0
    (source / "a.json").write_bytes(b"[1]")
    (source / "logs" / "d.log").unlink()
    assert initializer.run(f"file://{source}") == 0
    assert initializer.fetched() == {"a.json": b"[1]", "data/b.bin": b"bb", "data/c.tmp": b""}


@pytest.mark.parametrize(
    ("uri", "message"),
    [
        pytest.param("", "STORAGE_URI is not set: set storageUri in the TrainJob", id="none"),
        pytest.param("no-scheme/x", "has no scheme: write it as", id="no scheme"),
        pytest.param("ftp://host/x", "ftp:// is not supported: use one of ", id="unknown scheme"),
        pytest.param("cache://schema/table", "the data cache of Kubeflow Trainer (Go) only", id="data cache"),
        pytest.param("pvc://absent/x", "the claim absent is not mounted: mount it at", id="claim that is not mounted"),
        pytest.param("pvc://shared/../../x", "leads out of the claim", id="path out of the claim"),
        pytest.param("pvc:///x", "names no claim", id="no claim"),
        pytest.param("file:///does/not/exist", "/does/not/exist does not exist", id="no directory"),
        pytest.param("file:relative", "has no scheme", id="file without slashes"),
        pytest.param("https:///x", "names no host", id="no host"),
        pytest.param("http://[::1/x", "is no URI", id="no URI"),
    ],
)
def test_bad_uri(initializer: Initializer, source: Path, uri: str, message: str) -> None:
    """A URI that cannot be fetched ends with one line that says what to write."""
    assert initializer.run(uri, PVC_PATH=str(source.parents[1])) == 2
    assert message in initializer.message
    assert len(initializer.message.splitlines()) == 1


def test_nothing_is_selected(initializer: Initializer, source: Path) -> None:
    """Patterns that leave nothing are an error that names them."""
    assert initializer.run(f"file://{source}", IGNORE_PATTERNS="*") == 2
    assert "has no files that are asked for; IGNORE_PATTERNS=*" in initializer.message


@pytest.mark.parametrize("value", ["0", "many", "1e9", "nan"])
def test_bad_number(initializer: Initializer, source: Path, value: str) -> None:
    """A setting out of range is refused with its name."""
    assert initializer.run(f"file://{source}", TRANSFER_CONNECTIONS=value) == 2
    assert initializer.message == f"dataset: TRANSFER_CONNECTIONS='{value}' must be a number from 1 to 128"


def test_export_to_a_directory(initializer: Initializer, source: Path, tmp_path: Path) -> None:
    """An export writes what has changed since the last one, and the index."""
    uri, environ = f"file://{tmp_path}/out", {"TRANSFER_PATH": str(source), "IGNORE_PATTERNS": "*.tmp"}
    assert initializer.run(uri, "export", **environ) == 0, initializer.message
    assert contents(tmp_path / "out") == {name: FILES[name] for name in FILES if name != "data/c.tmp"}
    before = (tmp_path / "out" / "a.json").stat().st_mtime_ns
    (source / "data" / "b.bin").write_bytes(b"BB")
    assert initializer.run(uri, "export", **environ) == 0
    assert (tmp_path / "out" / "a.json").stat().st_mtime_ns == before
    assert (tmp_path / "out" / "data" / "b.bin").read_bytes() == b"BB"


def test_export_is_listed(initializer: Initializer, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """An export says by name what is there now, and of many files how many there are."""
    adapters = tmp_path / "adapters"
    adapters.mkdir()
    (adapters / "a.safetensors").write_bytes(b"12345")
    assert initializer.run(f"file://{tmp_path}/out", "export", TRANSFER_PATH=str(adapters)) == 0
    assert f"file://{tmp_path}/out/a.safetensors, 5 bytes\n" in capsys.readouterr().out
    for number in range(21):
        (adapters / f"b{number}").touch()
    assert initializer.run(f"file://{tmp_path}/out", "export", TRANSFER_PATH=str(adapters)) == 0
    assert "\nand 2 other files\n" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("files", "exported"),
    [
        pytest.param(["step-9/model.pt", "step-10/model.pt", "step-10/data/a"], "step-10", id="the-last"),
        pytest.param(
            ["step-9/model.pt", ".partial-step-10/model.pt", "step-11x/a", "step-12"], "step-9", id="complete"
        ),
        pytest.param(
            ["checkpoint-5/trainer_state.json", "checkpoint-5/model.bin", "checkpoint-6/model.bin"],
            "checkpoint-5",
            id="transformers",
        ),
    ],
)
def test_export_of_a_checkpoint(
    initializer: Initializer, tmp_path: Path, capsys: pytest.CaptureFixture[str], files: list[str], exported: str
) -> None:
    """Of the directory of checkpoints the last complete one is exported, and nothing where a link has its name."""
    directory = tmp_path / "checkpoints"
    for name in files:
        (directory / name).parent.mkdir(parents=True, exist_ok=True)
        (directory / name).write_text(name)
    (directory / "step-99").symlink_to(tmp_path)
    environ = {"TRANSFER_PATH": f"{directory}/", "TRAINER_CHECKPOINT_DIR": str(directory)}
    assert initializer.run(f"file://{tmp_path}/out", "export", **environ) == 0, initializer.message
    assert contents(tmp_path / "out") == contents(directory / exported)
    assert f"{directory}/{exported} is in file://{tmp_path}/out" in capsys.readouterr().out


def test_export_beside_checkpoints(initializer: Initializer, source: Path, tmp_path: Path) -> None:
    """A training with checkpoints exports what its user names, and what it has not saved is an error."""
    environ = {"TRANSFER_PATH": str(source / "data"), "TRAINER_CHECKPOINT_DIR": str(source)}
    assert initializer.run(f"file://{tmp_path}/out", "export", **environ) == 0, initializer.message
    environ = {"TRANSFER_PATH": str(source), "TRAINER_CHECKPOINT_DIR": str(source)}
    assert initializer.run(f"file://{tmp_path}/out", "export", **environ) == 2
    assert f"export: {source} has no complete checkpoint, such as step-1200: check" in initializer.message


def test_export_of_nothing(initializer: Initializer, tmp_path: Path) -> None:
    """A training that has written nothing has nothing to export, which is an error."""
    assert initializer.run(f"file://{tmp_path}/out", "export", TRANSFER_PATH=str(tmp_path / "empty")) == 2
    assert "has no files to export: check the volume" in initializer.message
