"""The reporter that is put beside trainings."""

from __future__ import annotations

from typing import Any

import pytest

from tests.framework.samples import env_of, replicated_job, runtime, runtime_object, train_job_object
from tests.framework.static_reader import StaticReader
from trainer.api.progress import REPORTER
from trainer.api.trainingruntime import ClusterTrainingRuntime
from trainer.api.trainjob import TrainJob
from trainer.framework.building.extraction import extract
from trainer.framework.building.trainer_step import apply_trainer_env
from trainer.framework.plugin_api.plugin_context import PluginContext
from trainer.kube.objects import Object
from trainer.plugins.jobset.builder import build_jobset
from trainer.plugins.progress_reporter import ProgressReporter
from trainer.workloads import JOBSETS

DIRECTORY = "/opt/trainer-reporter"
FILTER = "ignore::trainer_reporter.Never"
FIELD: Object = {"fieldRef": {"fieldPath": "metadata.name"}}
MPI: Object = {"mpi": {"numProcPerNode": 1}}
LAUNCHER = replicated_job("launcher", {"name": "trainer", "image": "i"})


def train_job(annotation: str | None = "true", **spec: Any) -> TrainJob:
    obj = train_job_object(**spec)
    if annotation is not None:
        obj["metadata"]["annotations"] = {REPORTER: annotation}
    return TrainJob.from_object(obj)


def plugin(*objects: Object, image: str = "manager:1") -> ProgressReporter:
    return ProgressReporter(PluginContext(StaticReader(*objects), {"image": image} if image else {}))


def pod_spec(
    job: TrainJob,
    *jobs: Object,
    container: Object | None = None,
    policy: Object | None = None,
    annotations: dict[str, str] | None = None,
    reporter: ProgressReporter | None = None,
) -> Object:
    """The pod spec of the node that is built."""
    node = replicated_job("node", {"name": "trainer", "image": "i"} | (container or {}))
    obj = runtime_object(node, *jobs, policy=policy)
    obj["spec"]["template"]["metadata"] = {"annotations": annotations or {}}
    blueprint = ClusterTrainingRuntime.from_object(obj)
    info = extract(job, blueprint)
    apply_trainer_env(info, job)
    (reporter or plugin()).identify_pod_network(info, job)
    spec: Object = build_jobset(info, job)["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]["spec"]
    return spec


def test_what_the_pod_gets() -> None:
    """An init container copies the reporter into a volume, from which the training imports it."""
    resources = {"requests": {"cpu": 2, "nvidia.com/gpu": 1}, "limits": {"nvidia.com/gpu": 1, "memory": "1Gi"}}
    spec = pod_spec(train_job(), container={"resources": resources})
    (init,), (main,) = spec["initContainers"], spec["containers"]
    assert init == {
        "name": "trainer-reporter",
        "image": "manager:1",
        "imagePullPolicy": "IfNotPresent",
        "command": ["python", "-m", "trainer.progress.injection.install", DIRECTORY],
        "volumeMounts": [{"name": "trainer-reporter", "mountPath": DIRECTORY}],
        "resources": {"requests": {"cpu": 2}, "limits": {"memory": "1Gi"}},
        "securityContext": {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}},
    }
    assert spec["volumes"] == [{"name": "trainer-reporter", "emptyDir": {}}]
    assert main["volumeMounts"] == [{"name": "trainer-reporter", "mountPath": DIRECTORY, "readOnly": True}]
    assert env_of(main) == {"PYTHONPATH": DIRECTORY, "PYTHONWARNINGS": FILTER}


@pytest.mark.parametrize(
    ("env", "own", "expected"),
    [
        pytest.param(
            {"PYTHONPATH": "/code", "PYTHONWARNINGS": "error"},
            {},
            {"PYTHONPATH": f"/code:{DIRECTORY}", "PYTHONWARNINGS": f"{FILTER},error"},
            id="of-the-runtime",
        ),
        pytest.param(
            {"PYTHONPATH": "/code"},
            {"PYTHONPATH": "/mine"},
            {"PYTHONPATH": f"/mine:{DIRECTORY}", "PYTHONWARNINGS": FILTER},
            id="of-the-trainjob",
        ),
    ],
)
def test_variables_of_others(env: dict[str, str], own: dict[str, str], expected: dict[str, str]) -> None:
    """What the runtime or the TrainJob sets comes first and stays in force."""
    listed, stated = ([{"name": name, "value": value} for name, value in each.items()] for each in (env, own))
    (main,) = pod_spec(train_job(trainer={"env": stated}), container={"env": listed})["containers"]
    assert env_of(main) == expected


