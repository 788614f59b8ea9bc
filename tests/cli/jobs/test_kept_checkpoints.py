"""Checkpoints of TrainJobs that are deleted."""

from __future__ import annotations

from typing import Any

import anyio
import pytest
from typer.testing import CliRunner

from tests.cli.conftest import ConnectedClient, finished, train_job
from trainer.api.trainjob import TRAIN_JOBS
from trainer.cli.app import app
from trainer.explain.suspension import WORKLOADS
from trainer.kube.errors import ForbiddenError
from trainer.kube.objects import Object, controller_reference, name_of
from trainer.kube.resource import JOBS, PERSISTENT_VOLUME_CLAIMS, PODS, Resource
from trainer.workloads import JOBSETS
from trainer_kube_testing import FakeClient

NAMED = "trainjob.trainer.kubeflow.org/demo"
DIRECTORY = "demo-uid-of-demo"
PLACE = f"directory team-a/{DIRECTORY} of claim data"
ENDED = finished("Complete", "Done", "")
POD = {
    "securityContext": {"fsGroup": 100},
    "tolerations": [{"operator": "Exists"}],
    "nodeSelector": {"a": "b"},
    "hostNetwork": True,
}
CONTAINER = {"name": "node", "image": "torch:2", "command": ["torchrun"], "securityContext": {"runAsUser": 1000}}


class JobRunner(ConnectedClient):
    """A cluster on which Jobs end at once."""

    end = "Complete"

    async def create(self, resource: Resource, obj: Object, **options: Any) -> Object:
        """See `Client.create`."""
        created = await super().create(resource, obj, **options)
        if resource == JOBS:
            condition = {"type": self.end, "status": "True", "reason": "a", "message": "it has reached its limit"}
            status = {"status": {"conditions": [condition]}}
            await self.patch(JOBS, name_of(created), status, "default", subresource="status")
        return created


@pytest.fixture
def served() -> JobRunner:
    """A cluster with a claim."""
    client = JobRunner(resources=[TRAIN_JOBS, JOBSETS, JOBS, PODS, PERSISTENT_VOLUME_CLAIMS, WORKLOADS[0]])
    claim = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "data", "namespace": "default"}}
    client.add(claim)
    return client


def with_checkpoints(client: FakeClient, directory: str = f"team-a/{DIRECTORY}", **status: Any) -> None:
    """A TrainJob with its JobSet."""
    job = train_job("demo", **(status or ENDED))
    mount = {"name": "trainer-checkpoints", "mountPath": "/checkpoints", "subPath": directory}
    volume = {"name": "trainer-checkpoints", "persistentVolumeClaim": {"claimName": "data"}}
    pod = POD | {"containers": [CONTAINER | {"volumeMounts": [mount]}], "volumes": [volume]}
    metadata = {"name": "demo", "namespace": "default", "ownerReferences": [controller_reference(job)]}
    spec = {"replicatedJobs": [{"name": "node", "template": {"spec": {"template": {"spec": pod}}}}]}
    client.add(job)
    client.add({"apiVersion": JOBSETS.api_version, "kind": "JobSet", "metadata": metadata, "spec": spec})


def pod(phase: str) -> Object:
    metadata = {"name": "demo-node-0", "namespace": "default", "labels": {"jobset.sigs.k8s.io/jobset-name": "demo"}}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {}, "status": {"phase": phase}}


def run(arguments: str) -> tuple[int, str, str]:
    result = CliRunner().invoke(app, arguments)
    return result.exit_code, result.stdout, result.stderr


pytestmark = pytest.mark.usefixtures("cluster")


def test_kept(served: JobRunner) -> None:
    """Checkpoints outlive their TrainJob, and the command says where they are."""
    with_checkpoints(served)
    assert run("delete demo") == (0, f"{NAMED} deleted\n", f"note: its checkpoints are kept in {PLACE}\n")
    assert served.objects(JOBS) == []


