"""Reads the history of one cluster for viewers of the page."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial
from http import HTTPStatus
from typing import TypeVar

from aiohttp import web

from trainer.kube.client import Client
from trainer.kube.logger import get_logger
from trainer_dashboard.access.parties import Party
from trainer_dashboard.access.viewer import Viewer, before_records
from trainer_dashboard.history.cluster_identity import cluster_of
from trainer_dashboard.history.database import Database
from trainer_dashboard.history.errors import HistoryError
from trainer_dashboard.history.queries import History
from trainer_dashboard.past.question import WrongQuestionError
from trainer_dashboard.serving.answers import refusal

log = get_logger(__name__)

_T = TypeVar("_T")


class HistoryReader:
    """Asks a database, each question in a thread and in the turn of its party.

    Args:
        database: of the recorder.
        client: says which cluster this is.
        server: the address of the API server, which stands for the cluster as it does for the recorder.
    """

    def __init__(self, database: Database, client: Client, server: str) -> None:
        self._database = database
        self._history = History(database)
        self._client = client
        self._server = server
        self._cluster = ""
        self._is_checked = False

    async def answer(
        self, viewer: Viewer, party: Party, answer: Callable[[Viewer], Awaitable[web.Response | None]]
    ) -> web.Response | None:
        """The answer to a viewer, or why there is none.

        Raises:
            KubeError: the API server does not answer.
        """
        viewer = before_records(viewer)
        try:
            async with party.reading():
                return await answer(viewer)
        except WrongQuestionError as error:
            return refusal(HTTPStatus.BAD_REQUEST, str(error))
        except HistoryError as error:
            log.warning("could not read history", error=str(error))
            # It names the database, which is for who has started the dashboard.
            text = "the history cannot be read now; the log of the dashboard says why" if viewer.name else str(error)
            return refusal(HTTPStatus.SERVICE_UNAVAILABLE, text)

    async def cluster(self) -> str:
        """The identity of the cluster."""
        if not self._cluster:
            self._cluster = await cluster_of(self._client, self._server)
        return self._cluster

    async def has_database(self, party: Party) -> bool:
        """Whether there is one to ask; the file of SQLite is made by the first recorder."""
        return await party.ask_history(lambda: self._database.file is None or self._database.file.is_file())

    async def ask(self, party: Party, question: Callable[[History], _T]) -> _T:
        """An answer of the database."""
        return await party.ask_history(partial(self._ask_blocking, question))

    def _ask_blocking(self, question: Callable[[History], _T]) -> _T:
        if not self._is_checked:
            self._database.check()  # else SQLite would make an empty file
            self._is_checked = True
        return question(self._history)
