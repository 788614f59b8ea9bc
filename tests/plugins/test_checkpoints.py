"""The directories for checkpoints that trainings get."""

from __future__ import annotations

from typing import Any

import pytest

from tests.framework.samples import env_of, replicated_job, runtime_object, train_job_object
from tests.framework.static_reader import StaticReader
from trainer.api.checkpoints import CHECKPOINTS
from trainer.api.trainingruntime import ClusterTrainingRuntime
from trainer.api.trainjob import TrainJob
from trainer.framework.building.extraction import extract
from trainer.framework.building.trainer_step import apply_trainer_env
from trainer.framework.plugin_api.errors import BuildError
from trainer.framework.plugin_api.runtime_info import RuntimeInfo
from trainer.kube.objects import Object
from trainer.plugins.checkpoints import Checkpoints
from trainer.plugins.jobset.builder import build_jobset
from trainer.v1alpha1.profile import V1ALPHA1_PROFILE
from trainer.workloads import JOBSETS

UID = "5c2ee6f0-2f3a-4a5c-9b5e-0d4f5a0f6a11"
VOLUME = {"name": "trainer-checkpoints", "persistentVolumeClaim": {"claimName": "data"}}
DIRECTORY = {"TRAINER_CHECKPOINT_DIR": "/checkpoints"}
OWN: list[Object] = [{"name": "TRAINER_CHECKPOINT_DIR", "value": "/mine"}]
FIELD = f"metadata.annotations[{CHECKPOINTS}]"
TRAINS = {"labels": {"trainer.kubeflow.org/trainjob-ancestor-step": "trainer"}}


def train_job(annotation: str | None = "data/team-a", *, status: Object | None = None, **spec: Any) -> TrainJob:
    obj = train_job_object(**spec)
    obj["metadata"] |= {"name": "demo", "uid": UID}
    if annotation is not None:
        obj["metadata"]["annotations"] = {CHECKPOINTS: annotation}
    return TrainJob.from_object(obj | ({"status": status} if status else {}))


def blueprint(
    *jobs: Object, policy: Object | None = None, annotations: dict[str, str] | None = None
) -> ClusterTrainingRuntime:
    obj = runtime_object(*(jobs or [replicated_job("node", {"name": "trainer", "image": "i"})]), policy=policy)
    obj["spec"]["template"]["metadata"] = {"annotations": annotations or {}}
    return ClusterTrainingRuntime.from_object(obj)


def built(info: RuntimeInfo, job: TrainJob, *objects: Object) -> dict[str, Object]:
    """The pod specs by replicated Job."""
    apply_trainer_env(info, job)
    Checkpoints(StaticReader(*objects)).identify_pod_network(info, job)
    jobs = build_jobset(info, job)["spec"]["replicatedJobs"]
    return {each["name"]: each["template"]["spec"]["template"]["spec"] for each in jobs}


def findings(job: TrainJob, runtime: ClusterTrainingRuntime, old: TrainJob | None = None) -> list[str]:
    return [str(each) for each in Checkpoints(StaticReader()).validate(extract(job, runtime), old, job)]


@pytest.mark.parametrize(
    ("annotation", "path"),
    [pytest.param("data", "", id="claim"), pytest.param("data/team-a/runs", "team-a/runs/", id="path")],
)
def test_what_the_pod_gets(annotation: str, path: str) -> None:
    """The container that trains has a directory of the claim, by name and uid of the TrainJob, and its path."""
    job = train_job(annotation)
    spec = built(extract(job, blueprint()), job)["node"]
    (main,) = spec["containers"]
    assert spec["volumes"] == [VOLUME]
    mount = {"name": "trainer-checkpoints", "mountPath": "/checkpoints", "subPath": f"{path}demo-{UID}"}
    assert main["volumeMounts"] == [mount]
    assert env_of(main) == DIRECTORY


@pytest.mark.parametrize(
    ("of_job", "of_jobset", "of_runtime", "claim"),
    [
        pytest.param("data", "other", "third", "data", id="trainjob"),
        pytest.param(None, "data", "third", "data", id="jobset"),
        pytest.param(None, None, "data", "data", id="runtime"),
        pytest.param("", None, "data", None, id="trainjob-wants-none"),
        pytest.param(None, None, None, None, id="nobody"),
    ],
)
def test_whose_claim(of_job: str | None, of_jobset: str | None, of_runtime: str | None, claim: str | None) -> None:
    """The TrainJob decides, else its runtime; an empty annotation asks for none."""
    job = train_job(of_job, **({"annotations": {CHECKPOINTS: of_jobset}} if of_jobset else {}))
    info = extract(job, blueprint(annotations={CHECKPOINTS: of_runtime} if of_runtime else None))
    volumes = built(info, job)["node"].get("volumes") or []
    assert [each["persistentVolumeClaim"]["claimName"] for each in volumes] == ([claim] if claim else [])