@pytest.mark.parametrize(
    ("directory", "mount"),
    [
        pytest.param(f"team-a/{DIRECTORY}", {"subPath": "team-a"}, id="path"),
        pytest.param(DIRECTORY, {}, id="root"),
    ],
)
def test_removed(served: JobRunner, monkeypatch: pytest.MonkeyPatch, directory: str, mount: Object) -> None:
    """A Job removes this directory and no other, with image, user and tolerations of the training; then it is gone."""
    made: list[Object] = []
    create = served.create

    async def record(resource: Resource, obj: Object, **options: Any) -> Object:
        made.append(obj)
        return await create(resource, obj, **options)

    monkeypatch.setattr(served, "create", record)
    served.add(pod("Succeeded"))
    with_checkpoints(served, directory)

    code, said, complaints = run("delete demo --checkpoints")

    place = f"directory {directory} of claim data"
    assert (code, complaints) == (0, "")
    assert said.splitlines()[0].endswith(f" created: removes {place}")
    assert said.splitlines()[1:] == [f"{NAMED} deleted"]
    assert (served.objects(TRAIN_JOBS), served.objects(JOBS)) == ([], [])
    (job,) = made
    spec = job["spec"]["template"]["spec"]
    (container,) = spec["containers"]
    assert container["command"] == ["rm", "-rf", "--", f"/checkpoints/{DIRECTORY}"]
    assert container["volumeMounts"] == [{"name": "trainer-checkpoints", "mountPath": "/checkpoints"} | mount]
    assert (container["image"], container["securityContext"]) == ("torch:2", {"runAsUser": 1000})
    assert spec | POD == spec | {"hostNetwork": True}
    assert "hostNetwork" not in spec


SUSPEND = "suspend it first (trainer suspend demo -n default)"


@pytest.mark.parametrize(
    ("objects", "status", "complaint"),
    [
        pytest.param(
            [pod("Running")], ENDED, f"pods may write there: demo-node-0; {SUSPEND}, and try again when they are gone",
            id="pods",
        ),
        pytest.param([], {"state": "Restarting"}, f"it goes on training; {SUSPEND}", id="between-two-attempts"),
    ],
)  # fmt: skip
def test_while_it_runs(served: JobRunner, objects: list[Object], status: Object, complaint: str) -> None:
    """Nothing is removed or deleted while pods write there, or will."""
    with_checkpoints(served, **status)
    for each in objects:
        served.add(each)
    error = f"error: {PLACE} is kept, and so is TrainJob demo: {complaint}\n"
    assert run("delete demo --checkpoints") == (1, "", error)
    assert (len(served.objects(TRAIN_JOBS)), served.objects(JOBS)) == (1, [])


def test_job_that_fails(served: JobRunner) -> None:
    """The TrainJob and the Job stay, so that it can be tried again and its log be read."""
    served.end = "Failed"
    with_checkpoints(served)
    code, _, complaint = run("delete demo --checkpoints")
    (job,) = served.objects(JOBS)
    assert code == 1
    assert complaint == (
        f"error: {PLACE} could not be removed by Job {name_of(job)}: it has reached its limit (kubectl logs "
        f"job/{name_of(job)} -n default may say why)\n"
    )
    assert len(served.objects(TRAIN_JOBS)) == 1


@pytest.mark.parametrize(
    ("directory", "claim", "reason"),
    [
        pytest.param("models/llama", True, "it has no directory in a claim", id="directory-of-others"),
        pytest.param(DIRECTORY, False, "claim data is gone", id="no-claim"),
    ],
)
def test_nothing_to_remove(served: JobRunner, directory: str, claim: bool, reason: str) -> None:
    """What is not there, or is not that of the TrainJob alone, is left, and the TrainJob is deleted."""
    with_checkpoints(served, directory)
    if not claim:
        anyio.run(served.delete, PERSISTENT_VOLUME_CLAIMS, "data", "default")
    note = f"note: no checkpoints of TrainJob demo were removed: {reason}\n"
    assert run("delete demo --checkpoints") == (0, f"{NAMED} deleted\n", note)
    assert served.objects(JOBS) == []


def test_without_jobset(served: JobRunner) -> None:
    """Without a JobSet nothing says which image could remove them."""
    job = train_job("demo", **ENDED)
    job["metadata"]["annotations"] = {"trainer.kubeflow.org/checkpoints": "data/team-a"}
    served.add(job)
    code, _, complaint = run("delete demo --checkpoints")
    assert (code, len(served.objects(TRAIN_JOBS))) == (1, 1)
    assert f"{PLACE} is kept, and so is TrainJob demo: it has no JobSet any more" in complaint


def test_without_rights(served: JobRunner) -> None:
    """Who may not read JobSets can delete TrainJobs, but not their checkpoints."""
    with_checkpoints(served)
    served.faults.fail(ForbiddenError(403, "jobsets is forbidden"), verb="get", resource=JOBSETS, times=2)
    assert run("delete demo --checkpoints") == (1, "", "error: jobsets is forbidden\n")
    assert run("delete demo") == (0, f"{NAMED} deleted\n", "")
