"""Installed packages with plugins or components, as pip would leave them."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

GREETING = """\
from pydantic import Field
from trainer.api.model import ApiModel

class Settings(ApiModel):
    text: str = "hello"
    times: int = Field(default=1, ge=1)

class Greeting:
    name = "greeting"
    ml_policy_sources = frozenset()

    def __init__(self, context):
        settings = context.settings(Settings)
        self.text = settings.text * settings.times

    def enforce_ml_policy(self, info, train_job):
        info.main_container.set_env([{"name": "GREETING", "value": self.text}])
"""
"""A plugin with settings that gives every training container a variable."""

FAULTY = """\
class Faulty:
    name = "faulty"
    ml_policy_sources = frozenset()

    def __init__(self, context):
        pass

    def enforce_ml_policy(self, info, train_job):
        if train_job.metadata.name.startswith("doomed"):
            raise ZeroDivisionError("no luck today")
"""
"""A plugin that fails for some TrainJobs."""


@contextmanager
def installed(
    site: Path,
    *,
    package: str = "acme-trainer",
    version: str = "1.2.0",
    group: str = "trainer.plugins",
    **plugins: tuple[str, str],
) -> Iterator[None]:
    """Have a package installed that announces plugins.

    Args:
        site: a directory for this package alone.
        package: name of the distribution.
        version: its version.
        group: the entry-point group.
        plugins: by name of the entry point, the source of its module and the object in it; `_` stands for `-`.
    """
    directory = site / f"{package.replace('-', '_')}-{version}.dist-info"
    directory.mkdir(parents=True)
    (directory / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: {version}\n")
    lines, modules = [f"[{group}]"], []
    for key, (source, attribute) in plugins.items():
        module = f"{package}_{key}".replace("-", "_")
        (site / f"{module}.py").write_text(source)
        lines.append(f"{key.replace('_', '-')} = {module}:{attribute}")
        modules.append(module)
    (directory / "entry_points.txt").write_text("\n".join(lines) + "\n")
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(site)
        try:
            yield
        finally:
            for module in modules:
                sys.modules.pop(module, None)