def _job(name: str, **changes: Any) -> Object:
    return replicated_job(name, {"name": "trainer", "image": "i", **changes})


@pytest.mark.parametrize(
    ("jobs", "policy"),
    [
        pytest.param(["launcher", "node"], {"mpi": {"numProcPerNode": 1}}, id="mpi"),
        pytest.param(["node", "chief", "ps", "evaluator"], {"tensorflow": {}}, id="tensorflow"),
        pytest.param(["node"], {"torch": {}}, id="torch"),
    ],
)
def test_all_that_train(jobs: list[str], policy: Object) -> None:
    """Nodes, their peers and a launcher share the directory; other Jobs do not have it."""
    job = train_job()
    other = replicated_job("metrics", {"name": "metrics", "image": "i"})
    specs = built(extract(job, blueprint(*map(_job, jobs), other, policy=policy)), job)
    assert [name for name, spec in specs.items() if spec.get("volumes") == [VOLUME]] == jobs
    assert [name for name, spec in specs.items() if "env" in spec["containers"][0]] == jobs


def test_v1alpha1() -> None:
    """With v1alpha1 every Job with the label of a trainer and the container `node` has the directory."""
    job = train_job()
    jobs = [replicated_job(name, {"name": "node", "image": "i"}) for name in ("workers", "servers")]
    for each in jobs:
        each["template"]["metadata"] = TRAINS
    specs = built(extract(job, blueprint(*jobs), profile=V1ALPHA1_PROFILE), job)
    assert [spec["volumes"] for spec in specs.values()] == [[VOLUME], [VOLUME]]


@pytest.mark.parametrize(
    ("runtime", "spec"),
    [
        pytest.param(blueprint(_job("node", env=OWN)), {}, id="runtime"),
        pytest.param(blueprint(), {"trainer": {"env": OWN}}, id="trainjob"),
    ],
)
def test_own_directory(runtime: ClusterTrainingRuntime, spec: Object) -> None:
    """A training with the variable of its own is left alone, and who asks for the claim all the same is warned."""
    job = train_job(**spec)
    pod = built(extract(job, runtime), job)["node"]
    assert "volumes" not in pod
    assert env_of(pod["containers"][0]) == {"TRAINER_CHECKPOINT_DIR": "/mine"}
    assert findings(job, runtime) == [f"{FIELD}: has no effect: TRAINER_CHECKPOINT_DIR is set already"]


MOUNTS = [{"name": "models", "mountPath": "/checkpoints"}]
OVERRIDE: Object = {
    "targetJobs": [{"name": "node"}],
    "containers": [{"name": "trainer", "volumeMounts": MOUNTS}],
    "volumes": [{"name": "models", "emptyDir": {}}],
}


@pytest.mark.parametrize("of_runtime", [pytest.param(True, id="runtime"), pytest.param(False, id="trainjob")])
def test_own_mount(of_runtime: bool) -> None:
    """What a TrainJob mounts takes the place of the claim of its runtime, but not of the one that it asks for."""
    job = train_job(None if of_runtime else "data", podSpecOverrides=[OVERRIDE])
    runtime = blueprint(annotations={CHECKPOINTS: "data"} if of_runtime else None)
    found = findings(job, runtime)
    if of_runtime:
        assert found == []
        assert "env" not in built(extract(job, runtime), job)["node"]["containers"][0]
    else:
        assert ["mount models elsewhere" in each for each in found] == [True]


MOUNTED = _job("node", volumeMounts=[{"name": "models", "mountPath": "/checkpoints/"}])
MODELS: Object = {"name": "models", "emptyDir": {}}
NAMED = {"name": "trainer-checkpoints", "emptyDir": {}}


def _with_volumes(job: Object, *volumes: Object) -> Object:
    job["template"]["spec"]["template"]["spec"]["volumes"] = [*volumes]
    return job


@pytest.mark.parametrize(
    ("runtime", "field", "remedy"),
    [
        pytest.param(
            blueprint(_with_volumes(MOUNTED, MODELS)),
            "containers[trainer].volumeMounts",
            "mount models elsewhere, or set TRAINER_CHECKPOINT_DIR if the checkpoints belong in it",
            id="mount",
        ),
        pytest.param(blueprint(_with_volumes(_job("node"), NAMED)), "volumes", "give it another name", id="volume"),
        pytest.param(
            blueprint(annotations={CHECKPOINTS: "data/.."}),
            f"spec.template.metadata.annotations[{CHECKPOINTS}]",
            "without empty parts, . and ..",
            id="annotation",
        ),
    ],
)
def test_refused(runtime: ClusterTrainingRuntime, field: str, remedy: str) -> None:
    """A runtime that leaves no place for the directory is refused with field and remedy, at admission and later."""
    job = train_job(None if "annotations" in field else "data")
    (found,) = findings(job, runtime)
    assert field in found
    assert remedy in found
    with pytest.raises(BuildError, match=r"Invalid value"):
        Checkpoints(StaticReader()).identify_pod_network(extract(job, runtime), job)