@pytest.mark.parametrize(
    ("annotation", "of_jobset", "of_runtime", "is_there"),
    [
        pytest.param("true", None, None, True, id="trainjob"),
        pytest.param(None, None, "true", True, id="runtime"),
        pytest.param(None, "false", "true", False, id="jobset-against-runtime"),
        pytest.param(None, None, None, False, id="nobody"),
    ],
)
def test_who_asks_for_it(annotation: str | None, of_jobset: str | None, of_runtime: str | None, is_there: bool) -> None:
    """It is off unless an annotation says otherwise; that of the TrainJob comes first."""
    job = train_job(annotation, **({"annotations": {REPORTER: of_jobset}} if of_jobset else {}))
    spec = pod_spec(job, annotations={REPORTER: of_runtime} if of_runtime else None)
    assert ("initContainers" in spec) is is_there


PATH: list[Object] = [{"name": "PYTHONPATH", "value": "/a"}]
FROM: list[Object] = [{"configMapRef": {"name": "settings"}}]
OVERRIDE: Object = {"targetJobs": [{"name": "node"}], "containers": [{"name": "trainer", "envFrom": FROM}]}


@pytest.mark.parametrize(
    ("annotation", "container", "spec", "is_there"),
    [
        pytest.param(None, {}, {}, True, id="of-the-runtime"),
        pytest.param(None, {}, {"trainer": {"image": "i"}}, True, id="the-same"),
        pytest.param(None, {}, {"trainer": {"image": "mine"}}, False, id="of-the-trainjob"),
        pytest.param("true", {}, {"trainer": {"image": "mine"}}, True, id="of-the-trainjob-that-asks"),
        pytest.param(None, {"env": PATH}, {"trainer": {"image": "mine"}}, True, id="path-of-the-runtime"),
        pytest.param(None, {}, {"trainer": {"image": "mine", "env": PATH}}, True, id="path-of-the-trainjob"),
        pytest.param(None, {"envFrom": FROM}, {}, False, id="variables-of-a-config-map"),
        pytest.param(None, {}, {"podSpecOverrides": [OVERRIDE]}, False, id="variables-of-an-override"),
        pytest.param("true", {"envFrom": FROM}, {}, True, id="variables-of-a-config-map-and-asked-for"),
        pytest.param(None, {"envFrom": FROM, "env": PATH}, {}, True, id="path-against-that-of-a-config-map"),
    ],
)
def test_hidden_paths(annotation: str | None, container: Object, spec: Object, is_there: bool) -> None:
    """A runtime does not hide the PYTHONPATH that a TrainJob's image, a ConfigMap or a Secret may have."""
    built = pod_spec(train_job(annotation, **spec), container=container, annotations={REPORTER: "true"})
    assert ("initContainers" in built) is is_there


@pytest.mark.parametrize(
    ("options", "container"),
    [
        pytest.param({"reporter": plugin(image="")}, None, id="no-image"),
        pytest.param({"policy": MPI}, None, id="mpi"),
        pytest.param({}, {"env": [{"name": "PYTHONPATH", "valueFrom": FIELD}]}, id="unknown-path"),
    ],
)
def test_where_it_cannot_be(options: dict[str, Any], container: Object | None) -> None:
    """A training is left as it is where the reporter could not report."""
    jobs = [LAUNCHER] if "policy" in options else []
    assert "initContainers" not in pod_spec(train_job(), *jobs, container=container, **options)


def test_peer_that_reports() -> None:
    """A chief of TensorFlow is the primary pod, so it has the reporter and its workers have none."""
    jobs = (replicated_job(name, {"name": "trainer", "image": "i"}) for name in ("node", "chief"))
    job = train_job()
    info = extract(job, ClusterTrainingRuntime.from_object(runtime_object(*jobs, policy={"tensorflow": {}})))
    node, chief = info.pod_sets
    info.report_from(chief)
    plugin().identify_pod_network(info, job)

    assert [container.name for container in chief.init_containers] == ["trainer-reporter"]
    assert (node.init_containers, node.volumes) == ([], [])


