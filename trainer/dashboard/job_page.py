"""The page of one TrainJob: what it is pushed while it is open."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import msgspec

from trainer.dashboard.board import PAUSE
from trainer.dashboard.curves import CurveReader
from trainer.dashboard.event_stream import Changes, event_stream
from trainer.dashboard.neighbourhoods import PODS_OF_JOBSET, jobset_names
from trainer.dashboard.nodes import INVOLVED, events_of, involved_names, nodes_of
from trainer.dashboard.rows import page_of
from trainer.kube.clock import move_on_after
from trainer.kube.objects import uid_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from aiohttp import web

    from trainer.dashboard.event_stream import EventStream
    from trainer.dashboard.metric_feed import MetricFeeds
    from trainer.dashboard.neighbourhoods import Neighbourhood, Neighbourhoods
    from trainer.kube.cache.cached_object import CachedObject
    from trainer.kube.cache.informer import Informer
    from trainer.kube.clock import Clock
    from trainer.kube.objects import Object, ObjectKey

_CHECK = 2.0
"""Seconds after which a page without changes looks for problems of its watches, which notify nobody."""


class _Listener:
    """Notifies a page of the changes of what it shows; a handler of informers."""

    def __init__(self, changes: Changes, concerns: Callable[[CachedObject], bool]) -> None:
        self._changes = changes
        self._concerns = concerns

    def on_add(self, obj: CachedObject, *, initial: bool) -> None:  # noqa: ARG002
        """See `Handler`."""
        self._notify(obj)

    def on_update(self, old: CachedObject, new: CachedObject) -> None:
        """See `Handler`."""
        self._notify(old, new)

    def on_delete(self, obj: CachedObject, *, stale: bool) -> None:  # noqa: ARG002
        """See `Handler`."""
        self._notify(obj)

    def _notify(self, *objects: CachedObject) -> None:
        if any(self._concerns(obj) for obj in objects):
            self._changes.notify()


class JobPages:
    """Streams for the pages of TrainJobs.

    Each sends `job`, `nodes`, `events` and `problems` when they have changed, `metrics` with what is new of the
    curves, and `gone` at its end, when the TrainJob is; and `problem` as the list does.
    """

    def __init__(self, jobs: Informer, neighbourhoods: Neighbourhoods, feeds: MetricFeeds, clock: Clock) -> None:
        self._jobs = jobs
        self._neighbourhoods = neighbourhoods
        self._feeds = feeds
        self._clock = clock

    async def stream(self, request: web.BaseRequest, key: ObjectKey) -> web.StreamResponse:
        """Push all about a TrainJob until it is deleted, or another has its name."""
        changes = Changes()
        async with event_stream(request, self._clock, self._jobs) as stream:
            await self._jobs.wait_for_sync()
            job = self._jobs.lister.get(key)
            if job is not None:
                with self._neighbourhoods.of(key.namespace) as near:
                    shown: tuple[tuple[Informer, Callable[[CachedObject], bool]], ...] = (
                        (self._jobs, partial(_is_or_may_shadow, key)),
                        (near.pods, lambda pod: key.name in jobset_names(pod)),
                        (near.events, lambda event: key.name in involved_names(event)),
                    )
                    handlers = [
                        (informer, informer.add_handler(_Listener(changes, concerns))) for informer, concerns in shown
                    ]
                    try:
                        async with self._feeds.of(job, changes) as feed:
                            page = _Page(stream, CurveReader(feed.curves))
                            while job is not None:
                                async with move_on_after(self._clock, _CHECK):
                                    await changes.wait()
                                pods = near.pods.lister.by_index(PODS_OF_JOBSET, key.name)
                                feed.see(pods)
                                await page.send(job, pods, self._events(job, key, near), _problems(near, feed.problem))
                                await self._clock.sleep(PAUSE)
                                job = self._present(key, uid_of(job))
                    finally:
                        for informer, handler in handlers:
                            informer.remove_handler(handler)
            await stream.send("gone", {})
        return stream.response

    def _present(self, key: ObjectKey, uid: str) -> Object | None:
        job = self._jobs.lister.get(key)
        return job if job is not None and uid_of(job) == uid else None

    def _events(self, job: Object, key: ObjectKey, near: Neighbourhood) -> list[Object]:
        names = {other.name for other in self._jobs.lister.keys(key.namespace)}
        return events_of(job, near.events.lister.by_index(INVOLVED, key.name), names)


class _Page:
    """What one page has been sent."""

    def __init__(self, stream: EventStream, curves: CurveReader) -> None:
        self._stream = stream
        self._curves = curves
        self._sent: dict[str, bytes] = {}

    async def send(self, job: Object, pods: list[Object], events: list[Object], problems: list[str]) -> None:
        """Send what has changed."""
        parts = {"job": page_of(job), "nodes": nodes_of(pods), "events": events, "problems": problems}
        for name, content in parts.items():
            encoded = msgspec.json.encode(content)
            if self._sent.get(name) != encoded:
                self._sent[name] = encoded
                await self._stream.send(name, msgspec.Raw(encoded))
        if (news := self._curves.news()) is not None:
            await self._stream.send("metrics", news)


def _problems(near: Neighbourhood, of_metrics: str) -> list[str]:
    """What the page cannot show, and why."""
    informers = (near.pods, near.events)
    found = [f"{each.resource.plural} cannot be watched: {each.last_error}" for each in informers if each.last_error]
    return [*found, *([f"metrics cannot be read: {of_metrics}"] if of_metrics else [])]


def _is_or_may_shadow(key: ObjectKey, job: CachedObject) -> bool:
    """Whether it is this TrainJob, or one whose name begins with its name and may fit the name of an event better."""
    return job.key == key or (job.key.namespace == key.namespace and job.key.name.startswith(f"{key.name}-"))
