"""The page of one TrainJob: what it is pushed while it is open."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import AsyncExitStack, ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Final

import msgspec
from aiohttp import web

from trainer.api.jobset_pods import jobset_keys
from trainer.api.trainjob import TRAIN_JOBS
from trainer.kube.bounded_dict import BoundedDict
from trainer.kube.cache.cached_object import CachedObject
from trainer.kube.cache.change_handler import ChangeHandler
from trainer.kube.cache.informer import Informer
from trainer.kube.clock import Clock, move_on_after
from trainer.kube.objects import Object, ObjectKey, key_of, metadata_of, namespace_of, uid_of
from trainer.kube.resource import EVENTS, PODS
from trainer.workloads.related_events import involved_names
from trainer_dashboard.access.parties import Stream
from trainer_dashboard.access.viewer import Viewer
from trainer_dashboard.live.board import PAUSE
from trainer_dashboard.live.curves import CurveReader
from trainer_dashboard.live.event_stream import Changes, EventStream, event_stream
from trainer_dashboard.live.metric_feed import MetricFeed, MetricFeeds
from trainer_dashboard.live.namespace_informers import NamespaceCache, NamespaceInformers
from trainer_dashboard.live.rows import page_of
from trainer_dashboard.recipe.recipe import recipe_of, revision_of

CHECK = 2.0
"""Seconds after which a page without changes looks for problems of its watches, which notify nobody."""

_NOTHING: Final = msgspec.Raw(b"[]")
_RECIPES: Final = 64
"""TrainJobs whose recipes are kept, each of which may have 200 KB."""
_NONE: Final[Mapping[str, str]] = {}


@contextmanager
def notified(changes: Changes, *shown: tuple[Informer, Callable[[CachedObject], bool]]) -> Iterator[None]:
    """Notify a page of changes of the objects that concern it, while the body runs."""

    def notify(concerns: Callable[[CachedObject], bool], obj: CachedObject) -> None:
        if concerns(obj):
            changes.notify()

    with ExitStack() as stack:
        for informer, concerns in shown:
            on_change = partial(notify, concerns)
            stack.callback(informer.remove_handler, informer.add_handler(ChangeHandler(on_change, on_change)))
        yield


@dataclass(frozen=True, slots=True)
class PagePermissions:
    """What the viewer of a page may see beside the TrainJob."""

    pods: bool
    events: bool
    logs: bool

    @classmethod
    async def of(cls, viewer: Viewer, namespace: str) -> PagePermissions:
        """That of the moment.

        Raises:
            KubeError: the API server does not say.
        """
        all_in = ObjectKey(namespace, "")
        return cls(
            await viewer.may("list", PODS, all_in),
            await viewer.may("list", EVENTS, all_in),
            await viewer.may("get", PODS, all_in, subresource="log"),
        )

    def problems(self, namespace: str) -> list[str]:
        """What is missing on the page."""
        parts = ((self.pods, "list pods"), (self.events, "list events"), (self.logs, "get pods/log"))
        return [f"you may not {what} in the namespace {namespace}" for is_allowed, what in parts if not is_allowed]


class JobPages:
    """Streams for the pages of TrainJobs.

    Each sends `job`, `nodes`, `events` and `problems` when they have changed, `metrics` with what is new of the
    curves, and `gone` at its end, when the TrainJob is; and `problem` as the list does.
    """

    def __init__(self, jobs: Informer, namespaces: NamespaceInformers, feeds: MetricFeeds, clock: Clock) -> None:
        self._jobs = jobs
        self._namespaces = namespaces
        self._feeds = feeds
        self._clock = clock
        self._recipes = _Recipes()

    async def stream(
        self, request: web.BaseRequest, key: ObjectKey, viewer: Viewer, slot: Stream
    ) -> web.StreamResponse:
        """Push all about a TrainJob that its viewer may see, until it is deleted, or another has its name.

        Whether they may see the TrainJob itself is for the caller to ask at first; it ends when they may not any more.
        """
        changes = Changes()
        async with event_stream(request, self._clock, viewer, slot, self._jobs) as stream:
            await self._jobs.wait_for_sync()
            job = self._jobs.lister.get(key)
            if job is not None:
                with (
                    self._namespaces.of(key.namespace) as near,
                    notified(
                        changes,
                        (self._jobs, partial(_is_or_may_shadow, key)),
                        (near.pods, lambda pod: key in jobset_keys(pod)),
                        (near.events, lambda event: key.name in involved_names(event)),
                    ),
                ):
                    job = await self._follow(stream, viewer, job, near, changes)
            if job is None:
                await stream.send("gone", {})
        return stream.response

    async def _follow(
        self, stream: EventStream, viewer: Viewer, job: Object, near: NamespaceCache, changes: Changes
    ) -> Object | None:
        """Send what changes; returns None when the TrainJob is gone, and itself when its viewer may not see it."""
        key, permissions = key_of(job), await PagePermissions.of(viewer, namespace_of(job))
        async with AsyncExitStack() as stack:
            feed = None
            if permissions.logs:
                feed = await stack.enter_async_context(self._feeds.of(job, changes, stream.slot.party))
            page = _Page(stream, feed, self._recipes)
            uid = uid_of(job)
            while (present := await self._present(stream, key, uid)) is not None and await viewer.may(
                "get", TRAIN_JOBS, key
            ):
                permissions = await PagePermissions.of(viewer, key.namespace)
                nodes = await near.nodes_of(key) if permissions.pods else _NOTHING
                if feed is not None:
                    feed.observe(near.candidates_of(key))
                events = await self._events(present, near) if permissions.events else []
                await page.send(present, nodes, events, near.problems, permissions)
                await self._clock.sleep(PAUSE)
                async with move_on_after(self._clock, CHECK):
                    await changes.wait()
        return present

    async def _present(self, stream: EventStream, key: ObjectKey, uid: str) -> Object | None:
        await stream.turn()
        job = self._jobs.lister.get(key)
        return job if job is not None and uid_of(job) == uid else None

    async def _events(self, job: Object, near: NamespaceCache) -> list[Object]:
        names = {other.name for other in self._jobs.lister.keys(namespace_of(job))}
        return await near.events_of(job, names)


class _Page:
    """What one page has been sent."""

    def __init__(self, stream: EventStream, feed: MetricFeed | None, recipes: _Recipes) -> None:
        self._stream = stream
        self._recipes = recipes
        self._feed = feed
        self._curves = CurveReader(feed.curves) if feed is not None else None
        self._sent: dict[str, bytes] = {}

    async def send(
        self, job: Object, nodes: msgspec.Raw, events: list[Object], problems: list[str], permissions: PagePermissions
    ) -> None:
        """Send what has changed."""
        await self._stream.turn()
        problems = [*problems, *permissions.problems(namespace_of(job))]
        if self._feed is not None and self._feed.problem and permissions.logs:
            problems.append(f"metrics cannot be read: {self._feed.problem}")
        reported = self._feed.parameters if self._feed is not None and permissions.logs else _NONE
        parts = {
            "job": page_of(job, self._recipes.of(job, reported)),
            "nodes": nodes,
            "events": events,
            "problems": problems,
        }
        for name, content in parts.items():
            encoded = msgspec.json.encode(content)
            # Of what many pages have been sent no page keeps a copy.
            digest = hashlib.blake2b(encoded, digest_size=16).digest()
            if self._sent.get(name) != digest:
                self._sent[name] = digest
                await self._stream.send(name, msgspec.Raw(encoded))
        if self._curves is not None and permissions.logs:
            await self._stream.send_each("metrics", self._curves.pieces())


class _Recipes:
    """What TrainJobs run, for all pages: to look for secrets in a large one takes longer than all else here."""

    def __init__(self) -> None:
        self._known: BoundedDict[tuple[object, ...], tuple[Mapping[str, str], Object]] = BoundedDict(_RECIPES)

    def of(self, job: Object, reported: Mapping[str, str]) -> Object:
        """That of a TrainJob, see `recipe_of`."""
        key = uid_of(job), metadata_of(job).get("generation"), revision_of(job), bool(reported)
        known = self._known.get(key)
        if known is None or known[0] != reported:
            known = self._known[key] = reported, recipe_of(job, reported)
        return known[1]


def _is_or_may_shadow(key: ObjectKey, job: CachedObject) -> bool:
    """Whether it is this TrainJob, or one whose name begins with its name and may fit the name of an event better."""
    return job.key == key or (job.key.namespace == key.namespace and job.key.name.startswith(f"{key.name}-"))
