"""The database of the history, as commands name and open it."""

from __future__ import annotations

import os
from typing import Annotated

import typer

from trainer.cli.processes.state_directory import user_directory
from trainer_dashboard.history.database import Database
from trainer_dashboard.history.queries import History

RECORDING = "started recorder"
"""Logged by the recorder once all that existed is known."""
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


def database_of(url: str | None) -> Database:
    """The database of `--database`, else of the variable, else the file of the user."""
    # Files of Secrets often end with a newline.
    named = (url or os.environ.get(VARIABLE) or "").strip()
    return Database(named or f"sqlite:///{user_directory() / 'history.db'}")


def open_history(url: str | None = None) -> History:
    """What was recorded; blocks.

    Raises:
        HistoryError: there is nothing.
    """
    database = database_of(url)
    database.check()
    return History(database)
