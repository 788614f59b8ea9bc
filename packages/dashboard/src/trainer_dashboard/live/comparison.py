"""What several TrainJobs run and their metrics, side by side in one stream."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AsyncExitStack
from typing import Final

import anyio
from aiohttp import web

from trainer.api.jobset_pods import jobset_keys
from trainer.api.trainjob import TRAIN_JOBS
from trainer.kube.cache.informer import Informer
from trainer.kube.clock import Clock, move_on_after
from trainer.kube.objects import Object, ObjectKey, key_of, mapping_at, metadata_of, uid_of
from trainer.kube.resource import PODS
from trainer.view.row import TrainJobRow
from trainer_dashboard.access.parties import Stream
from trainer_dashboard.access.viewer import Viewer
from trainer_dashboard.live.board import PAUSE
from trainer_dashboard.live.curves import CurveReader
from trainer_dashboard.live.event_stream import Changes, EventStream, event_stream
from trainer_dashboard.live.job_page import CHECK, notified
from trainer_dashboard.live.metric_feed import MetricFeed, MetricFeeds
from trainer_dashboard.live.namespace_informers import NamespaceCache, NamespaceInformers
from trainer_dashboard.live.rows import row_of
from trainer_dashboard.recipe.recipe import recipe_of, revision_of

COMPARED: Final = 50
"""TrainJobs that one page may compare: a table of them is still read, and their logs take some 6 MB at most."""
_NONE: Final[Mapping[str, str]] = {}


class Comparisons:
    """Streams of comparisons.

    Each sends, with the number of the TrainJob as `source`: its `job` and the `recipe` that it runs when they have
    changed, `metrics` with what is new of its curves, `trouble` with why there are none, and `gone` when it is, or its
    viewer may not see it; and `problem` as the list does.
    """

    def __init__(self, jobs: Informer, namespaces: NamespaceInformers, feeds: MetricFeeds, clock: Clock) -> None:
        self._jobs = jobs
        self._namespaces = namespaces
        self._feeds = feeds
        self._clock = clock

    async def stream(
        self, request: web.BaseRequest, keys: tuple[ObjectKey, ...], viewer: Viewer, slot: Stream
    ) -> web.StreamResponse:
        """Push the metrics of these TrainJobs that the viewer may see, until all are gone."""
        async with event_stream(request, self._clock, viewer, slot, self._jobs) as stream:
            await self._jobs.wait_for_sync()
            # The curves of one after the other are copied and encoded, however slowly they are read.
            turn = anyio.Lock()
            async with anyio.create_task_group() as tasks:
                for number, key in enumerate(keys):
                    tasks.start_soon(self._follow, stream, number, key, viewer, turn)
        return stream.response

    async def _follow(self, stream: EventStream, number: int, key: ObjectKey, viewer: Viewer, turn: anyio.Lock) -> None:
        job = self._jobs.lister.get(key)
        if job is not None and await viewer.may("get", TRAIN_JOBS, key):
            changes = Changes()
            logs = ObjectKey(key.namespace, "")
            async with AsyncExitStack() as stack:
                near = stack.enter_context(self._namespaces.of(key.namespace))
                shown = (
                    (self._jobs, lambda other: other.key == key),
                    (near.pods, lambda pod: key in jobset_keys(pod)),
                )
                stack.enter_context(notified(changes, *shown))
                feed = None
                if await viewer.may("get", PODS, logs, subresource="log"):
                    feed = await stack.enter_async_context(self._feeds.of(job, changes, stream.slot.party))
                await self._send_changes(_Side(stream, number, feed, turn), job, near, changes, viewer)
        await stream.send("gone", {"source": number})

    async def _send_changes(
        self, side: _Side, job: Object, near: NamespaceCache, changes: Changes, viewer: Viewer
    ) -> None:
        key = key_of(job)
        logs = ObjectKey(key.namespace, "")
        while True:
            await side.stream.turn()
            present = self._jobs.lister.get(key)
            if present is None or uid_of(present) != uid_of(job):
                return
            if not await viewer.may("get", TRAIN_JOBS, key):
                return
            if side.feed is not None:
                side.feed.observe(near.candidates_of(key))
            await side.send(present, may_read=await viewer.may("get", PODS, logs, subresource="log"))
            await self._clock.sleep(PAUSE)
            async with move_on_after(self._clock, CHECK):
                await changes.wait()


class _Side:
    """What one page has been sent of one TrainJob."""

    def __init__(self, stream: EventStream, number: int, feed: MetricFeed | None, turn: anyio.Lock) -> None:
        self.feed = feed
        self._turn = turn
        self.stream = stream
        self._number = number
        self._curves = CurveReader(feed.curves) if feed is not None else None
        self._sent: dict[str, object] = {}
        self._recipe: tuple[object, str, Mapping[str, str]] | None = None
        """Generation, revision and reported parameters of the one that was sent: it may be too large to be kept."""

    async def send(self, job: Object, *, may_read: bool) -> None:
        """Send what has changed; no metrics where the viewer may not read the log that has them."""
        may_read = may_read and self.feed is not None
        trouble = self.feed.problem if may_read and self.feed else "you may not get pods/log in its namespace"
        reported = self.feed.parameters if may_read and self.feed else _NONE
        row = row_of(TrainJobRow.of(job)) | {"started": mapping_at(job, "status").get("startTime")}
        for name, content in {"job": row, "trouble": {"text": trouble}}.items():
            if self._sent.get(name) != content:
                self._sent[name] = content
                await self.stream.send(name, {"source": self._number} | content)
        await self._send_recipe(job, reported)
        if may_read and self._curves is not None:
            async with self._turn:
                await self.stream.send_each("metrics", self._curves.pieces({"source": self._number}))

    async def _send_recipe(self, job: Object, reported: Mapping[str, str]) -> None:
        """Send what it runs when its spec or the annotated revision has changed, or its reporter has found more."""
        present = metadata_of(job).get("generation"), revision_of(job), reported
        if self._recipe == present:
            return
        self._recipe = present
        async with self._turn:
            await self.stream.send("recipe", {"source": self._number, "recipe": recipe_of(job, reported)})