def test_restricted_namespace() -> None:
    """The init container fulfils the Pod Security Standard that the training fulfils by itself."""
    own = {"runAsNonRoot": True, "runAsUser": 1000, "seccompProfile": {"type": "RuntimeDefault"}}
    spec = pod_spec(train_job(), container={"securityContext": own | {"readOnlyRootFilesystem": True}})
    hardened = {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}
    assert spec["initContainers"][0]["securityContext"] == hardened | own


def test_name_that_is_taken() -> None:
    """An init container of the same name stays what it is, and admission warns."""
    job, taken = train_job(), {"name": "trainer-reporter", "image": "mine"}
    info = extract(job, runtime(replicated_job("node", pod={"initContainers": [taken]})))
    reporter = plugin()
    (warning,) = reporter.validate(info, None, job)
    assert "the pods have an init container named trainer-reporter" in str(warning)
    reporter.identify_pod_network(info, job)
    spec = build_jobset(info, job)["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]["spec"]
    assert spec["initContainers"] == [taken]
    assert "volumes" not in spec


@pytest.mark.parametrize("is_there", [True, False])
def test_existing_pods(is_there: bool) -> None:
    """Pods that run keep what they have, whatever the annotation and the configuration say now."""
    containers = [{"name": "trainer-reporter", "image": "manager:0"}] if is_there else []
    node = replicated_job("node", pod={"initContainers": containers})
    jobset: Object = {
        "apiVersion": JOBSETS.api_version,
        "kind": JOBSETS.kind,
        "metadata": {"name": "demo", "namespace": "default"},
        "spec": {"replicatedJobs": [node]},
    }
    spec = pod_spec(train_job("false" if is_there else "true"), reporter=plugin(jobset))
    assert [each["image"] for each in spec.get("initContainers", [])] == [each["image"] for each in containers]


@pytest.mark.parametrize(
    ("image", "policy", "warning"),
    [
        pytest.param("", None, "names no image", id="no-image"),
        pytest.param("manager:1", MPI, "the launcher of MPI", id="mpi"),
        pytest.param("manager:1", None, "", id="fine"),
    ],
)
def test_warnings(image: str, policy: Object | None, warning: str) -> None:
    """Who asks for it where it has no effect is warned at admission."""
    job = train_job()
    info = extract(job, runtime(replicated_job("node"), *([LAUNCHER] if policy else []), policy=policy))
    found = [str(each) for each in plugin(image=image).validate(info, None, job)]
    assert len(found) == bool(warning)
    assert all(warning in each for each in found)


@pytest.mark.parametrize(
    ("container", "spec", "warning"),
    [
        pytest.param({}, {}, "", id="as-the-runtime-has-it"),
        pytest.param({}, {"trainer": {"image": "i", "args": ["x"]}}, "", id="the-same-image"),
        pytest.param({}, {"trainer": {"image": "mine"}}, "spec.trainer.image: is not the image", id="another-image"),
        pytest.param({"env": PATH}, {"trainer": {"image": "mine"}}, "", id="path-of-the-runtime"),
        pytest.param({}, {"trainer": {"image": "mine", "env": PATH}}, "", id="path-of-the-trainjob"),
        pytest.param(
            {},
            {"trainer": {"env": [{"name": "PYTHONPATH", "valueFrom": FIELD}]}},
            "spec.trainer.env[PYTHONPATH]: is known to the cluster only",
            id="unknown-path",
        ),
        pytest.param({}, {"podSpecOverrides": [OVERRIDE]}, "container trainer: may have a PYTHONPATH", id="override"),
        pytest.param({"envFrom": FROM}, {}, "", id="variables-of-the-runtime"),
    ],
)
def test_warnings_where_the_runtime_asks(container: Object, spec: Object, warning: str) -> None:
    """A TrainJob that keeps away the reporter of its runtime is admitted with the reason and the remedy, once."""
    job = train_job(None, **spec)
    obj = runtime_object(replicated_job("node", {"name": "trainer", "image": "i"} | container))
    obj["spec"]["template"]["metadata"] = {"annotations": {REPORTER: "true"}}
    info = extract(job, ClusterTrainingRuntime.from_object(obj))
    found = [str(each) for each in plugin().validate(info, None, job)]
    assert [each[: len(warning)] for each in found] == ([warning] if warning else [])
    assert all(f'{REPORTER}="true"' in each for each in found)
    assert list(plugin(image="").validate(info, None, job)) == []
    assert list(plugin().validate(info, job, job)) == []
    declined = train_job("false", **spec)
    assert list(plugin().validate(info, None, declined)) == []
