"""`python -m benchmarks.soaking.observed FILE ENTRIES MODULE ARGUMENT...`: a program that says what it holds.

At each SIGUSR1 it collects its garbage, gives free memory back, and appends a line of JSON to the file. Caches that
have a bound get one of so many entries at most, so that they are full before the first sample counts: what is left to
grow then has none.
"""

from __future__ import annotations

import asyncio
import functools
import gc
import signal
import sys
import threading
import time
import weakref
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import msgspec

from benchmarks.process import malloc_bytes, resident_bytes

FEWEST = 100
"""Objects of a type that are counted."""
_FEWEST_ENTRIES = 10
"""Of collections that are counted."""
CHANGES = 3
"""That the API server remembers of each kind for each entry of a cache. A training changes objects of most kinds that
often: with more, what is remembered of the others still grows after the first rest."""
_LINE_BYTES = 256
"""Of a short event of a watch; bytes of events are bounded, not their number."""
_COLLECTIONS = (dict, list, set, deque)
_OURS = "trainer"
"""How the names of our packages begin."""
_CACHED: weakref.WeakSet[Any] = weakref.WeakSet()
"""Functions with a cache. The garbage collector does not know those that were there when a client froze it."""


class Sample(msgspec.Struct, frozen=True):
    """What a process holds at one moment."""

    moment: float
    """By `time.monotonic()`."""
    rss: int
    """Resident bytes, without garbage and free heap pages."""
    malloc: int
    """Bytes that C libraries and large objects hold."""
    blocks: int
    """Pieces of memory that small Python objects hold."""
    objects: int
    """Objects that the garbage collector knows, without those of the start."""
    tasks: int
    """Of the event loop."""
    files: int
    """File descriptors."""
    threads: int
    types: dict[str, int] = {}
    """Number of these objects by their type, where there are many."""
    entries: dict[str, int] = {}
    """Entries of the collections that our objects have, by the name of the attribute, and of the caches of our
    functions, where there are some. All caches are among them, those with a bound and those without."""


def sample() -> Sample:
    """Of this process; to be called in the thread of its event loop."""
    rss, malloc = resident_bytes(), malloc_bytes()
    blocks = sys.getallocatedblocks()
    objects = gc.get_objects()
    types = Counter(map(type, objects))
    loop = asyncio._get_running_loop()  # noqa: SLF001 - a signal handler may run while there is none
    return Sample(
        moment=time.monotonic(),
        rss=rss,
        malloc=malloc,
        blocks=blocks,
        objects=len(objects),
        tasks=len(asyncio.all_tasks(loop)) if loop is not None else 0,
        files=sum(1 for _ in Path("/proc/self/fd").iterdir()) - 1,
        threads=threading.active_count(),
        entries={name: many for name, many in _entries(objects).items() if many >= _FEWEST_ENTRIES},
        types={f"{each.__module__}.{each.__qualname__}": many for each, many in types.items() if many >= FEWEST},
    )


def _entries(objects: Iterable[object]) -> Counter[str]:
    """Entries of collections by class and attribute, and of the caches of functions by function."""
    found: Counter[str] = Counter()
    seen: set[int] = set()
    slots: dict[type, tuple[str, ...] | None] = {}
    for cached in _CACHED:
        if str(cached.__module__).startswith(_OURS):
            found[f"{cached.__module__}.{cached.__qualname__}"] += cached.cache_info().currsize
    for each in objects:
        kind = type(each)
        if kind not in slots:
            slots[kind] = tuple(_slots(kind)) if str(kind.__module__).startswith(_OURS) else None
        if (names := slots[kind]) is None:
            continue
        attributes = {**getattr(each, "__dict__", {}), **{name: getattr(each, name, None) for name in names}}
        for name, held in attributes.items():
            if isinstance(held, _COLLECTIONS) and id(held) not in seen:  # many may share one
                seen.add(id(held))
                found[f"{kind.__module__}.{kind.__qualname__}.{name}"] += len(held)
    return found


def _slots(kind: type) -> Iterator[str]:
    for part in kind.__mro__:
        names = getattr(part, "__slots__", ())
        yield from (name for name in ((names,) if isinstance(names, str) else names) if name != "__dict__")


def bound_caches(entries: int) -> None:
    """Let bounded caches that are made from now on have so many entries at most."""
    ordinary = functools.lru_cache

    def lru_cache(maxsize: Any = 128, typed: bool = False) -> Any:
        if callable(maxsize):
            return lru_cache()(maxsize)
        bounded = ordinary(maxsize if maxsize is None else min(maxsize, entries), typed)

        def cached(function: Callable[..., Any]) -> Any:
            _CACHED.add(found := bounded(function))
            return found

        return cached

    functools.lru_cache = lru_cache
    # What follows imports much that has such caches.
    from trainer.kube import bounded_dict  # noqa: PLC0415
    from trainer.kube.events import correlator  # noqa: PLC0415
    from trainer_devcluster.apiserver.storage import storage  # noqa: PLC0415
    from trainer_devcluster.apiserver.wire import event_lines  # noqa: PLC0415
    from trainer_devcluster.controllers.garbage_collector import collector  # noqa: PLC0415

    bound, start = bounded_dict.BoundedDict.__init__, storage.Storage.__init__
    remember = collector.RecentUids.__init__

    def bounded(self: bounded_dict.BoundedDict[Any, Any], size: int) -> None:
        bound(self, min(size, entries))

    def keeping(self: storage.Storage, *, history: int = entries * CHANGES, **options: Any) -> None:
        start(self, history=min(history, entries * CHANGES), **options)

    def remembering(self: collector.RecentUids, limit: int = entries) -> None:
        remember(self, min(limit, entries))

    collector.RecentUids.__init__ = remembering  # type: ignore[method-assign]
    event_lines.KEPT_BYTES = entries * CHANGES * _LINE_BYTES
    bounded_dict.BoundedDict.__init__ = bounded  # type: ignore[method-assign]
    storage.Storage.__init__ = keeping  # type: ignore[method-assign]
    correlator.REMEMBERED = min(correlator.REMEMBERED, entries)


def main() -> None:
    """Run `main` of the module."""
    file, entries, module, *arguments = sys.argv[1:]

    def write(number: int, frame: object) -> None:  # noqa: ARG001 - as signal handlers are called
        with Path(file).open("ab") as output:
            output.write(msgspec.json.encode(sample()) + b"\n")

    bound_caches(int(entries))
    signal.signal(signal.SIGUSR1, write)
    sys.argv = [module, *arguments]
    sys.exit(import_module(module).main())


if __name__ == "__main__":
    main()
