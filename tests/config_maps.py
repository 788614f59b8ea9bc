"""Writes the scripts of the examples into their ConfigMaps anew: `python -m tests.config_maps`."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[1]
PROGRESS = ROOT / "trainer" / "progress"
COPIES = {
    "report.py": PROGRESS / "report.py",
    # Under their own names they would hide the frameworks from the scripts beside them.
    "huggingface_callback.py": PROGRESS / "callbacks" / "huggingface.py",
    "keras_callback.py": PROGRESS / "callbacks" / "keras.py",
    "lightning_callback.py": PROGRESS / "callbacks" / "lightning.py",
}
"""What examples carry besides their own files."""

_SCRIPT = re.compile(r"^  (?P<name>\S+\.py): \|\n(?:    .*\n|\n)*", re.MULTILINE)


def examples() -> list[Path]:
    """The manifests of all examples that bring a script."""
    beside = (path.parent.glob("*job.yaml") for path in (ROOT / "examples").glob("*/train.py"))
    return sorted(manifest for manifests in beside for manifest in manifests)


def embedded(manifest: Path) -> str:
    """The manifest with the scripts as they are now, in the places that it has for them."""

    def script(match: re.Match[str]) -> str:
        source = COPIES.get(match["name"], manifest.with_name(match["name"]))
        lines = source.read_text(encoding="utf-8").splitlines()
        return "\n".join([f"  {match['name']}: |", *(f"    {line}" if line else "" for line in lines), ""])

    return _SCRIPT.sub(script, manifest.read_text(encoding="utf-8"))


if __name__ == "__main__":
    for path in examples():
        path.write_text(embedded(path), encoding="utf-8")
