"""What a tenant writes costs linear work: nothing that grows tenfold costs more than about ten times as much.

The work is counted, not timed. What C code does within one line, such as reading JSON or matching a pattern, is bounded
by the sizes that the schemas allow (`tests/api/test_bounds.py`).
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import pytest

from tests.definitions import root_schema
from tests.security.growth import Growth, growths, work
from trainer.api.corev1 import ResourceRequirements
from trainer.api.invalid_object import InvalidObjectError
from trainer.api.trainingruntime import CLUSTER_TRAINING_RUNTIMES, Runtime
from trainer.api.trainjob import TrainJob
from trainer.framework.pipeline import Pipeline
from trainer.framework.plugin_api.errors import BuildError
from trainer.framework.plugin_api.testing import StaticReader
from trainer.framework.runtimes.alternatives import alternatives
from trainer.framework.runtimes.runtimes import read_runtime
from trainer.framework.startup.registry import Registry
from trainer.kube.events.correlator import cut_message
from trainer.kube.logs.redaction import redact
from trainer.kube.objects import Object
from trainer.kube.podlogs.line_blocks import LineBlocks
from trainer.kube.webhook.admission import AdmissionResponse
from trainer.kube.webhook.review import AdmissionReview, ReviewError
from trainer.plugins import BUILT_IN
from trainer.progress.lines.log_lines import log_lines
from trainer.progress.message_reader import MessageReader
from trainer.progress.protocol import RejectedMessageError, parse, tagged_lines
from trainer.progress.push_request import parse_push
from trainer.progress.report import TAG
from trainer.webhooks.defaults import default_runtime, default_train_job
from trainer.webhooks.runtime import review_runtime
from trainer.webhooks.train_job import review_train_job

SMALL, MIDDLE, LARGE = 6, 30, 60
SLACK = 600
"""Lines that may come on top, such as the first error message of a kind."""

TOGETHER = (6, 12, 18)
BEND = 50
"""Lines by which work may bend beside what each object bends alone; one line for each pair of items bends it by 72."""

POD: Object = {"containers": [{"name": "node", "image": "i"}]}


def spec_schema(kind: str) -> Object:
    """The schema of the spec of a kind."""
    schema: Object = root_schema(kind)["properties"]["spec"]
    return schema


TRAIN_JOB_GROWTHS = list(growths(spec_schema("TrainJob")))
RUNTIME_GROWTHS = list(growths(spec_schema("ClusterTrainingRuntime")))


def merged(base: Any, grown: Any) -> Any:
    """What is grown, with what the base has besides: first items of lists are one."""
    if isinstance(base, dict) and isinstance(grown, dict):
        both = {name: merged(base[name], value) if name in base else value for name, value in grown.items()}
        return base | both
    if isinstance(base, list) and isinstance(grown, list):
        return [merged(base[0], grown[0]), *grown[1:]] if base and grown else grown or base
    return grown if isinstance(grown, str) and len(grown) > SMALL else base


def train_job(spec: Object) -> Object:
    """A TrainJob that could be built, with a part that has grown."""
    base = {
        "runtimeRef": {"name": "r", "kind": "ClusterTrainingRuntime", "apiGroup": "trainer.kubeflow.org"},
        "podSpecOverrides": [{"targetJobs": [{"name": "node"}], "containers": [{"name": "node"}]}],
    }
    return {
        "apiVersion": "trainer.kubeflow.org/v2alpha1",
        "kind": "TrainJob",
        "metadata": {"name": "t", "namespace": "n"},
        "spec": merged(base, spec),
    }


def runtime(spec: Object) -> Object:
    """A runtime that could be used, with a part that has grown."""
    job = {"name": "node", "template": {"spec": {"template": {"spec": POD}}}}
    base = {"mlPolicy": {"torch": {"numProcPerNode": "auto"}}, "template": {"spec": {"replicatedJobs": [job]}}}
    return {
        "apiVersion": "trainer.kubeflow.org/v2alpha1",
        "kind": "ClusterTrainingRuntime",
        "metadata": {"name": "r"},
        "spec": merged(base, spec),
    }


class Files:
    """A source of one runtime."""

    def __init__(self, obj: Object) -> None:
        self._obj = obj

    async def of(self, train_job: TrainJob) -> Runtime:
        """See `RuntimeSource.of`."""
        return read_runtime(CLUSTER_TRAINING_RUNTIMES, self._obj)


@pytest.fixture(scope="module")
def pipeline() -> Pipeline:
    """All plugins."""
    context: Any = SimpleNamespace(reader=StaticReader(), settings=lambda model: model())
    return Pipeline(Registry([factory(context) for factory in BUILT_IN.values()]))


def admitted_and_built(obj: Object, blueprint: Object, pipeline: Pipeline) -> None:
    """Admission and build of a TrainJob, whatever is wrong with it."""
    asyncio.run(review_train_job(default_train_job(obj), None, pipeline, Files(blueprint)))
    with suppress(BuildError, InvalidObjectError):
        pipeline.build(TrainJob.from_object(obj), read_runtime(CLUSTER_TRAINING_RUNTIMES, blueprint))


def is_linear(call: Callable[[int], object]) -> bool:
    """Whether ten times the size is no more than ten times the work, and an item costs the same among many and few."""
    call(SMALL)  # What is made once does not count.
    small, middle, large = (work(lambda size=size: call(size)) for size in (SMALL, MIDDLE, LARGE))  # type: ignore[misc]
    first, second = middle - small, large - middle
    by_size = (LARGE - MIDDLE) / (MIDDLE - SMALL)
    return large <= 10 * small + SLACK and second <= 1.2 * by_size * max(first, 0) + SLACK


def excessive(places: list[Growth], call: Callable[[Object], object]) -> list[str]:
    """Places where tenfold growth costs more than ten times the work."""
    grown = [place for place in places if place.of(SMALL) != place.of(LARGE)]
    return [str(place) for place in grown if not is_linear(lambda size, place=place: call(place.of(size)))]  # type: ignore[misc]


def test_the_measure() -> None:
    """What goes through a list for each of its items, or writes a model for each of its members, is found."""
    items = range(LARGE)
    resources = ResourceRequirements.from_object({"limits": {f"a{index}": 1 for index in items}})

    def searched(size: int) -> None:
        for item in items[:size]:
            for other in items[:size]:
                if other == item:
                    break

    def written(size: int) -> None:
        limits = dict(list((resources.limits or {}).items())[:size])
        for _ in limits:
            ResourceRequirements(limits=limits).to_object()

    assert is_linear(lambda size: [index + 1 for index in items[:size]])
    assert not is_linear(searched)
    assert not is_linear(written)


@pytest.mark.parametrize("part", sorted({place.path[0] for place in TRAIN_JOB_GROWTHS}))
def test_train_jobs(part: str, pipeline: Pipeline) -> None:
    """Every text, list, map and number of a TrainJob costs linear work in admission and build."""
    blueprint = runtime({})
    places = [place for place in TRAIN_JOB_GROWTHS if place.path[0] == part]
    assert excessive(places, lambda spec: admitted_and_built(train_job(spec), blueprint, pipeline)) == []


@pytest.mark.parametrize("line", ["{} 'b'", "'{}' b", '"{}" b', "a {} > b"])
def test_long_words(line: str, pipeline: Pipeline) -> None:
    """A command of one line is read piece by piece, and not letter by letter: each would copy those before it."""

    def used(size: int) -> None:
        command = [line.format("a" * size)]
        admitted_and_built(train_job({"trainer": {"command": command}}), runtime({}), pipeline)

    used(SMALL)
    assert work(lambda: used(100 * LARGE)) <= work(lambda: used(SMALL)) + SLACK


@pytest.mark.parametrize("part", sorted({place.path[:3] for place in RUNTIME_GROWTHS}), ids=".".join)
def test_runtimes(part: tuple[str, ...], pipeline: Pipeline) -> None:
    """Every text, list, map and number of a runtime costs linear work, for itself and for the TrainJobs on it."""

    def used(spec: Object) -> None:
        blueprint = runtime(spec)
        review_runtime(default_runtime(blueprint), None, pipeline)
        admitted_and_built(train_job({}), blueprint, pipeline)

    assert excessive([place for place in RUNTIME_GROWTHS if place.path[:3] == part], used) == []


def combined(one: Any, other: Any) -> Any:
    """What either has."""
    if isinstance(one, dict) and isinstance(other, dict):
        return one | {name: combined(one[name], value) if name in one else value for name, value in other.items()}
    if isinstance(one, list) and isinstance(other, list):
        items = {_name_in(item, index): item for index, item in enumerate(one)}
        for index, item in enumerate(other):
            name = _name_in(item, index)
            items[name] = combined(items[name], item) if name in items else item
        return list(items.values())
    return one


def _name_in(item: Any, index: int) -> str:
    return str(item.get("name", index) if isinstance(item, dict) else index)


@dataclass(frozen=True, slots=True)
class Side:
    """The lists and maps of one of the two objects, of which all that fit together grow at the same time."""

    places: tuple[Growth, ...]

    def of(self, size: int) -> Object:
        """The spec with all of them."""
        spec: Object = {}
        for place in self.places:
            spec = combined(spec, place.of(size))
        return spec

    @classmethod
    def fitting(cls, places: list[Growth], is_fine: Callable[[Object], bool]) -> Side:
        """As many of these places as an object may have at the same time."""
        side = cls(())
        for place in (*places, *places):  # some need others, which come later
            more = cls((*side.places, place))
            if place not in side.places and is_fine(more.of(3)):
                side = more
        return side


def bend(call: Callable[[int], object]) -> int:
    """How much more the next items cost than the first ones; work that is counted, and linear, has next to none."""
    call(TOGETHER[0])  # What is made once does not count.
    first, second, third = (work(lambda size=size: call(size)) for size in TOGETHER)  # type: ignore[misc]
    return max(third - 2 * second + first, 0)


def test_lists_of_train_job_and_runtime_that_grow_together(pipeline: Pipeline) -> None:
    """Each list and map of a TrainJob with each of its runtime costs the sum of both, and not the product.

    What fits together grows together, since one product among many sums shows just as well; what does not, grows with
    all that the other object has.
    """

    def used(spec: Object, blueprint: Object) -> None:
        admitted_and_built(train_job(spec), runtime(blueprint), pipeline)

    def is_built(spec: Object, blueprint: Object) -> bool:
        admitted = asyncio.run(
            review_train_job(default_train_job(train_job(spec)), None, pipeline, Files(runtime(blueprint)))
        )
        return not admitted.errors

    own = [place for place in TRAIN_JOB_GROWTHS if place.holds_many]
    others = [place for place in RUNTIME_GROWTHS if place.holds_many]
    blueprints = Side.fitting(others, lambda blueprint: is_built({}, blueprint))
    specs = Side.fitting(own, lambda spec: is_built(spec, blueprints.of(3)))
    alone = bend(lambda size: used(specs.of(size), {})), bend(lambda size: used({}, blueprints.of(size)))
    assert len(specs.places) > len(own) * 0.8
    assert len(blueprints.places) > len(others) * 0.7
    together = bend(lambda size: used(specs.of(size), blueprints.of(size)))
    products = ["what fits"] if together - sum(alone) > BEND else []
    for place in (each for each in own if each not in specs.places):
        grown = bend(lambda size, place=place: used(place.of(size), blueprints.of(size)))  # type: ignore[misc]
        if grown - alone[1] > BEND + bend(lambda size, place=place: used(place.of(size), {})):  # type: ignore[misc]
            products.append(str(place))
    for place in (each for each in others if each not in blueprints.places):
        grown = bend(lambda size, place=place: used(specs.of(size), place.of(size)))  # type: ignore[misc]
        if grown - alone[0] > BEND + bend(lambda size, place=place: used({}, place.of(size))):  # type: ignore[misc]
            products.append(str(place))
    assert products == []


UNKNOWN: dict[str, Callable[[str, int], dict[str, int]]] = {
    "many": lambda known, size: {f"{known}{index}": 1 for index in range(size)},
    "long": lambda known, size: {known + "x" * size: 1},
}


@pytest.mark.parametrize("make", UNKNOWN.values(), ids=UNKNOWN.keys())
@pytest.mark.parametrize("places", [TRAIN_JOB_GROWTHS, RUNTIME_GROWTHS], ids=["TrainJob", "runtime"])
def test_suggestions(places: list[Growth], make: Callable[[str, int], dict[str, int]], pipeline: Pipeline) -> None:
    """At each place, unknown fields that look like one that exists cost linear work."""

    def reviewed(spec: Object) -> None:
        if places is TRAIN_JOB_GROWTHS:
            admitted_and_built(train_job(spec), runtime({}), pipeline)
        else:
            review_runtime(default_runtime(runtime(spec)), None, pipeline)

    known = [place for place in places if place.fields]
    assert len(known) > 30
    costly = [
        str(place)
        for place in known
        if not is_linear(lambda size, place=place: reviewed(place.with_unknown(make(max(place.fields, key=len), size))))  # type: ignore[misc]
    ]
    assert costly == []


def test_suggested_runtimes() -> None:
    """Names of runtimes that are like a missing one cost linear work: many of them, or long ones."""
    assert is_linear(lambda size: alternatives("runtime-x", [f"runtime-{index}" for index in range(size)]))
    longest = work(lambda: alternatives("ab" * LARGE, ["ba" * LARGE] * SMALL))
    assert longest <= work(lambda: alternatives("ab" * SMALL, ["ba" * SMALL] * SMALL)) + SLACK


def containers(size: int, **fields: Any) -> list[Object]:
    """Containers beside the one that trains."""
    others = [{"name": f"c{index}", "image": "i"} | _with_index(fields, index) for index in range(size)]
    return [*POD["containers"], *others]


def _with_index(value: Any, index: int) -> Any:
    if isinstance(value, dict):
        return {name: _with_index(member, index) for name, member in value.items()}
    if isinstance(value, list):
        return [_with_index(item, index) for item in value]
    return value.format(index) if isinstance(value, str) else value


CLAIM: Object = {"resources": {"claims": [{"name": "d{}"}]}}
MOUNT: Object = {"volumeMounts": [{"name": "v{}", "mountPath": "/m{}"}]}
PODS: dict[str, Callable[[int], Object]] = {
    "containers and claims": lambda size: {
        "containers": containers(size, **CLAIM),
        "resourceClaims": [{"name": f"d{index}", "resourceClaimName": "c"} for index in range(size)],
    },
    "containers and volumes": lambda size: {
        "containers": containers(size, **MOUNT),
        "volumes": [{"name": f"v{index}", "emptyDir": {}} for index in range(size)],
    },
    "containers and ports": lambda size: {"containers": containers(size, ports=[{"name": "p{}", "containerPort": 1}])},
    "containers and init containers": lambda size: {
        "containers": containers(size),
        "initContainers": [each | {"name": f"i{index}"} for index, each in enumerate(containers(size))],
    },
}


@pytest.mark.parametrize("make", PODS.values(), ids=PODS.keys())
def test_lists_that_refer_to_each_other(make: Callable[[int], Object], pipeline: Pipeline) -> None:
    """Two lists of a pod that grow together cost the sum of both, and not the product."""

    def used(size: int) -> None:
        blueprint = runtime({})
        blueprint["spec"]["template"]["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]["spec"] = make(size)
        review_runtime(default_runtime(blueprint), None, pipeline)
        admitted_and_built(train_job({}), blueprint, pipeline)

    # A pod has at most 64 containers.
    assert is_linear(lambda size: used(size // 2))


def review_of(obj: Object, **request: Any) -> bytes:
    """What the API server, or a stranger, sends."""
    resource = {"group": "trainer.kubeflow.org", "version": "v2alpha1", "resource": "trainjobs"}
    kind = {"group": "trainer.kubeflow.org", "version": "v2alpha1", "kind": "TrainJob"}
    content = {"uid": "u", "operation": "CREATE", "kind": kind, "resource": resource, "object": obj} | request
    return json.dumps({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": content}).encode()


def nested(depth: int) -> Object:
    """Mappings in mappings."""
    return {"a": nested(depth - 1)} if depth else {}


REVIEWS: dict[str, Callable[[int], bytes]] = {
    "unknown fields": lambda size: review_of(train_job({f"trainr{index}": 1 for index in range(size)})),
    "unknown fields of the request": lambda size: review_of({}, **{f"field{index}": 1 for index in range(size)}),
    "a long unknown field": lambda size: review_of(train_job({"trainr" * size: 1})),
    "a long kind": lambda size: review_of({}, kind={"group": "", "version": "v1", "kind": "-eyJ" * size}),
    "a long operation": lambda size: review_of({}, operation="-eyJ" * size),
    "groups": lambda size: review_of({}, userInfo={"username": "a", "groups": ["g"] * size}),
    "a long name": lambda size: review_of(train_job({}), name="a" * size, namespace="n" * size),
    "depth": lambda size: review_of(train_job({"trainer": nested(size)})),
    "wrong types": lambda size: review_of(train_job({"trainer": {"args": [1] * size}})),
    "labels": lambda size: review_of(
        train_job({}) | {"metadata": {"name": "t", "labels": {f"a b{index}": "" for index in range(size)}}}
    ),
    "no JSON": lambda size: b"{" * size,
}


@pytest.mark.parametrize("make", REVIEWS.values(), ids=REVIEWS.keys())
def test_reviews(make: Callable[[int], bytes], pipeline: Pipeline) -> None:
    """Whatever grows in a review, sent by whomever, costs linear work until it is answered."""

    def answered(body: bytes) -> None:
        try:
            review = AdmissionReview.decode(body)
        except ReviewError as error:
            redact(None, "info", {"event": "refused", "error": str(error)})
            return
        admitted_and_built(review.request.object or {}, runtime({}), pipeline)
        review.encode(AdmissionResponse.mutate(default_train_job(review.request.object or {})))

    assert is_linear(lambda size: answered(make(size)))


MESSAGES: dict[str, Callable[[int], bytes]] = {
    "metrics": lambda size: json.dumps({"trainMetrics": {f"m{index}": index for index in range(size)}}).encode(),
    "wrong metrics": lambda size: json.dumps({"trainMetrics": {f"m {index}": "x" for index in range(size)}}).encode(),
    "unknown fields": lambda size: json.dumps({f"m{index}": index for index in range(size)}).encode(),
    "digits": lambda size: b'{"currentStep": ' + b"9" * size + b"}",
    "a long metric": lambda size: json.dumps({"trainMetrics": {"m" * size: "9" * size}}).encode(),
    "no JSON": lambda size: b"[" * size,
}


@pytest.mark.parametrize("make", MESSAGES.values(), ids=MESSAGES.keys())
def test_log_lines(make: Callable[[int], bytes]) -> None:
    """A line of a log, and any number of lines, cost linear work."""

    def read(payload: bytes, lines: int = 1) -> None:
        block = (
            b"2026-01-01T00:00:00Z some text\n2026-01-01T00:00:00Z " + TAG.encode() + b" " + payload + b"\n"
        ) * lines
        found = list(tagged_lines(block))
        assert len(found) == lines
        for message in found:
            with suppress(RejectedMessageError):
                parse(message.payload)

    assert is_linear(lambda size: read(make(size)))
    assert is_linear(lambda size: read(make(SMALL), lines=size))


@pytest.mark.parametrize("unit", ["0: ", "[1,0]<stdout>:", " ", "[", "a", "\r", f"{TAG} {{}}", f"\r{TAG} {{}}"])
def test_what_stands_before_a_tag(unit: str) -> None:
    """A line costs linear work whatever its message stands behind."""

    def read(size: int) -> None:
        line = f'2026-01-01T00:00:00Z {unit * (size // len(unit))}{TAG} {{"currentStep": 1}}\n'
        for _ in MessageReader(list[object]().append).read(line.encode()):
            pass

    assert is_linear(read)


@pytest.mark.parametrize("unit", ["Epoch 3/10 ", "loss: 1 ", "1", " ", "\x1b[", "\r", "1/", "a=", "Epoch 1/2 loss=1\r"])
@pytest.mark.parametrize("length", [1000, 65536])
def test_plain_lines(unit: str, length: int) -> None:
    """Ordinary lines cost linear work whatever they repeat, also those that are too long to be looked at."""

    def read(size: int) -> None:
        line = f"2026-01-01T00:00:00Z Epoch {unit * (length // len(unit))}\n" * (size + 1)  # the first has none to join
        for _ in MessageReader(list[object]().append, with_plain_lines=True).read(line.encode()):
            pass

    assert is_linear(read)


@pytest.mark.parametrize(
    "unit",
    [
        "\x1b[31mx\x1b[1;38;5;9my",
        "\rabc",
        "\x1b]",
        "\x1b[2Kx",
        "x\x1b[K\b",
        "\x1b[9999Cx",
        "x\x1b[9999D",
        "\x1b[1;",
        "\x9b",
        "\x90",
    ],
)
def test_lines_on_a_terminal(unit: str) -> None:
    """What a terminal shows of a line costs linear work, whatever escapes it has."""

    def show(size: int) -> None:
        for _ in log_lines(f"2026-01-01T00:00:00Z {unit * (size // len(unit))}\n".encode()):
            pass

    assert is_linear(show)


@pytest.mark.parametrize("unit", [b"\r", b"x", b"x\r", b"\r" + b"x" * 1000, b"\rx" * 1000 + b"y" * 70_000])
@pytest.mark.parametrize("limit", [pytest.param(65_536, id="limit"), pytest.param(None, id="no limit")])
@pytest.mark.parametrize("size", [100, 16 * 1024])
def test_lines_that_are_written_over(unit: bytes, limit: int | None, size: int) -> None:
    """A line without a newline costs linear work, however it is written over and cut."""

    def read(length: int) -> None:
        blocks = LineBlocks(list[object]().append, limit=limit)
        line = unit * (100 * length // len(unit) + 1)
        for start in range(0, len(line), size):
            for _ in blocks.of(line[start : start + size]):
                pass
            blocks.take_state()

    assert is_linear(read)


POSTS: dict[str, Callable[[int], object]] = {
    "metrics": lambda size: {"metrics": [{"name": f"m{index}", "value": "1"} for index in range(size)]},
    "wrong metrics": lambda size: {"metrics": [{"name": 1}] * size},
    "a long metric": lambda size: {"metrics": [{"name": "m" * size, "value": "9" * size}]},
    "unknown fields": lambda size: {f"m{index}": index for index in range(size)},
    "a long time": lambda size: {"lastUpdatedTime": "2026-01-01T00:00:00." + "9" * size},
    "depth": nested,
}


@pytest.mark.parametrize("make", POSTS.values(), ids=POSTS.keys())
def test_posts(make: Callable[[int], object]) -> None:
    """What a pod posts about its progress costs linear work."""

    def read(size: int) -> None:
        with suppress(InvalidObjectError):
            parse_push(json.dumps({"trainerStatus": make(size)}).encode())

    assert is_linear(read)


@pytest.mark.parametrize("text", ["a", "-eyJ", "Bearer ", "a=b ", "\n", "\x1b[", "ü"])
def test_texts_of_logs_and_events(text: str) -> None:
    """What is logged or becomes an event costs linear work, whatever its text and however many members it has."""

    def reported(size: int) -> None:
        redact(None, "info", {"event": text * size, "error": {f"{text}{index}": text for index in range(size)}})
        cut_message(text * size)

    assert is_linear(reported)
