from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


@pytest.mark.skipif(shutil.which("make") is None, reason="make is not installed")
def test_the_demo_shows_what_it_installs() -> None:
    """It downloads for a minute or more: pip says meanwhile what it does."""
    command = ["make", "--dry-run", "--always-make", "demo"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    (install,) = (line for line in done.stdout.splitlines() if "pip install" in line)
    assert "examples-jax" in install
    assert "--quiet" not in install


@pytest.mark.skipif(shutil.which("make") is None, reason="make is not installed")
def test_the_dashboard_installs_what_its_examples_need() -> None:
    """The frameworks of the trainings that it shows are there, and each training is one of the examples."""
    command = ["make", "--dry-run", "--always-make", "dashboard"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    (loop,) = (line for line in done.stdout.splitlines() if line.strip().startswith("for example in "))
    shown = loop.partition(" in ")[2].partition(";")[0].split()
    assert len(shown) == 3
    for example in shown:
        assert (ROOT / "examples" / example / "trainjob.yaml").is_file()
        assert f"examples-{example.partition('-')[0]}]" in done.stdout


@pytest.mark.skipif(shutil.which("make") is None, reason="make is not installed")
def test_images_take_the_variables_of_the_documentation() -> None:
    """What docs/install.md names reaches the program that builds."""
    section = (ROOT / "docs" / "install.md").read_text(encoding="utf-8").partition("### Images without Docker")[2]
    names = re.findall(r"^\| `([A-Z]+)` \|", section.partition("\n### ")[0], re.MULTILINE)
    assert names
    given = [f"{name}=chosen-{name.lower()}" for name in names]
    done = subprocess.run(["make", "--dry-run", "image", *given], cwd=ROOT, capture_output=True, text=True, check=True)
    assert [each for each in given if each.partition("=")[2] not in done.stdout] == []


@pytest.mark.skipif(shutil.which("make") is None, reason="make is not installed")
def test_a_tag_is_no_command(tmp_path: Path) -> None:
    """Git lets a tag have backquotes and dollars; neither make nor the shell runs what is in them."""
    place = tmp_path / "ran"
    tag = f"v`touch$${{IFS}}{place}`$(shell touch {place})"
    environment = os.environ | {"TAG": tag}
    done = subprocess.run(
        ["make", "release-tag"], cwd=ROOT, env=environment, capture_output=True, text=True, check=False
    )
    assert f"error: TAG={tag}: the version of the tree is" in done.stderr
    assert not place.exists()