SINCE = "2026-01-01T00:00:00Z"
CONDITION = {"type": "Created", "status": "True", "reason": "a", "message": "b", "lastTransitionTime": SINCE}
CREATED: Object = {"conditions": [CONDITION]}
RULE = f"{FIELD}: Forbidden: cannot be changed once the Jobs exist; submit the TrainJob again"


@pytest.mark.parametrize(
    ("old", "new", "found"),
    [
        pytest.param(train_job("a", status=CREATED), train_job("b"), [RULE], id="another"),
        pytest.param(train_job("a", status=CREATED, suspend=True), train_job(None, suspend=True), [RULE], id="none"),
        pytest.param(train_job("a", status=CREATED), train_job("a", suspend=True), [], id="the-same"),
        pytest.param(train_job("a"), train_job("b"), [], id="not-yet-created"),
    ],
)
def test_changes(old: TrainJob, new: TrainJob, found: list[str]) -> None:
    """The claim cannot change once the Jobs exist."""
    assert findings(new, blueprint(), old) == found


@pytest.mark.parametrize(
    ("owner", "has_one", "claim"),
    [
        pytest.param(UID, True, "former", id="kept"),
        pytest.param(UID, False, None, id="none-kept"),
        pytest.param("predecessor", True, "data", id="of-a-predecessor"),
    ],
)
def test_existing_jobset(owner: str, has_one: bool, claim: str | None) -> None:
    """A JobSet keeps its directory whatever the annotation says by now, also when it is made again."""
    mount = {"name": "trainer-checkpoints", "mountPath": "/checkpoints", "subPath": f"demo-{UID}"}
    volume = {"name": "trainer-checkpoints", "persistentVolumeClaim": {"claimName": "former"}}
    mounts, volumes = ([mount], [volume]) if has_one else ([], [])
    node = replicated_job("node", {"name": "trainer", "volumeMounts": mounts}, pod={"volumes": volumes})
    reference = {"apiVersion": "a/v1", "kind": "TrainJob", "name": "demo", "uid": owner, "controller": True}
    jobset: Object = {
        "apiVersion": JOBSETS.api_version,
        "kind": JOBSETS.kind,
        "metadata": {"name": "demo", "namespace": "default", "ownerReferences": [reference]},
        "spec": {"replicatedJobs": [node]},
    }
    job = train_job("data")
    found = built(extract(job, blueprint()), job, jobset)["node"].get("volumes") or []
    assert [each["persistentVolumeClaim"]["claimName"] for each in found] == ([claim] if claim else [])


@pytest.mark.parametrize(
    ("env", "mounts", "has_it"),
    [
        pytest.param({"TRANSFER_PATH": "/checkpoints"}, [], True, id="exports-the-checkpoint"),
        pytest.param({"TRANSFER_PATH": "/workspace/model"}, [], False, id="exports-something-else"),
        pytest.param({"TRANSFER_PATH": "/checkpoints"}, ["/checkpoints"], False, id="has-a-volume-there"),
        pytest.param(
            {"TRANSFER_PATH": "/checkpoints", "TRAINER_CHECKPOINT_DIR": "/checkpoints"}, [], False, id="has-its-own"
        ),
    ],
)
def test_exporter(env: dict[str, str], mounts: list[str], has_it: bool) -> None:
    """An exporter of the path of the checkpoints has them, and cannot change them."""
    exporter = {
        "name": "model-exporter",
        "image": "i",
        "env": [{"name": name, "value": value} for name, value in env.items()],
        "volumeMounts": [{"name": "own", "mountPath": path} for path in mounts],
    }
    jobs = (replicated_job("node", {"name": "trainer", "image": "i"}), replicated_job("exporter", exporter))
    job = train_job()
    (container,) = built(extract(job, blueprint(*jobs)), job)["exporter"]["containers"]
    path = {"name": "trainer-checkpoints", "mountPath": "/checkpoints", "subPath": f"team-a/demo-{UID}"}
    assert (path | {"readOnly": True} in container.get("volumeMounts", [])) == has_it
    assert env_of(container) == (env | DIRECTORY if has_it else env)
