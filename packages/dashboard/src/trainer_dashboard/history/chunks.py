"""Samples of metrics as they are stored: in chunks; many small ones become a large one."""

from __future__ import annotations

import sys
import zlib
from array import array
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping

import msgspec

from trainer.progress.curves import SAMPLES_LIMIT, Curve, Curves
from trainer.progress.samples import MetricId
from trainer_dashboard.history.content import decompressed

BUFFER_LIMIT = SAMPLES_LIMIT
"""Samples of one training that wait to be written; beyond them every second one is dropped."""
URGENT = 20_000
"""Samples of one training that are written at once instead of with the next write of all."""
STORED_LIMIT = 1_000_000
"""Samples of one run that are stored, of all metrics; they take about 9 MB."""
MERGED = 64
"""Chunks after which they become one."""
_WIDTH = 8
"""Bytes of a number."""


class _Stored(msgspec.Struct, array_like=True):
    """The samples of one metric, each member the columns of its numbers, see `_columns`."""

    is_eval: bool
    name: str
    times: bytes
    steps: bytes
    values: bytes
    has_steps: bool = True
    """See `Curve.steps`; the first recorders did not store epochs."""


_STORED = msgspec.msgpack.Decoder(list[_Stored])


def chunk_of(curves: Mapping[MetricId, Curve]) -> bytes:
    """The samples as a chunk."""
    stored = [
        _Stored(
            metric.is_eval,
            metric.name,
            _columns(curve.times),
            _columns(curve.steps),
            _columns(curve.values),
            curve.has_steps,
        )
        for metric, curve in curves.items()
    ]
    return zlib.compress(msgspec.msgpack.encode(stored), 6)


def curves_of(chunks: Iterable[bytes]) -> Curves:
    """The samples of chunks, in their order.

    Raises:
        ValueError: a chunk is damaged.
    """
    curves = Curves(total_limit=STORED_LIMIT)
    for metric, curve in _curves_in(chunks):
        curves.extend({metric: curve})
    return curves


def posted_curves_of(chunks: Iterable[bytes]) -> Curves:
    """The samples of chunks from the status of a TrainJob, in their order; a sample that comes again is left out.

    Raises:
        ValueError: a chunk is damaged.
    """
    curves = Curves(total_limit=STORED_LIMIT)
    for metric, curve in _curves_in(chunks):
        own = curves.by_metric.get(metric)
        known = bisect_right(curve.times, own.times[-1]) if own is not None else 0
        rest = Curve(curve.times[known:], curve.steps[known:], curve.values[known:], curve.has_steps)
        curves.extend({metric: rest})
    return curves


def _curves_in(chunks: Iterable[bytes]) -> Iterator[tuple[MetricId, Curve]]:
    for chunk in chunks:
        for each in _stored_in(decompressed(chunk)):
            curve = Curve(_numbers(each.times), _numbers(each.steps), _numbers(each.values), each.has_steps)
            if not len(curve.times) == len(curve.steps) == len(curve.values):
                raise ValueError("the content is damaged: a metric has numbers of different counts")
            yield MetricId(each.is_eval, each.name), curve


def _stored_in(content: bytes) -> list[_Stored]:
    if not content.startswith(b"["):
        return _STORED.decode(content)
    # Written as JSON by the first recorders.
    return [
        _Stored(is_eval, name, _columns(array("d", times)), _columns(array("d", steps)), _columns(array("d", values)))
        for is_eval, name, times, steps, values in msgspec.json.decode(content)
    ]


def _columns(numbers: array[float]) -> bytes:
    """All first bytes of the numbers, then all second ones: what is alike is compressed better, and sooner."""
    data = numbers.tobytes() if sys.byteorder == "little" else _swapped(numbers).tobytes()
    return b"".join(data[index::_WIDTH] for index in range(_WIDTH))


def _numbers(columns: bytes) -> array[float]:
    count, rest = divmod(len(columns), _WIDTH)
    if rest:
        raise ValueError("the content is damaged: a number has too few bytes")
    data = bytearray(len(columns))
    for index in range(_WIDTH):
        data[index::_WIDTH] = columns[index * count : (index + 1) * count]
    numbers = array("d", bytes(data))
    return numbers if sys.byteorder == "little" else _swapped(numbers)


def _swapped(numbers: array[float]) -> array[float]:
    other = array("d", numbers)
    other.byteswap()
    return other
