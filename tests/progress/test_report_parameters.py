"""The parameters that a sweep has chosen, as a training script reads them with the file that is copied beside it."""

from __future__ import annotations

import copy
import json
import os
import pickle
import re
import subprocess
import sys
from pathlib import Path

import pytest

from trainer.api.optimization import variable_of
from trainer.progress import report
from trainer.progress.report import parameters
from trainer.progress.samples import SampleReader

STAMP = b"2026-01-02T03:04:05.000000006Z "


@pytest.fixture(autouse=True)
def outside_of_a_sweep(monkeypatch: pytest.MonkeyPatch) -> None:
    """No parameter is chosen, and nothing is printed."""
    monkeypatch.setattr(report, "_reporter", report.Reporter(lambda _: True))
    for name in [name for name in os.environ if name.startswith(report.PARAMETER_PREFIX)]:
        monkeypatch.delenv(name)


@pytest.mark.parametrize("name", ["lr", "LR", "learning-rate", "optim.lr", "a b", "ß", "größe", "lr_2", "²", "٣"])
def test_variable(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A parameter is found under the name that the sweep has for it."""
    monkeypatch.setenv(variable_of(name), "0.5")
    assert parameters()[name] == 0.5


@pytest.mark.parametrize(
    ("text", "value"),
    [
        pytest.param("32", 32, id="int"),
        pytest.param("1e-5", 1e-5, id="float"),
        pytest.param("-0.10", -0.1, id="negative"),
        pytest.param("true", True, id="true"),
        pytest.param("false", False, id="false"),
        *(
            pytest.param(text, text, id=repr(text[:9]))
            for text in (
                "adam", "", " 1", "1_000", "016", "nan", "NaN", "-Infinity", "1e999", "9" * 5000, "1" * 400, "True",
                "null", "[1]", "[" * 100_000, '"1"',
            )
        ),
    ],
)  # fmt: skip
def test_value(text: str, value: object, monkeypatch: pytest.MonkeyPatch) -> None:
    """Numbers of JSON, true and false are that, and all else stays text."""
    monkeypatch.setenv("KUBEFLOW_TRAINER_OPT_X", text)
    found = parameters().x
    assert (found, type(found)) == (value, type(value))


@pytest.mark.parametrize(
    ("text", "default", "value"),
    [
        pytest.param("1", 0.1, 1.0, id="float of an integer"),
        pytest.param("1e-3", 0.1, 1e-3, id="float"),
        pytest.param("32.0", 16, 32, id="int of a float"),
        pytest.param("64", 16, 64, id="int"),
        pytest.param("16", "8", "16", id="text of digits"),
        pytest.param("true", "8", "true", id="text of a word"),
        pytest.param("True", False, True, id="bool as Python prints it"),
        pytest.param("0", True, False, id="bool of a digit"),
        pytest.param("16", None, 16, id="no type"),
        pytest.param(None, 16, 16, id="not chosen"),
        pytest.param(
            "32.5", 16, "is '32.5', which is no int as the default of x: give it another default", id="no int"
        ),
        pytest.param("true", 1, "is 'true', which is no int as the default of x: give it another default", id="a bool"),
        pytest.param("adam", 0.1, "is 'adam', which is no float as the default of x", id="no float"),
        pytest.param("2", True, "is '2', which is no bool as the default of x", id="no bool"),
    ],
)
def test_default(text: str | None, default: object, value: object, monkeypatch: pytest.MonkeyPatch) -> None:
    """The type of a default decides, and a value that cannot have it is an error that names the variable."""
    if text is not None:
        monkeypatch.setenv("KUBEFLOW_TRAINER_OPT_X", text)
    if isinstance(value, str) and value.startswith("is "):
        with pytest.raises(ValueError, match=re.escape(f"KUBEFLOW_TRAINER_OPT_X {value}")):
            parameters(x=default)
        return
    found = parameters(x=default).x
    assert (found, type(found)) == (value, type(value))


MISSING = (
    "there is no parameter Lr: the variable KUBEFLOW_TRAINER_OPT_LR is not set; outside of a sweep give it a default, "
    "as in parameters(Lr=...)"
)


def test_missing() -> None:
    """The error names the variable and the remedy; what asks first gets what it expects."""
    found = parameters(bs=32)
    with pytest.raises(AttributeError) as by_attribute:
        _ = found.Lr
    with pytest.raises(KeyError) as by_item:
        _ = found["Lr"]
    assert (str(by_attribute.value), by_item.value.args) == (MISSING, (MISSING,))
    assert (getattr(found, "lr", 1), found.get("lr", 2), "lr" in found, hasattr(found, "BS")) == (1, 2, False, True)


def test_mapping(monkeypatch: pytest.MonkeyPatch) -> None:
    """They are a mapping like others, by names in small letters, and read like the call that makes them."""
    monkeypatch.setenv("KUBEFLOW_TRAINER_OPT_LEARNING_RATE", "1")
    found = parameters(**{"learning-rate": 0.1, "values": 3})
    assert dict(found) == {**found} == {"learning_rate": 1.0, "values": 3}
    assert (len(found), repr(found)) == (2, "parameters(learning_rate=1.0, values=3)")
    assert found["learning-rate"] == found.learning_rate == found["LEARNING_RATE"] == 1.0
    assert copy.deepcopy(found) == pickle.loads(pickle.dumps(found)) == found


def test_of_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first process says once what the sweep has chosen, digit by digit, where history and page look for it."""
    lines: list[bytes] = []

    def write(line: bytes) -> bool:
        lines.append(line)
        return True

    monkeypatch.setattr(report, "_reporter", report.Reporter(write))
    parameters(depth=3)
    assert lines == []
    monkeypatch.setenv("KUBEFLOW_TRAINER_OPT_LR", "1e-05")
    monkeypatch.setenv("RANK", "1")
    parameters(depth=3)
    assert lines == []
    monkeypatch.setenv("RANK", "0")
    parameters(depth=3)
    parameters()
    (line,) = lines
    reader = SampleReader()
    assert list(reader.read(STAMP + line)) == []
    assert (reader.parameters, reader.rejected) == ({"lr": "1e-05"}, 0)


def test_copied_file(tmp_path: Path) -> None:
    """A script that has only the file beside it prints one line, and goes on without a stdout."""
    (tmp_path / "report.py").write_text(Path(report.__file__).read_text())
    (tmp_path / "train.py").write_text("from report import parameters\nassert parameters().bs == 16\n")
    command = [sys.executable, "train.py"]
    environment = {"KUBEFLOW_TRAINER_OPT_BS": "16"}
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, check=True)
    assert json.loads(done.stdout.removeprefix(report.TAG.encode())) == {"parameters": {"bs": "16"}}
    subprocess.run(f"exec {sys.executable} train.py >&-", shell=True, cwd=tmp_path, env=environment, check=True)
