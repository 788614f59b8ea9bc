"""The database of the history, as commands name and open it."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Annotated

import typer

from trainer.cli.errors import CommandError
from trainer.cli.processes.background import StateDirectory

if TYPE_CHECKING:
    from collections.abc import Mapping

    from trainer.history.database import Database
    from trainer.history.queries import History, TrainingRecord

VARIABLE = "TRAINER_HISTORY_DATABASE"

DatabaseUrl = Annotated[
    str | None,
    typer.Option(
        metavar="URL",
        envvar=VARIABLE,
        show_envvar=False,
        help=f"Database: sqlite:////FILE or postgresql://USER@HOST/NAME. Default: ${VARIABLE}, which no other account "
        "can read, else a file in the state directory of trainer up.",
    ),
]

ServedDatabaseUrl = Annotated[
    str | None,
    typer.Option(
        "--database",
        metavar="URL",
        envvar=VARIABLE,
        show_envvar=False,
        help=f"Database of the history: postgresql://USER@HOST/NAME or sqlite:////FILE. Default: ${VARIABLE}, which "
        "may have a password; without, no history is shown.",
    ),
]


def database_of(url: str | None, environment: Mapping[str, str] = os.environ) -> Database:
    """The database of `--database`, else of the variable, else the file of the user."""
    try:
        from trainer.history.database import Database  # noqa: PLC0415 - of an extra, and only who asks for it needs it
    except ModuleNotFoundError as error:
        raise CommandError(
            f"the history needs {error.name}, which is not installed: pip install 'trainer-operator[history]'"
        ) from None
    # Files of Secrets often end with a newline.
    named = (url or environment.get(VARIABLE) or "").strip()
    return Database(named or f"sqlite:///{StateDirectory.of_user(environment).root / 'history.db'}")


def database_if_any(url: str | None, *, is_needed: bool) -> Database | None:
    """The same; None where nobody has asked for a history, and what it needs is not installed."""
    try:
        return database_of(url)
    except CommandError:
        if url is not None or is_needed:
            raise
        return None


def open_history(url: str | None = None) -> History:
    """What was recorded; blocks.

    Raises:
        HistoryError: there is nothing.
    """
    database = database_of(url)
    from trainer.history.queries import History  # noqa: PLC0415 - as above

    database.check()
    return History(database)


def recorded(name: str, namespace: str, uid: str | None = None) -> tuple[History, TrainingRecord] | None:
    """The newest training of this name that was recorded; None where nothing was. Blocks.

    Args:
        name: of the TrainJob.
        namespace: of the TrainJob.
        uid: only if it has this one. Default: any.
    """
    from trainer.history.errors import HistoryError  # noqa: PLC0415 - as above

    try:
        history = open_history()
        found = history.newest(name, namespace)
    except (CommandError, HistoryError):
        return None
    return (history, found) if found is not None and uid in {None, found.uid} else None


def open_history_of(name: str, namespace: str) -> tuple[History, TrainingRecord]:
    """The newest training of this name that was recorded, in a namespace or in all; blocks.

    Raises:
        HistoryError: there is none.
    """
    history = open_history()
    return history, history.training(f"{namespace}/{name}" if namespace else name)
