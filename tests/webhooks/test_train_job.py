"""What admission says about TrainJobs that it accepts, and about changes of stored ones."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.framework.static_reader import StaticReader
from tests.webhooks.bad_inputs import CREATED
from tests.webhooks.blueprints import RUNTIMES, StaticRuntimes, blueprint, job, override, trainer
from tests.webhooks.requests import admit
from trainer.api.rules import CREATED_IMMUTABLE, RESTARTS_IMMUTABLE
from trainer.api.trainjob import TrainJob
from trainer.framework.pipeline import Pipeline
from trainer.framework.plugin_api.errors import AdmissionWarning
from trainer.framework.plugin_api.runtime_info import RuntimeInfo
from trainer.framework.startup.registry import Registry
from trainer.kube.errors import ServiceUnavailableError
from trainer.kube.field_errors import forbidden
from trainer.kube.objects import Object, ObjectKey
from trainer.kube.resource import Resource
from trainer.manager import built_in_plugins

ACTIVE = [{"name": "node", "ready": 0, "succeeded": 0, "failed": 0, "active": 1, "suspended": 0}]
GONE = [ACTIVE[0] | {"active": 0, "suspended": 1}]
SELECTOR = {"targetJobs": [{"name": "node"}], "nodeSelector": {"zone": "a"}}
TOLERATION = {"targetJobs": [{"name": "node"}], "tolerations": [{"key": "gpu", "operator": "Exists"}]}
VOLUME = {"targetJobs": [{"name": "node"}], "volumes": [{"name": "d", "emptyDir": {}}]}


@pytest.mark.parametrize(
    "obj",
    [
        pytest.param(job(), id="smallest"),
        pytest.param(job(runtime="torch", trainer={"numNodes": 100_000}), id="as-many-nodes-as-kubernetes-runs"),
        pytest.param(job(runtime="torch", trainer={"numProcPerNode": 4}), id="number-of-processes-as-a-number"),
        pytest.param(
            job(
                runtime="torch",
                trainer={"numProcPerNode": "gpu", "resourcesPerNode": {"limits": {"nvidia.com/gpu": 2}}},
            ),
            id="processes-by-gpu",
        ),
        pytest.param(job(managedBy=""), id="managed-by-nobody"),
        pytest.param(job(managedBy="kueue.x-k8s.io/multikueue"), id="managed-by-multikueue"),
        pytest.param(job(runtime="fine-tuning", datasetConfig={"storageUri": "gs://bucket/data"}), id="dataset"),
        pytest.param(job(runtime="fine-tuning", modelConfig={"input": {"storageUri": ""}}), id="empty-uri"),
        pytest.param(job(runtime="bare", trainer={"image": "image"}), id="image-of-the-train-job"),
        pytest.param(job(runtime="headless"), id="runtime-without-a-trainer"),
        pytest.param(override(serviceAccountName="robot"), id="override"),
        pytest.param(job(activeDeadlineSeconds=1, ttlSecondsAfterFinished=0), id="limits"),
        pytest.param(job("n" * 48), id="longest-name"),
    ],
)
async def test_accepted(obj: Object) -> None:
    """What can be built is accepted without a word."""
    response = await admit(obj)

    assert (response.allowed, response.message, response.warnings) == (True, "", ())


@pytest.mark.parametrize(
    ("obj", "warning"),
    [
        pytest.param(
            job(runtime="later"),
            "spec.runtimeRef.name: there is no ClusterTrainingRuntime later yet; the TrainJob waits until there is one",
            id="no-runtime-yet",
        ),
        pytest.param(
            job(runtime="old"),
            "spec.runtimeRef.name: ClusterTrainingRuntime old is deprecated and will be removed; use another runtime",
            id="deprecated",
        ),
        pytest.param(
            trainer(command=["python train.py | tee log"]),
            "spec.trainer.command: is not run by a shell, so | is passed on as a plain word; "
            'write ["sh", "-c", "..."] for a shell',
            id="shell-syntax",
        ),
        pytest.param(
            override(containers=[{"name": "trainer", "command": ["a && b"]}]),
            "spec.podSpecOverrides[0].containers[0].command: is not run by a shell, "
            'so && is passed on as a plain word; write ["sh", "-c", "..."] for a shell',
            id="shell-syntax-in-override",
        ),
    ],
)
async def test_accepted_with_a_warning(obj: Object, warning: str) -> None:
    """What works, but perhaps not as meant, is accepted with a warning."""
    old = blueprint(name="old")
    old["metadata"]["labels"] = {"trainer.kubeflow.org/support": "deprecated"}

    response = await admit(obj, runtimes=StaticRuntimes([*RUNTIMES.values(), old]))

    assert (response.allowed, response.warnings) == (True, (warning,))


def stored(*, jobs: list[Object] | None = None, metadata: Object | None = None, **spec: Any) -> Object:
    """A TrainJob whose Jobs exist."""
    obj = job(status=CREATED | ({"jobsStatus": jobs} if jobs else {}), **spec)
    return obj | {"metadata": obj["metadata"] | (metadata or {})}


@pytest.mark.parametrize(
    ("old", "new"),
    [
        pytest.param(stored(suspend=True), stored(), id="resume"),
        pytest.param(
            stored(suspend=True, podSpecOverrides=[VOLUME]),
            stored(suspend=True, podSpecOverrides=[VOLUME | {"nodeSelector": {"zone": "b"}}, TOLERATION]),
            id="scheduling-beside-volumes",
        ),
        pytest.param(
            stored(suspend=True, podSpecOverrides=[SELECTOR]), stored(suspend=True), id="scheduling-taken-back"
        ),
        pytest.param(
            stored(jobs=GONE, suspend=True), stored(jobs=GONE, suspend=True, labels={"a": "b"}), id="pods-are-gone"
        ),
        pytest.param(
            stored(trainer={"numProcPerNode": 1}), stored(trainer={"numProcPerNode": "1"}), id="number-or-string"
        ),
        pytest.param(stored(managedBy=None), stored(), id="default-becomes-visible"),
    ],
)
async def test_accepted_changes(old: Object, new: Object) -> None:
    """Metadata, suspend and time to live change always, scheduling while suspended, and the rest before creation."""
    response = await admit(new, old)

    assert (response.allowed, response.message) == (True, "")


def elastic(nodes: int, *ends: str, **settings: Any) -> Object:
    """An elastic TrainJob of one or two nodes that has been created."""
    obj = stored(runtime="elastic", trainer={"numNodes": nodes} | settings)
    scale = {"nodes": 1, "minNodes": 1, "maxNodes": 2, "selector": "a=b"}
    conditions = [*CREATED["conditions"], *(CREATED["conditions"][0] | {"type": end} for end in ends)]
    return obj | {"status": {"scale": scale, "conditions": conditions}}


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        pytest.param(elastic(1), elastic(2), "", id="grows"),
        pytest.param(
            elastic(2),
            elastic(5),
            "spec.trainer.numNodes: Invalid value: 5: must be between 1 and 2 for this elastic training",
            id="too-many",
        ),
    ],
)
async def test_numbers_of_nodes(old: Object, new: Object, message: str) -> None:
    """Only an elastic training that has not ended may have other ones, between its bounds, and nothing else changes."""
    response = await admit(new, old)

    assert (response.allowed, response.message) == (not message, message)


@pytest.mark.parametrize(
    "field",
    [
        pytest.param({"labels": {"a": "b"}}, id="labels"),
        pytest.param({"podSpecOverrides": [SELECTOR]}, id="podSpecOverrides"),
    ],
)
async def test_pods_that_are_still_there(field: dict[str, Any]) -> None:
    """While pods of the JobSet end, scheduling cannot change although the TrainJob is suspended."""
    response = await admit(stored(jobs=ACTIVE, suspend=True, **field), stored(jobs=ACTIVE, suspend=True))

    (name,) = field
    assert response.message == (
        f"spec.{name}: Forbidden: cannot be changed while pods of node are active; wait until they are gone"
    )


async def test_an_old_error_keeps_nobody_from_other_changes() -> None:
    """A TrainJob that was stored without webhooks can be suspended and labelled; a new error is refused."""
    bad: dict[str, Any] = {"trainer": {"numProcPerNode": 8}}
    old = job(**bad)

    assert (await admit(job(suspend=True, **bad), old)).allowed
    assert (await admit(old | {"metadata": old["metadata"] | {"finalizers": []}}, old)).allowed
    worse = await admit(job(trainer={"numProcPerNode": 8, "numNodes": 0}), old)
    assert worse.message == "spec.trainer.numNodes: Invalid value: 0: must be at least 1"


async def test_a_schema_error_of_the_past_keeps_nobody_from_other_changes() -> None:
    """A field that an older version has stored and this one does not know is no error of the change."""
    old = job(former=True)

    assert (await admit(job(former=True, suspend=True), old)).allowed


@pytest.mark.parametrize(
    "fields",
    [
        pytest.param({"podSpecOverrides": {"a": 1}}, id="overrides"),
        pytest.param({"trainer": "x", "labels": ["a"]}, id="trainer"),
        pytest.param({"runtimeRef": "plain"}, id="runtime-reference"),
        pytest.param({"managedBy": {"name": "x"}, "suspend": "yes"}, id="manager"),
    ],
)
async def test_a_shape_of_the_past_keeps_no_finalizer(fields: Object) -> None:
    """What an older definition has let pass, of whatever shape, can always lose its finalizers and be deleted."""
    spec = job()["spec"] | fields
    for status in (CREATED, {"conditions": 5}, {"conditions": ["Created"]}):
        old = job() | {"status": status, "spec": spec}
        old["metadata"] = old["metadata"] | {"finalizers": ["example.com/f"]}

        response = await admit(job() | {"spec": spec}, old)

        assert (response.allowed, response.message) == (True, "")


@pytest.mark.parametrize(
    "end",
    [
        pytest.param({"deletionTimestamp": "2026-01-01T00:00:00Z", "finalizers": ["a/b"]}, id="being-deleted"),
        pytest.param({}, id="finished"),
    ],
)
async def test_the_end_is_not_in_the_way(end: Object) -> None:
    """A TrainJob that has finished or is being deleted is not built on trial: its runtime may be anything by now."""
    complete = CREATED["conditions"][0] | {"type": "Complete"}
    old = stored(runtime="mpi", metadata={"labels": {"a": "b"}} | end)
    if not end:
        old["status"] = {"conditions": [*CREATED["conditions"], complete]}
    new = old | {"metadata": old["metadata"] | {"finalizers": []}, "spec": old["spec"] | {"suspend": True}}

    assert (await admit(new, old)).allowed
    late = await admit(old | {"spec": old["spec"] | {"trainer": {"image": "b"}}}, old)
    assert late.causes[0].field == "spec.trainer"


async def test_status_is_not_looked_at() -> None:
    """Requests for the subresource status pass, whatever the spec."""
    assert (await admit(trainer(numNodes=0), job(), subresource="status")).allowed


async def test_a_status_of_a_newer_version_is_no_error() -> None:
    """The status is ours: what cannot be read of it does not keep the user from changing the spec."""
    status = CREATED | {"state": "Levitating"}

    assert (await admit(job(status=status, suspend=True), job(status=status))).allowed


async def test_updates_are_built_on_the_snapshot() -> None:
    """A runtime that is gone or has become useless is no reason to refuse that a TrainJob is resumed."""
    snapshots = {ObjectKey("default", "demo-runtime-snapshot"): RUNTIMES["plain"]}
    runtimes = StaticRuntimes([], snapshots)

    response = await admit(stored(), stored(suspend=True), runtimes=runtimes)

    assert (response.allowed, response.warnings) == (True, ())


async def test_warnings_are_not_repeated() -> None:
    """A change of metadata alone brings no warning: its author is often a controller."""
    old = job(runtime="later")
    labelled = old | {"metadata": old["metadata"] | {"labels": {"a": "b"}}}

    assert (await admit(labelled, old)).warnings == ()
    assert (await admit(job(runtime="later", suspend=True), old)).warnings != ()


class Opinion:
    """A plugin with something to say about changes."""

    name = "opinion"

    def validate(
        self,
        info: RuntimeInfo,
        old: TrainJob | None,
        new: TrainJob,
    ) -> Iterator[Any]:
        """See `CustomValidation`."""
        if old is not None and old.spec.suspend != new.spec.suspend:
            yield forbidden("spec.suspend", "not on Sundays")
        yield AdmissionWarning("metadata.name", "a fine name")


class Broken:
    """A plugin with a defect."""

    name = "broken"

    def validate(self, info: RuntimeInfo, old: TrainJob | None, new: TrainJob) -> Iterator[Any]:
        """See `CustomValidation`."""
        raise KeyError("zone")


async def test_plugins_see_old_and_new() -> None:
    """A plugin may refuse what it sees changing, and warn."""
    plugins = Pipeline(Registry([*built_in_plugins(StaticReader()), Opinion()]))

    created = await admit(job(), plugins=plugins)
    resumed = await admit(job(), job(suspend=True), plugins=plugins)

    assert (created.allowed, created.warnings) == (True, ("metadata.name: a fine name",))
    assert resumed.message == "spec.suspend: Forbidden: not on Sundays"


async def test_a_plugin_that_raises_is_named() -> None:
    """The request is refused with 500, for nobody knows whether the TrainJob is right; the text names the plugin."""
    plugins = Pipeline(Registry([*built_in_plugins(StaticReader()), Broken()]))

    response = await admit(job(), plugins=plugins)

    assert (response.allowed, response.status_code, response.reason) == (False, 500, "InternalError")
    assert response.message == "Internal error: plugin broken failed in validate: KeyError: 'zone'"


async def test_a_cluster_that_does_not_answer() -> None:
    """A runtime that cannot be looked up is not taken for one that does not exist."""

    class Silent:
        async def of(self, train_job: TrainJob) -> Any:
            raise ServiceUnavailableError(503, "no etcd leader")

        async def present(self, resource: Resource, key: ObjectKey) -> Any:
            raise ServiceUnavailableError(503, "no etcd leader")

    with pytest.raises(ServiceUnavailableError):
        await admit(job(), runtimes=Silent())


async def test_another_runtime_before_the_jobs_exist() -> None:
    """A TrainJob whose runtime does not exist can name one that does, and is judged by it."""
    old = job(runtime="later")

    assert (await admit(job(), old)).allowed
    unfit = await admit(job(trainer={"numProcPerNode": 8}), old)
    assert unfit.causes[0].field == "spec.trainer.numProcPerNode"
    late = await admit(job(runtime="torch", status=CREATED), job(status=CREATED))
    assert late.message == f"spec.runtimeRef.name: Forbidden: {CREATED_IMMUTABLE}"


async def test_restarts_are_limited_before_the_jobs_exist() -> None:
    """Afterwards only while it is suspended, for the JobSet cannot change its limit."""
    assert (await admit(job(maxRestarts=2), job())).allowed
    late = await admit(job(maxRestarts=2, status=CREATED), job(status=CREATED))
    assert late.message == f"spec.maxRestarts: Forbidden: {RESTARTS_IMMUTABLE}"
    assert (await admit(job(maxRestarts=2, status=CREATED), job(suspend=True, status=CREATED))).allowed
