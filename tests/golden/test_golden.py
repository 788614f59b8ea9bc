"""What each example becomes, compared with the YAML in `expected`.

After a change that is meant: `python -m tests.golden` writes the files anew, and `git diff tests/golden` is the review.
"""

from __future__ import annotations

import difflib
from pathlib import Path

import pytest
import yaml

from tests.golden.rendering import EXAMPLES, EXPECTED, examples, expected, render
from trainer.cli.documents import read_documents
from trainer.kube.objects import Object


@pytest.fixture(scope="module")
def rendered() -> dict[Path, str]:
    """All examples; made once, because each takes a registry of plugins of its own."""
    return {example: render(example) for example in examples()}


@pytest.fixture(scope="module")
def rendered_again() -> dict[Path, str]:
    """All examples, a second time."""
    return {example: render(example) for example in examples()}


def each_example() -> list[object]:
    return [pytest.param(example, id=str(example.with_suffix(""))) for example in examples()]


@pytest.mark.parametrize("example", each_example())
def test_example(example: Path, rendered: dict[Path, str]) -> None:
    """Every example becomes what it became before."""
    actual, file = rendered[example], expected(example)
    before = file.read_text(encoding="utf-8") if file.exists() else ""

    diff = difflib.unified_diff(
        before.splitlines(), actual.splitlines(), f"expected/{example}", "as rendered now", lineterm=""
    )
    assert actual == before, "\n".join(["run `python -m tests.golden` if this is meant:", *diff])


def test_nothing_is_left_over() -> None:
    """Every expected file belongs to an example."""
    assert {file.relative_to(EXPECTED) for file in EXPECTED.rglob("*.yaml")} == set(examples())


def test_rendering_is_stable(rendered: dict[Path, str], rendered_again: dict[Path, str]) -> None:
    """The same files give the same text, byte for byte."""
    assert rendered == rendered_again


@pytest.mark.parametrize("example", each_example())
def test_nothing_is_refused(example: Path, rendered: dict[Path, str]) -> None:
    """Every example becomes objects: a comment in their place says why one is refused."""
    assert not rendered[example].startswith("#")


def test_runtimes_of_one_name_are_equal() -> None:
    """Examples can be applied one after the other: what two of them bring is the same, except for coscheduling."""
    runtimes: dict[str, Object] = {}
    for example in examples():
        for document in read_documents(str(EXAMPLES / example)):
            if document.resource.kind == "ClusterTrainingRuntime" and example.stem != "coscheduling":
                known = runtimes.setdefault(document.subject, document.obj)
                assert document.obj == known, f"{example}: {document.subject} is another one"


def test_examples_of_the_kep_are_self_contained(rendered: dict[Path, str]) -> None:
    """A file brings the runtime, the claims and the Secrets that its TrainJob names."""
    for example in examples():
        if example.parts[0] != "kep-2170":
            continue
        documents = read_documents(str(EXAMPLES / example))
        present = {(document.resource.kind, document.obj["metadata"]["name"]) for document in documents}
        (job,) = (document.obj for document in documents if document.is_train_job)
        ref = job["spec"]["runtimeRef"]
        assert (ref.get("kind", "ClusterTrainingRuntime"), ref["name"]) in present
        claimed = set(_claims(list(yaml.load_all(rendered[example], yaml.CSafeLoader))))
        assert claimed == {name for kind, name in present if kind == "PersistentVolumeClaim"}


def _claims(value: object) -> list[str]:
    """Every claimName, however deep."""
    if isinstance(value, dict):
        own = [value["claimName"]] if "claimName" in value else []
        return own + [name for item in value.values() for name in _claims(item)]
    if isinstance(value, list):
        return [name for item in value for name in _claims(item)]
    return []
