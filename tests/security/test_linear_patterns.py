"""No pattern takes quadratic time for text that a peer or a tenant has chosen.

Nothing measures time here. Texts are so long that a quadratic pattern reads billions of characters, for which the time
limit of a test is too short, while a linear one reads them in a moment.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from trainer import kubernetes_yaml
from trainer.controllers import failure_log
from trainer.framework.deploying import comparison
from trainer.kube import errors
from trainer.kube.errors import ApiError
from trainer.kube.logs import redaction
from trainer.kube.logs.redaction import LONGEST_VALUE, redact
from trainer.kube.rest import transport
from trainer.plugins.jobset import wait
from trainer.workloads import pod_requests
from trainer_dashboard.recipe import secret_forms

ROOT = Path(__file__).parents[2]
LENGTH = 400_000
LONG = 5 * LENGTH
"""For credentials: a former pattern, which was quadratic, would need three minutes for `LENGTH`, and an hour here."""
_LITERAL = re.compile(r"[A-Za-z0-9:/@=,'\" -]{2,}")
_PUMPS = ("a", "1", "-", ".", "a.", "a-", "1.", " ", "{", '"', "\\", "[", "]", "\x1b[", "a/", "a=", "é", "\n")


def _patterns() -> Iterator[tuple[str, re.Pattern[str]]]:
    """The patterns of all modules but those of the dev cluster, whose users are its only peers."""
    roots = {ROOT / "packages" / name / "src": "" for name in ("sweeps", "v1_jobs")} | {ROOT: "trainer"}
    files = sorted((file, root) for root, folder in roots.items() for file in (root / folder).rglob("*.py"))
    for file, root in files:
        name = ".".join(file.relative_to(root).with_suffix("").parts)
        if "re.compile(" not in file.read_text():
            continue
        for variable, value in vars(importlib.import_module(name)).items():
            if isinstance(value, re.Pattern) and isinstance(value.pattern, str):
                yield f"{name}.{variable}", value


def _pumps(pattern: re.Pattern[str]) -> tuple[str, ...]:
    """What a pattern may repeat."""
    literals = _LITERAL.findall(pattern.pattern.replace("\\ ", " ").replace("\\", ""))
    return tuple(dict.fromkeys((*_PUMPS, *literals)))


def _pumped(pump: str) -> str:
    """This again and again, and then something that does not fit."""
    return pump * (LENGTH // len(pump)) + "\0"


PATTERNS = dict(_patterns())


@pytest.mark.parametrize("name", PATTERNS)
def test_matching_a_whole_text(name: str) -> None:
    """A pattern that a text has to fit as a whole, or from its beginning, decides about any text in linear time."""
    for pump in _pumps(PATTERNS[name]):
        PATTERNS[name].match(_pumped(pump))
        PATTERNS[name].fullmatch(_pumped(pump))


@pytest.mark.parametrize("unit", ["1", "1.", "1:1", "1_", "1e"])
def test_texts_like_numbers_in_yaml(unit: str) -> None:
    """Whether a text needs quotes, because YAML would take it for a number, is found out in one reading."""
    obj = {"a": unit * (LENGTH // len(unit)) + "x"}
    assert list(kubernetes_yaml.parse(kubernetes_yaml.dump(obj))) == [obj]


SEARCHED = {
    "secrets": secret_forms._SECRET_FORM,
    "keys of secrets": redaction._SECRET_KEY,
    "quoted objects": errors._QUOTED_OBJECT,
    "escape sequences": failure_log._ESCAPE,
    "missing objects": wait._MISSING,
    "missing keys": wait._MISSING_KEY,
    "missing classes": wait._MISSING_CLASS,
    "insufficient resources": pod_requests._INSUFFICIENT,
    "exceeded quotas": wait._QUOTA,
    "node selectors": wait._SELECTOR,
    "warnings": transport._WARNING,
}


@pytest.mark.parametrize(
    ("name", "pump"), [(name, pump) for name, pattern in SEARCHED.items() for pump in _pumps(pattern)]
)
def test_searching_a_text(name: str, pump: str) -> None:
    """A pattern that may begin anywhere reads nothing once for each place where it could have begun."""
    SEARCHED[name].sub("", _pumped(pump))


@pytest.mark.parametrize(
    "unit",
    [
        "-eyJ",
        "eyJa.",
        "eyJa.b.",
        "a-eyJ",
        "Bearer ",
        "://",
        "://a:",
        "-----BEGIN ",
        "-----BEGIN PRIVATE KEY-----",
    ],
)
def test_secrets_that_begin_again_and_again(unit: str) -> None:
    """The form of a credential, begun half a million times and never finished."""
    secret_forms._SECRET_FORM.sub("", unit * (LONG // len(unit)))


@pytest.mark.parametrize("unit", ["{", '{"', '{"\\', "[", "&x.Y{", "{}", "{}}: "])
def test_quoted_objects_that_begin_again_and_again(unit: str) -> None:
    """An object that a server quotes, begun a hundred thousand times and never finished."""
    text = f"Invalid value: {unit}"
    str(ApiError(422, text * (LENGTH // len(text))))


@pytest.mark.parametrize("unit", ["exceeded quota: ", "exceeded quota: a, requested: ", "Insufficient a"])
def test_shortages_that_begin_again_and_again(unit: str) -> None:
    """What a scheduler or a quota says, begun a hundred thousand times and never finished."""
    text = unit * (LENGTH // len(unit))
    wait._QUOTA.sub("", text)
    pod_requests._INSUFFICIENT.sub("", text)


def test_paths_that_look_like_amounts() -> None:
    """A path whose parts are all called requests."""
    path = ".requests" * (LENGTH // 9) + "[x]"
    assert list(comparison.differences("1", "2", path)) == [path]


@pytest.mark.parametrize(
    "value",
    [
        pytest.param("x" * 10_000_000, id="text"),
        pytest.param("x y " * 2_500_000, id="words"),
        pytest.param(["x" * 1000] * 10_000, id="list"),
        pytest.param([1] * 1_000_000, id="numbers"),
        pytest.param({f"k{number}": "v" for number in range(100_000)}, id="mapping"),
        pytest.param({"x" * 1_000_000: 1}, id="key"),
        pytest.param([[["x" * 1000] * 100] * 100] * 10, id="nested"),
        pytest.param(b"x" * 1_000_000, id="representation"),
    ],
)
def test_long_values_in_logs(value: object) -> None:
    """A value is cut before it is searched and written, however it is built, and says so."""
    shown = str(redact(None, "info", {"value": value})["value"])
    assert len(shown) < 3 * LONGEST_VALUE
    assert "left out]" in shown
