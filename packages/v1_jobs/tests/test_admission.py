"""Validation of PyTorchJobs and JAXJobs."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from packages.v1_jobs.tests.controllers.samples import JAX, PYTORCH, elastic_job, jax_job, parted_job, pytorch_job
from tests.framework.static_reader import StaticReader
from trainer.framework.pipeline import Pipeline
from trainer.framework.plugin_api.errors import AdmissionWarning, Review
from trainer.framework.runtimes.default_gang import DefaultGang
from trainer.kube.objects import Object, ObjectKey
from trainer.kube.webhook.admission import AdmissionRequest, Operation
from trainer.manager import built_in_plugins
from trainer.plugins.volcano import POD_GROUPS
from trainer.v1alpha1.discovery import Version
from trainer_kube_testing import FakeClient
from trainer_v1_jobs.admission import (
    FIXED_SIZE,
    FIXED_SIZE_PARTED,
    KEPT_PODS,
    LATE_CLEANING,
    RUNNING,
    JobAdmission,
    review_job,
)
from trainer_v1_jobs.api.kinds import JobKind

WORKERS = "spec.pytorchReplicaSpecs[Worker]"


@pytest.fixture(scope="module")
def pipeline() -> Pipeline:
    """With the plugins of this package."""
    return Pipeline(built_in_plugins(StaticReader()))


def kind_of(job: Object) -> JobKind:
    return PYTORCH if job["kind"] == "PyTorchJob" else JAX


def changed(job: Object, *path: str, to: Any) -> Object:
    """A copy with another value at a path."""
    result = copy.deepcopy(job)
    place = result
    for step in path[:-1]:
        place = place.setdefault(step, {})
    place[path[-1]] = to
    return result


CONTAINERS = ("pytorchReplicaSpecs", "Worker", "template", "spec", "containers")


@pytest.mark.parametrize(
    ("job", "expected"),
    [
        pytest.param(pytorch_job(), [], id="PyTorchJob"),
        pytest.param(elastic_job(), [], id="elastic"),
        pytest.param(jax_job(), [], id="JAXJob"),
        pytest.param(pytorch_job(2, master=False), [], id="no-master"),
        pytest.param(
            changed(pytorch_job(1), "spec", "pytorchReplicaSpecs", "Worker", "replicas", to=0), [], id="master-alone"
        ),
        pytest.param(
            changed(elastic_job(), "spec", "elasticPolicy", "nProcPerNode", to=2),
            [],
            id="old-number-of-processes",
        ),
        pytest.param(
            changed(jax_job(), "spec", "jaxReplicaSpecs", "Worker", "replicas", to=0),
            ["spec.jaxReplicaSpecs[Worker].replicas: Invalid value: 0: must be at least 1"],
            id="no-worker",
        ),
    ],
)
def test_new_jobs(job: Object, expected: list[str], pipeline: Pipeline) -> None:
    """What cannot train is refused with field and remedy."""
    assert list(map(str, review_job(job, None, kind_of(job), pipeline).errors)) == expected


@pytest.mark.parametrize("version", ["v2alpha1", "v1alpha1"])
def test_gang_scheduling_by_the_setting(version: Version) -> None:
    """What the cluster lacks for it refuses jobs that ask for no gang themselves, and the setting is named."""
    reader = StaticReader(unserved=[POD_GROUPS])
    pipeline = Pipeline(built_in_plugins(reader), gang=DefaultGang(lambda: "volcano"))
    (error,) = review_job(pytorch_job(), None, PYTORCH, pipeline, version).errors
    assert str(error) == (
        "spec: Invalid value: becomes a TrainJob with gangScheduling of the manager's configuration: Forbidden: the "
        "cluster does not have podgroups.scheduling.volcano.sh; install Volcano with its CRD"
    )


@pytest.mark.parametrize(
    ("gang", "warned"), [pytest.param("", True, id="none"), pytest.param("volcano", False, id="volcano")]
)
def test_a_gang_scheduler_of_the_pods(gang: str, warned: bool) -> None:
    """Who names one is warned unless the setting makes a gang of the job."""
    job = pytorch_job()
    job["spec"]["pytorchReplicaSpecs"]["Worker"]["template"]["spec"]["schedulerName"] = "volcano"
    job["spec"]["pytorchReplicaSpecs"]["Master"]["template"]["spec"]["schedulerName"] = "volcano"
    pipeline = Pipeline(built_in_plugins(StaticReader()), gang=DefaultGang(lambda: gang))
    review = review_job(job, None, PYTORCH, pipeline)
    assert review.errors == ()
    assert any("starts pods one by one" in each.message for each in review.warnings) == warned


def test_a_name_that_is_too_long(pipeline: Pipeline) -> None:
    """Pods have the name of the job, and more."""
    (error,) = review_job(pytorch_job(name="a" * 60), None, PYTORCH, pipeline).errors
    assert error.field == "metadata.name"


TRIAL = {"apiVersion": "kubeflow.org/v1beta1", "kind": "Trial", "name": "trial", "uid": "t"}


@pytest.mark.parametrize("version", ["v2alpha1", "v1alpha1"])
@pytest.mark.parametrize(
    ("job", "metadata", "is_admitted"),
    [
        pytest.param(pytorch_job(), {}, True, id="neither"),
        pytest.param(pytorch_job(), {"labels": {"kueue.x-k8s.io/queue-name": "team"}}, False, id="Kueue"),
        pytest.param(pytorch_job(), {"ownerReferences": [TRIAL]}, False, id="Katib"),
        pytest.param(jax_job(), {"labels": {"kueue.x-k8s.io/queue-name": "team"}}, True, id="one-role"),
    ],
)
def test_a_name_that_is_too_long_later(
    job: Object, metadata: Object, is_admitted: bool, version: Version, pipeline: Pipeline
) -> None:
    """Where Master and Workers will be Jobs of their own, whose pods have longer names, the job is refused at once."""
    own = job | {"metadata": job["metadata"] | {"name": "a" * 48} | metadata}
    errors = review_job(own, None, kind_of(job), pipeline, version).errors
    assert [error.field for error in errors] == ([] if is_admitted else ["metadata.name"])


OLD = "training.kubeflow.org"
SPREAD = {
    "topologySpreadConstraints": [
        {
            "maxSkew": 1,
            "topologyKey": "zone",
            "whenUnsatisfiable": "DoNotSchedule",
            "labelSelector": {"matchLabels": {f"{OLD}/operator-name": "jaxjob-controller"}},
        }
    ]
}


def test_what_is_lost_is_a_warning(pipeline: Pipeline) -> None:
    """The author learns what has no effect here."""
    job = changed(elastic_job(), "spec", "elasticPolicy", "rdzvBackend", to="etcd")
    warnings = review_job(job, None, PYTORCH, pipeline).warnings
    assert [warning.field for warning in warnings] == ["spec.elasticPolicy.rdzvBackend"]


@pytest.mark.parametrize(
    ("container", "pod", "lost"),
    [
        pytest.param({"command": ["kubectl", "get", "pods", "-l", f"{OLD}/job-name=job"]}, {}, [], id="query"),
        pytest.param({}, SPREAD, [], id="selector"),
        pytest.param({"command": ["ping", "$JOB-worker-1"]}, {}, ["containers[jax].command"], id="name"),
    ],
)
def test_labels_of_the_operator(container: Object, pod: Object, lost: list[str], pipeline: Pipeline) -> None:
    """Pods of a served job have them, so that only what refers to their names is lost."""
    job = jax_job()
    template = job["spec"]["jaxReplicaSpecs"]["Worker"]["template"]
    template["spec"] |= pod
    template["spec"]["containers"][0] |= container
    prefix = "spec.jaxReplicaSpecs[Worker].template.spec."
    assert [each.field.removeprefix(prefix) for each in review_job(job, None, JAX, pipeline).warnings] == lost


@pytest.mark.parametrize("version", ["v2alpha1", "v1alpha1"])
@pytest.mark.parametrize(
    ("job", "expected"),
    [
        pytest.param(pytorch_job(), [], id="default"),
        pytest.param(pytorch_job(cleanPodPolicy="Running"), [], id="Running"),
        pytest.param(pytorch_job(cleanPodPolicy="All"), [], id="All"),
        pytest.param(pytorch_job(cleanPodPolicy="None"), [KEPT_PODS], id="None"),
        pytest.param(jax_job(cleanPodPolicy="None"), [KEPT_PODS], id="None-without-a-Master"),
        pytest.param(
            elastic_job(cleanPodPolicy="None"),
            [
                (
                    "has no counterpart: pods that still run when the training ends or fails are deleted, finished "
                    "ones stay; collect the logs that you need while the pods run"
                )
            ],
            id="None-elastic",
        ),
    ],
)
def test_pods_that_are_to_stay(job: Object, expected: list[str], version: Version, pipeline: Pipeline) -> None:
    """Who states cleanPodPolicy None learns which pods JobSet deletes all the same."""
    review = review_job(job, None, kind_of(job), pipeline, version)
    field = "spec.runPolicy.cleanPodPolicy"
    assert [each.message for each in review.warnings if each.field == field] == expected
    assert review.errors == ()


def test_what_v1alpha1_cannot_say_is_a_warning(pipeline: Pipeline) -> None:
    """The author of an elastic job learns that its size is fixed, and any other job is admitted without a warning."""
    review = review_job(elastic_job(), None, PYTORCH, pipeline, "v1alpha1")
    assert review.errors == ()
    assert [warning.field for warning in review.warnings] == ["spec.elasticPolicy"]
    for job in (pytorch_job(), jax_job(), jax_job(ttlSecondsAfterFinished=1, cleanPodPolicy="All")):
        assert review_job(job, None, kind_of(job), pipeline, "v1alpha1") == Review()


def running(job: Object) -> Object:
    """The job as it is stored while it runs."""
    return job | {"status": {"conditions": [{"type": "Running", "status": "True"}]}}


def ended(job: Object, how: str = "Succeeded") -> Object:
    """The job as it is stored after its end."""
    return job | {"status": {"conditions": [{"type": how, "status": "True"}]}}


IMAGE = [{"name": "pytorch", "image": "other", "command": ["train"]}]


@pytest.mark.parametrize(
    ("old", "path", "value", "expected"),
    [
        pytest.param(running(pytorch_job()), ("metadata", "finalizers"), [], [], id="metadata"),
        pytest.param(running(pytorch_job()), ("spec", "runPolicy", "suspend"), True, [], id="suspend"),
        pytest.param(running(pytorch_job()), ("spec", "runPolicy", "ttlSecondsAfterFinished"), 5, [], id="ttl"),
        pytest.param(running(pytorch_job()), ("spec", "runPolicy", "cleanPodPolicy"), "All", [], id="cleaning"),
        pytest.param(running(jax_job()), ("spec", "runPolicy", "cleanPodPolicy"), "Running", [], id="no-master"),
        pytest.param(
            running(pytorch_job(elastic={})),
            ("spec", "runPolicy", "cleanPodPolicy"),
            "Running",
            [],
            id="no-effect-of-an-elastic-policy-without-members",
        ),
        pytest.param(
            running(pytorch_job()),
            ("spec", "runPolicy", "cleanPodPolicy"),
            "Running",
            [f"spec.runPolicy.cleanPodPolicy: Forbidden: {RUNNING}"],
            id="cleaning-of-running-pods",
        ),
        pytest.param(
            running(pytorch_job()),
            ("spec", *CONTAINERS),
            IMAGE,
            [f"{WORKERS}.template.spec.containers[pytorch].image: Forbidden: {RUNNING}"],
            id="image-while-running",
        ),
        pytest.param(pytorch_job(suspend=True), ("spec", *CONTAINERS), IMAGE, [], id="image-while-suspended"),
        pytest.param(
            running(elastic_job()),
            ("spec", "pytorchReplicaSpecs", "Worker", "replicas"),
            3,
            [],
            id="size-of-an-elastic",
        ),
        pytest.param(
            running(elastic_job()),
            ("spec", "elasticPolicy", "maxReplicas"),
            5,
            [f"spec.elasticPolicy.maxReplicas: Forbidden: {RUNNING}"],
            id="bounds-while-running",
        ),
        pytest.param(
            pytorch_job(suspend=True),
            ("spec", "runPolicy", "managedBy"),
            "kueue.x-k8s.io/multikueue",
            [
                (
                    'spec.runPolicy.managedBy: Invalid value: "kueue.x-k8s.io/multikueue": is immutable: delete the '
                    "job and submit it again"
                )
            ],
            id="managedBy",
        ),
        pytest.param(ended(pytorch_job()), ("spec", *CONTAINERS), IMAGE, [], id="after-the-end"),
    ],
)
def test_changes(old: Object, path: tuple[str, ...], value: Any, expected: list[str], pipeline: Pipeline) -> None:
    """What a running job would ignore is refused, with what to do instead."""
    review = review_job(changed(old, *path, to=value), old, kind_of(old), pipeline)
    assert list(map(str, review.errors)) == expected


@pytest.mark.parametrize(
    ("old", "policy", "is_warned"),
    [
        pytest.param(ended(pytorch_job()), "Running", True, id="from-the-default"),
        pytest.param(ended(pytorch_job(cleanPodPolicy="None")), "Running", True, id="from-None"),
        pytest.param(ended(pytorch_job(), "Failed"), "Running", False, id="failed"),
        pytest.param(
            changed(ended(pytorch_job()), "metadata", "deletionTimestamp", to="2026-01-01T00:00:00Z"),
            "Running",
            False,
            id="deleted",
        ),
    ],
)
def test_cleaning_after_the_end(old: Object, policy: str, is_warned: bool, pipeline: Pipeline) -> None:
    """Where workers may run on nothing deletes only these any more, and the author learns what does."""
    review = review_job(changed(old, "spec", "runPolicy", "cleanPodPolicy", to=policy), old, kind_of(old), pipeline)
    expected = (AdmissionWarning("spec.runPolicy.cleanPodPolicy", LATE_CLEANING),) if is_warned else ()
    assert (review.errors, review.warnings) == ((), expected)


@pytest.mark.parametrize(
    ("job", "version", "replicas", "expected"),
    [
        pytest.param(elastic_job(), "v2alpha1", 4, "", id="within-the-bounds"),
        pytest.param(
            elastic_job(),
            "v2alpha1",
            5,
            f"{WORKERS}.replicas: Invalid value: 5: must be between 1 and 4, as spec.elasticPolicy says",
            id="out-of-bounds",
        ),
        pytest.param(pytorch_job(), "v2alpha1", 3, f"{WORKERS}.replicas: Forbidden: {FIXED_SIZE}", id="not-elastic"),
        pytest.param(pytorch_job(), "v2alpha1", 2, "", id="as-it-is"),
        pytest.param(
            pytorch_job(elastic={}), "v2alpha1", 3, f"{WORKERS}.replicas: Forbidden: {FIXED_SIZE}", id="no-bounds"
        ),
        pytest.param(
            jax_job(), "v2alpha1", 3, f"spec.jaxReplicaSpecs[Worker].replicas: Forbidden: {FIXED_SIZE}", id="JAXJob"
        ),
        pytest.param(elastic_job(suspend=True), "v1alpha1", 3, "", id="of-fixed-size-and-suspended"),
        pytest.param(parted_job(suspend=True), "v2alpha1", 3, "", id="roles-that-differ-and-suspended"),
        pytest.param(
            pytorch_job(1, master=False, elastic={"standalone": True}),
            "v2alpha1",
            3,
            f"{WORKERS}.replicas: Forbidden: {FIXED_SIZE_PARTED}",
            id="alone",
        ),
    ],
)  # fmt: skip
async def test_scale(job: Object, version: Version, replicas: int, expected: str, pipeline: Pipeline) -> None:
    """`kubectl scale` is refused where a running training could not follow."""
    kind = kind_of(job)
    client = FakeClient(job, resources=[kind.resource])
    request = AdmissionRequest(
        uid="uid",
        operation=Operation.UPDATE,
        resource=kind.resource,
        subresource="scale",
        **ObjectKey("default", "job")._asdict(),
        object={"kind": "Scale", "spec": {"replicas": replicas}},
        old_object=None,
        dry_run=False,
        username="user",
        groups=(),
    )
    response = await JobAdmission(pipeline, client, version=version).validate(kind, request)
    assert (response.allowed, response.message) == (not expected, expected)
