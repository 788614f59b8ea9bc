"""What is signed and attested, and with which options; cosign itself is a stand-in."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pytest

from hack.publish.__main__ import main
from hack.publish.registry import Published, record
from hack.publish.signatures import BUNDLE
from hack.release.checksums import NAME as SUMS
from tests.hack.programs import Programs, programs

__all__ = ["programs"]

LIST = "published.json"
PLACE = "ghcr.io/owner"
AMD64, ARM64, INDEX, CHART = (f"sha256:{letter * 64}" for letter in "abcd")
IMAGE = Published(f"{PLACE}/trainer-operator:9.8.7", INDEX, (("linux/amd64", AMD64), ("linux/arm64", ARM64)))
PUBLISHED = (IMAGE, Published(f"{PLACE}/charts/kubeflow-trainer:9.8.7", CHART))


def dist_of(directory: Path, files: Iterable[str]) -> Path:
    dist = directory / "dist"
    dist.mkdir()
    for name in files:
        (dist / name).write_text("{}", encoding="utf-8")
    return dist


BILLS = [f"trainer-operator-9.8.7-linux-{architecture}.cdx.json" for architecture in ("amd64", "arm64")]


def test_sign(tmp_path: Path, programs: Programs) -> None:
    """By digest: a tag could have another meaning meanwhile. Each platform has the bill of what is in it."""
    dist = dist_of(tmp_path, BILLS)
    record(PUBLISHED, tmp_path / LIST)
    programs.add("cosign")
    assert main(["sign", str(tmp_path / LIST), str(dist)]) == 0
    image, chart = f"{PLACE}/trainer-operator", f"{PLACE}/charts/kubeflow-trainer"
    attest = ["cosign", "attest", "--yes", "--type", "cyclonedx", "--predicate"]
    assert programs.calls == [
        ["cosign", "sign", "--yes", "--recursive", f"{image}@{INDEX}"],
        ["cosign", "sign", "--yes", "--recursive", f"{chart}@{CHART}"],
        [*attest, str(dist / BILLS[0]), f"{image}@{AMD64}"],
        [*attest, str(dist / BILLS[1]), f"{image}@{ARM64}"],
    ]


@pytest.mark.parametrize(
    ("present", "bills", "is_pushed", "said"),
    [
        pytest.param((), BILLS, True, "cosign is not on PATH: https://docs.sigstore.dev/", id="cosign"),
        pytest.param(("cosign",), BILLS[:1], True, f"there is no DIST/{BILLS[1]}", id="bill"),
        pytest.param(("cosign",), BILLS, False, "make publish-images publish-chart", id="nothing-published"),
    ],
)
def test_what_is_missing(
    present: tuple[str, ...],
    bills: list[str],
    is_pushed: bool,
    said: str,
    tmp_path: Path,
    programs: Programs,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Nothing is signed before all is there that will be needed."""
    dist = dist_of(tmp_path, bills)
    if is_pushed:
        record(PUBLISHED, tmp_path / LIST)
    programs.add(*present)
    assert main(["sign", str(tmp_path / LIST), str(dist)]) == 1
    assert said in capsys.readouterr().err.replace(str(dist), "DIST")
    assert programs.calls == []


def test_a_failure_ends_it(tmp_path: Path, programs: Programs, capsys: pytest.CaptureFixture[str]) -> None:
    """What cosign refuses is not followed by more."""
    dist = dist_of(tmp_path, BILLS)
    record(PUBLISHED, tmp_path / LIST)
    programs.reply("cosign", "sign", code=3)
    programs.add("cosign")
    assert main(["sign", str(tmp_path / LIST), str(dist)]) == 1
    assert "cosign sign ended with exit code 3" in capsys.readouterr().err
    assert len(programs.calls) == 1


def test_sums(tmp_path: Path, programs: Programs) -> None:
    """One signature speaks of all files; it is written beside them."""
    dist = dist_of(tmp_path, [SUMS])
    programs.add("cosign")
    assert main(["sums", str(dist)]) == 0
    assert programs.calls == [["cosign", "sign-blob", "--yes", "--bundle", str(dist / BUNDLE), str(dist / SUMS)]]


def test_no_sums(tmp_path: Path, programs: Programs, capsys: pytest.CaptureFixture[str]) -> None:
    """The message names the target that makes them."""
    programs.add("cosign")
    assert main(["sums", str(tmp_path)]) == 1
    assert "make release" in capsys.readouterr().err


def test_published_twice(tmp_path: Path) -> None:
    """A step that is repeated is listed once, with what it found the last time."""
    record(PUBLISHED, tmp_path / LIST)
    record([Published(IMAGE.reference, AMD64)], tmp_path / LIST)
    text = (tmp_path / LIST).read_text()
    assert text.count("trainer-operator:9.8.7") == 1
    assert INDEX not in text
