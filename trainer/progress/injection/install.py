"""Copies the reporter into a directory: `python -m trainer.progress.injection.install DIRECTORY`, of an init container.

The directory becomes one of PYTHONPATH in another container, with whatever Python (3.8 or later) is there. What it
gets is the package `trainer_reporter`, from which scripts import `checkpoints`, and the metadata by which Lightning
finds its callback; no module of it is called as one of a framework, or as one that a script may have beside it.
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from typing import Final

from trainer import __version__

PACKAGE: Final = "trainer_reporter"
ENTRY_POINTS: Final = f"""\
[lightning.pytorch.callbacks_factory]
{PACKAGE} = {PACKAGE}.hooks:lightning_callbacks

[pytorch_lightning.callbacks_factory]
{PACKAGE} = {PACKAGE}.hooks:lightning_callbacks
"""
_NAMES: Final = {
    "trainer.progress.injection.startup": PACKAGE,
    "trainer.progress.injection": PACKAGE,
    "trainer.progress.callbacks": f"{PACKAGE}.callbacks",
    "trainer.progress.report": f"{PACKAGE}.report",
    "trainer.checkpoints": f"{PACKAGE}.checkpoints",
    'startswith("trainer.progress.")': f'startswith("{PACKAGE}.")',
}
"""What modules are called in the package; the first that fits counts."""


def install(directory: Path) -> None:
    """Write the package; a directory that has it already is left with the same content.

    Raises:
        OSError: the directory cannot be written.
    """
    progress = Path(__file__).parents[1]
    package = directory / PACKAGE
    for name in ("callbacks", "checkpoints/frameworks"):
        (package / name).mkdir(parents=True, exist_ok=True)
    sources = {
        "__init__.py": progress / "injection" / "startup.py",
        "hooks.py": progress / "injection" / "hooks.py",
        "bars.py": progress / "injection" / "bars.py",
        "parameters.py": progress / "injection" / "parameters.py",
        "torchrun.py": progress / "injection" / "torchrun.py",
        "report.py": progress / "report.py",
    }
    for room in (progress / "callbacks", progress.parent / "checkpoints"):
        sources |= {str(each.relative_to(room.parent)): each for each in room.rglob("*.py")}
    for name, source in sources.items():
        (package / name).write_text(renamed(source.read_text(encoding="utf-8")), encoding="utf-8")
    metadata = directory / f"{PACKAGE}-{__version__}.dist-info"
    shutil.rmtree(metadata, ignore_errors=True)
    metadata.mkdir()
    (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {PACKAGE}\nVersion: {__version__}\n")
    (metadata / "entry_points.txt").write_text(ENTRY_POINTS)


def renamed(source: str) -> str:
    """The source with the names that its modules have in the package."""
    for name, other in _NAMES.items():
        source = source.replace(name, other)
    return source


if __name__ == "__main__":
    install(Path(sys.argv[1]))
