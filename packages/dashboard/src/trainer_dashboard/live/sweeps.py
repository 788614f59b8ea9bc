"""The sweeps of a cluster that a dashboard shows: their list, and the pages of each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Self

from trainer.api.optimization import OPTIMIZATION_JOBS
from trainer.kube.cache.cache import Cache
from trainer.kube.cache.cached_object import CachedObject
from trainer.kube.cache.informer import Informer
from trainer.kube.client import Client
from trainer.kube.clock import Clock, move_on_after
from trainer.kube.errors import KubeError
from trainer.kube.logger import get_logger
from trainer.kube.objects import Object, ObjectKey
from trainer.kube.selection import Selection
from trainer.v1alpha1.discovery import Served
from trainer_dashboard.access.actions import may
from trainer_dashboard.access.viewer import Viewer, may_list
from trainer_dashboard.live.board import Board
from trainer_dashboard.live.sweep_pages import SweepPages
from trainer_dashboard.sweep.rows import row_of

log = get_logger(__name__)

_SYNC: Final = 2.0
"""Seconds after which it counts as not served, when nothing is known of the cluster yet."""


class _SweepRows:
    """The rows of OptimizationJobs."""

    def of(self, obj: CachedObject) -> Object:
        """See `Rows`."""
        return row_of(obj.decode())

    def forget(self, key: ObjectKey) -> None:
        """See `Rows`."""


@dataclass(frozen=True, slots=True)
class Sweeps:
    """OptimizationJobs, which a cluster may do without."""

    informer: Informer
    board: Board
    pages: SweepPages
    clock: Clock

    @classmethod
    async def in_namespace(
        cls, namespace: str, reader: Client, served: Served, *, cache: Cache, jobs: Informer, clock: Clock
    ) -> Self | None:
        """Those of a namespace, or with "" of all; None where the reader may not list them."""
        try:
            if not await may(reader, "list", OPTIMIZATION_JOBS, ObjectKey(namespace, "")):
                return None
        except KubeError as error:
            # As with all that is shown: it comes when the API server answers.
            log.info("could not find out whether sweeps may be listed", error=str(error))
        informer = cache.informer(served.resource(OPTIMIZATION_JOBS), Selection(namespace or None), optional=True)
        return cls(informer, Board(informer, _SweepRows(), clock), SweepPages(informer, jobs, clock), clock)

    async def are_shown_to(self, viewer: Viewer, namespace: str) -> bool:
        """Whether the kind is served, and the viewer may list it in a namespace, "" for all of them, or where some are.

        Raises:
            KubeError: the API server does not say.
        """
        if self.informer.last_error is None:
            async with move_on_after(self.clock, _SYNC):
                await self.informer.wait_for_sync()
        if not self.informer.has_synced or not self.informer.is_served:
            return False
        return await may_list(viewer, namespace, OPTIMIZATION_JOBS) or bool(await self.board.namespaces(viewer))
