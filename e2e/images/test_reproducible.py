"""Two builds of a commit give the same images."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from hack.images import DEBIAN, build
from hack.oci.listing import listed

pytestmark = pytest.mark.timeout(900)


@pytest.mark.parametrize("name", ["manager", "initializer"])
def test_digests(built: Callable[[str], Path], tmp_path: Path, name: str) -> None:
    """On the same base the digest is the same, and so is each file, layer and setting."""
    [first] = listed(built(name))
    [second] = build([name], output=tmp_path, base=DEBIAN)
    assert second.digest == first.digest
