"""Validation of OptimizationJobs: a sweep whose trials would be refused is."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from packages.sweeps.tests.samples import changed, sweep
from tests.framework.static_reader import StaticReader
from tests.v1alpha1.test_admission import RUNTIMES as RELEASED_RUNTIMES
from tests.webhooks.blueprints import RUNTIMES
from tests.webhooks.nets import pipeline
from trainer.api.optimization import OPTIMIZATION_JOBS
from trainer.api.trainingruntime import CLUSTER_TRAINING_RUNTIMES, TRAINING_RUNTIMES
from trainer.api.trainjob import TRAIN_JOBS
from trainer.framework.pipeline import Pipeline
from trainer.framework.runtimes.default_gang import DefaultGang
from trainer.kube.objects import Object, name_of, namespace_of
from trainer.kube.webhook.admission import AdmissionRequest, AdmissionResponse, Operation
from trainer.manager import built_in_plugins
from trainer.plugins.volcano import POD_GROUPS
from trainer.v1alpha1.discovery import Served, Version
from trainer_kube_testing import FakeClient
from trainer_sweeps.admission import SUSPENDED, SweepAdmission

TEMPLATE = "spec.trainJobTemplate"
SPEC = "trainJobTemplate.spec"
KINDS = (TRAINING_RUNTIMES, CLUSTER_TRAINING_RUNTIMES, TRAIN_JOBS)


def client_of(version: Version) -> FakeClient:
    """A cluster with the runtimes of the tables."""
    if version == "v2alpha1":
        return FakeClient(*RUNTIMES.values(), resources=KINDS)
    kinds = [msgspec.structs.replace(kind, version=version) for kind in KINDS]
    return FakeClient(*RELEASED_RUNTIMES, resources=kinds)


async def answer(
    obj: Object, version: Version = "v2alpha1", old: Object | None = None, plugins: Pipeline | None = None
) -> AdmissionResponse:
    """What the webhook says."""
    client = Served(version).client(client_of(version))
    request = AdmissionRequest(
        uid="uid",
        operation=Operation.CREATE if old is None else Operation.UPDATE,
        resource=msgspec.structs.replace(OPTIMIZATION_JOBS, version=version),
        subresource="",
        name=name_of(obj),
        namespace=namespace_of(obj),
        object=obj,
        old_object=old,
        dry_run=False,
        username="ann",
        groups=(),
    )
    return await SweepAdmission(plugins or pipeline(version), client, version=version).validate(request)


async def test_gang_scheduling_by_the_setting() -> None:
    """A sweep is refused whose trials would be, and the setting is named that they have no gang by."""
    reader = StaticReader(unserved=[POD_GROUPS])
    plugins = Pipeline(built_in_plugins(reader), gang=DefaultGang(lambda: "volcano"))
    response = await answer(on("plain"), plugins=plugins)
    assert response.message == (
        "gangScheduling of the manager's configuration: Forbidden: the cluster does not have "
        "podgroups.scheduling.volcano.sh; install Volcano with its CRD"
    )


def on(runtime: str, *changes: tuple[str, Any], **more: Any) -> Object:
    """A sweep on a runtime."""
    return sweep((f"{SPEC}.runtimeRef.name", runtime), *changes, **more)


@pytest.mark.parametrize(
    ("obj", "expected"),
    [
        pytest.param(on("plain"), "", id="plain"),
        pytest.param(on("plain", name="a" * 30), "", id="long-name"),
        pytest.param(
            on("plain", ("trainJobTemplate.metadata", {"labels": {"team": "a"}}), (f"{SPEC}.maxRestarts", 2)),
            "",
            id="more",
        ),
        pytest.param(
            on("plain", (f"{SPEC}.trainer", {"env": [{"name": "KUBEFLOW_TRAINER_OPT_LR", "value": "1"}]})),
            "",
            id="a-variable-of-the-template-that-is-replaced",
        ),
        pytest.param(
            on("none"),
            f'{TEMPLATE}.spec.runtimeRef.name: Not found: "none": there is no ClusterTrainingRuntime of this name; '
            "create it, or change spec.runtimeRef",
            id="no-runtime",
        ),
        pytest.param(
            on("plain", (f"{SPEC}.trainer", {"imgae": "a"})),
            f"{TEMPLATE}.spec.trainer.imgae: Unknown field: did you mean image?",
            id="typing-error",
        ),
        pytest.param(
            on("plain", (f"{SPEC}.trainer", {"image": "Train Me"})),
            f"{TEMPLATE}.spec.trainer.image: Invalid value",
            id="image",
        ),
        pytest.param(
            on("plain", (f"{SPEC}.trainer", {"env": [{"name": "a=b"}]})),
            f"{TEMPLATE}.spec.trainer.env[0].name: Invalid value",
            id="variable",
        ),
        pytest.param(
            on("plain", ("parameters.0.searchSpace", {"uniform": {"min": "2", "max": "1"}})),
            "spec.parameters[0].searchSpace.uniform.min: Invalid value",
            id="search-space",
        ),
        pytest.param(
            on("plain", ("trainJobTemplate.metadata", {"annotations": {"trainer.kubeflow.org/checkpoints": "/a/b"}})),
            f"{TEMPLATE}.metadata.annotations[trainer.kubeflow.org/checkpoints]: Invalid value",
            id="annotation",
        ),
        pytest.param(
            on("plain", name="a" * 53),
            f"metadata.name: a trial is called {'a' * 53}-trial-4: Invalid value",
            id="name-too-long-for-pods",
        ),
    ],
)
async def test_new_sweeps(obj: Object, expected: str) -> None:
    """What no trial could do is refused once and for all, with the field of the sweep and the remedy."""
    response = await answer(obj)
    assert response.allowed == (not expected), response
    assert expected in response.message
    assert response.warnings == ()


@pytest.mark.parametrize(
    ("obj", "expected"),
    [
        pytest.param(on("torch", version="v1alpha1"), "", id="torch"),
        pytest.param(
            on("torhc", version="v1alpha1"),
            f'{TEMPLATE}.spec.runtimeRef: Invalid value: {{"name":"torhc"}}: ClusterTrainingRuntime torhc not found: '
            "specified clusterTrainingRuntime must be created before the TrainJob is created",
            id="no-runtime",
        ),
        pytest.param(
            on("torch", (f"{SPEC}.trainer", {"env": [{"name": "PET_NNODES"}]}), version="v1alpha1"),
            f"{TEMPLATE}.spec.trainer.env",
            id="reserved-variable",
        ),
    ],
)
async def test_new_sweeps_of_the_released_version(obj: Object, expected: str) -> None:
    """Trials of v1alpha1 are judged as TrainJobs of v1alpha1 are, in the words of Kubeflow Trainer (Go)."""
    response = await answer(obj, "v1alpha1")
    assert response.allowed == (not expected), response
    assert expected in response.message


async def test_warnings() -> None:
    """The author is warned of trials that nobody resumes."""
    assert (await answer(on("plain", (f"{SPEC}.suspend", True)))).warnings == (f"{TEMPLATE}.spec.suspend: {SUSPENDED}",)


async def test_changes_are_not_judged() -> None:
    """A sweep that is stored can be suspended and lose a finalizer, whatever has become of its runtime."""
    old = on("gone")
    assert (await answer(changed(old, ("suspend", True)), old=old)).allowed


async def test_the_largest_template() -> None:
    """Variables of template and parameters together can be more than a TrainJob may have: the error names the list."""
    space = {"categorical": {"choices": ["a"]}}
    parameters = [{"name": f"p{each}", "searchSpace": space} for each in range(100)]
    env = [{"name": f"V{each}", "value": "1"} for each in range(1000)]
    assert (await answer(on("plain", ("parameters", parameters)))).allowed
    response = await answer(on("plain", ("parameters", parameters), (f"{SPEC}.trainer", {"env": env})))
    assert f"{TEMPLATE}.spec.trainer.env: Too many: 1100: must have at most" in response.message
