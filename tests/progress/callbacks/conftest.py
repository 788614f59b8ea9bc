"""Callbacks over stand-ins for their frameworks; e2e/test_callbacks.py has the real ones."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from trainer.progress import callbacks, report

FOLDER = Path(callbacks.__file__).parent


class Reports:
    """What a callback reports, in the order in which it does; what it leaves out is left out."""

    def __init__(self) -> None:
        self.all: list[dict[str, Any]] = []

    def __call__(self, **fields: Any) -> None:
        self.all.append(
            {name: value for name, value in fields.items() if value is not None and value is not False and value != {}}
        )

    @property
    def last(self) -> dict[str, Any]:
        """The last report."""
        return self.all[-1]


@pytest.fixture
def reports() -> Reports:
    return Reports()


@pytest.fixture
def load(monkeypatch: pytest.MonkeyPatch, reports: Reports) -> Callable[..., ModuleType]:
    """Loads a callback with modules of its framework: a class for callbacks where there is one, None where not."""

    def load(name: str, frameworks: dict[str, object], *, as_name: str = "") -> ModuleType:
        for module, content in frameworks.items():
            monkeypatch.setitem(sys.modules, module, content)
        monkeypatch.setitem(sys.modules, "report", report)
        full_name = as_name or f"trainer.progress.callbacks.{name}"
        spec = importlib.util.spec_from_file_location(full_name, FOLDER / f"{name}.py")
        assert spec is not None
        assert spec.loader is not None
        loaded = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(loaded)
        assert loaded.report is report.report
        monkeypatch.setattr(loaded, "report", reports)
        return loaded

    return load


def framework(**content: object) -> SimpleNamespace:
    """A module of a framework."""
    return SimpleNamespace(**content)
