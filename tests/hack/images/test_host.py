"""The settings of this machine that a container gets."""

from __future__ import annotations

from pathlib import Path

import pytest

from hack.images.host import AUTHORITIES, settings_of


@pytest.mark.parametrize(
    ("listed", "text"),
    [
        pytest.param("", "[global]\n", id="nothing is configured"),
        pytest.param("global.timeout='5'\n", "[global]\ntimeout = 5\n", id="a file"),
        pytest.param(
            ":env:.default-timeout='5'\nglobal.timeout='9'\n",
            "[global]\ntimeout = 9\ndefault-timeout = 5\n",
            id="a file and a variable",
        ),
        pytest.param(":env:.timeout='5'\nglobal.timeout='9'\n", "[global]\ntimeout = 5\n", id="a variable wins"),
        pytest.param(
            "install.find-links='/a\\n/b'\n", "[install]\nfind-links = /a\n  /b\n[global]\n", id="lines of a command"
        ),
    ],
)
def test_text(listed: str, text: str) -> None:
    """What pip lists becomes a file that says the same."""
    assert settings_of(listed).text == text


def test_places(tmp_path: Path) -> None:
    """What is named of this machine is given, an index with what is beside it; authorities are given anyway."""
    for name in ("index/simple", "wheels"):
        (tmp_path / name).mkdir(parents=True)
    lines = [
        f"global.cert='{AUTHORITIES}/ca-certificates.crt'",
        f"global.extra-index-url='file://{tmp_path}/index/simple https://example.com/simple'",
        f"global.find-links='{tmp_path}/wheels {tmp_path}/gone'",
    ]
    assert settings_of("\n".join(lines)).places == (tmp_path / "index", tmp_path / "wheels")
