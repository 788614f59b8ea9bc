"""What files of constraints and requirements pin."""

from __future__ import annotations

import pytest

from hack.pins import hashes, pins
from hack.release.settings import ROOT

A, B = "a" * 64, "b" * 64


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("# a==1\ntorch==2.13.0\n", {"torch": "2.13.0"}, id="comment"),
        pytest.param("PyYAML==6.0\nboolean.py==5.0\n", {"pyyaml": "6.0", "boolean-py": "5.0"}, id="names"),
        pytest.param("torch==2.1 ; python_version == '3.11'\n", {"torch": "2.1"}, id="marker"),
        pytest.param("torch==2.1+cpu;os_name=='posix'\n", {"torch": "2.1+cpu"}, id="marker-without-space"),
        pytest.param(f"torch==2.1 \\\n    --hash=sha256:{A}\n", {"torch": "2.1"}, id="hashes"),
        pytest.param("torch>=2\n-r other.txt\n", {}, id="no-pin"),
    ],
)
def test_pins(text: str, expected: dict[str, str]) -> None:
    """Names are normalized as those of package indexes, and a version ends before its marker and its hashes."""
    assert pins(text) == expected


def test_hashes() -> None:
    """Each pin has those of its own files, in order."""
    text = f"One==1 \\\n    --hash=sha256:{B} \\\n    --hash=sha256:{A}\ntwo==2 --hash=sha256:{B}\n"
    assert hashes(text) == {"one==1": (A, B), "two==2": (B,)}


@pytest.mark.parametrize("file", ["constraints.txt", "constraints-oldest.txt"])
def test_every_line(file: str) -> None:
    """Files of ours pin something in every line that is no comment."""
    lines = (ROOT / file).read_text("utf-8").splitlines()
    assert len(pins("\n".join(lines))) == len([line for line in lines if not line.startswith("#")])
