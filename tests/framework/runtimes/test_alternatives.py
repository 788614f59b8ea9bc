"""What to name instead of a runtime that does not exist."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import SequenceMatcher

import pytest

from trainer.framework.runtimes import alternatives as module
from trainer.framework.runtimes.alternatives import Alternatives, alternatives

SHIPPED = ["torch-distributed", "plain", "jax-distributed"]


@pytest.mark.parametrize(
    ("name", "similar"),
    [
        pytest.param("torch-distribted", "torch-distributed", id="letter-missing"),
        pytest.param("plian", "plain", id="letters-exchanged"),
        pytest.param("mine", "", id="another"),
        pytest.param("plain" * 40, "", id="long"),
    ],
)
def test_similar(name: str, similar: str) -> None:
    """Only a name that was most likely meant is suggested."""
    found = alternatives(name, SHIPPED)

    assert (found.similar, found.is_mistake) == (similar, bool(similar))
    assert found.names == ("jax-distributed", "plain", "torch-distributed")


@pytest.mark.parametrize(
    ("present", "hint"),
    [
        pytest.param(Alternatives(), "", id="nothing"),
        pytest.param(Alternatives(similar="a", names=("a", "b")), ". Did you mean a?", id="similar"),
        pytest.param(Alternatives(names=("a", "b"), unlisted=2), ". There are a, b and 2 more", id="others"),
        pytest.param(
            Alternatives("TrainingRuntime", "a", ("a", "b")),
            ". There is a TrainingRuntime x: set spec.runtimeRef.kind to TrainingRuntime",
            id="other-kind",
        ),
        pytest.param(Alternatives("", "a", ("a",), 2).without_names(), "", id="without-names"),
    ],
)
def test_hint(present: Alternatives, hint: str) -> None:
    """The hint reads as sentences behind a message."""
    assert present.hint("x") == hint


@pytest.mark.parametrize(
    "names",
    [
        pytest.param([f"runtime-{number:05}" for number in range(10_000)], id="many"),
        pytest.param([f"{'r' * 240}-{number}" for number in range(1_000)], id="long"),
    ],
)
def test_bounds(names: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """However many runtimes there are, the text is short, and few names are compared letter by letter."""
    compared: list[str] = []

    class Counting(SequenceMatcher[str]):
        def quick_ratio(self) -> float:
            compared.append("quick")
            return super().quick_ratio()

        def get_matching_blocks(self) -> Sequence[object]:  # type: ignore[override]
            compared.append("letter by letter")
            return super().get_matching_blocks()

    monkeypatch.setattr(module, "SequenceMatcher", Counting)
    found = alternatives(f"{names[0][:-1]}x", names)

    assert len(found.hint("x")) < 500
    assert len(found.names) + found.unlisted == len(names)
    assert compared.count("quick") <= 500
    assert compared.count("letter by letter") <= 3
