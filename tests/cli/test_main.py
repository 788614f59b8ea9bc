"""The entry point of the `trainer` command."""

from __future__ import annotations

import io
import sys
from types import ModuleType

import pytest
import typer
from typer.core import TyperGroup

from trainer.cli.app import app
from trainer.cli.main import main


class _Interrupted(ModuleType):
    """A module during whose import the user presses Ctrl-C."""

    def __getattr__(self, name: str) -> object:
        raise KeyboardInterrupt


def test_interrupt_while_loading(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """Ctrl-C before the command is loaded ends it as afterwards: with exit code 130 and without a traceback."""
    monkeypatch.setitem(sys.modules, "trainer.cli.app", _Interrupted("trainer.cli.app"))

    with pytest.raises(SystemExit) as ended:
        main()

    assert ended.value.code == 130
    assert capsys.readouterr() == ("", "")


def test_any_character_can_be_printed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Characters that the terminal's encoding lacks are escaped."""
    stream = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    monkeypatch.setattr(sys, "stdout", stream)
    monkeypatch.setattr(sys, "stderr", None)
    app = ModuleType("trainer.cli.app")
    app.app = lambda prog_name: stream.write(f"{prog_name} über")  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "trainer.cli.app", app)

    main()

    stream.seek(0)
    assert stream.read() == "trainer \\xfcber"


def test_leaving_a_question(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """Ctrl-C and Ctrl-D at a question end the command with exit code 130 and without a traceback."""
    monkeypatch.setattr(TyperGroup, "main", raise_abort)

    with pytest.raises(SystemExit) as ended:
        app()

    assert ended.value.code == 130
    assert capsys.readouterr() == ("", "")


def raise_abort(*_: object, **__: object) -> None:
    raise typer.Abort
