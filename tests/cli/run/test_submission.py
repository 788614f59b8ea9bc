"""Sending a user's documents to a cluster."""

from __future__ import annotations

import pytest

from tests.cli.conftest import train_job
from trainer.api.trainjob import TRAIN_JOBS
from trainer.cli.documents import Document
from trainer.cli.errors import BadInputError, CommandError, ExitCode
from trainer.cli.run.submission import submit
from trainer.kube.errors import ConflictError, ForbiddenError, InvalidError, NotFoundError
from trainer.kube.objects import Object
from trainer.kube.resource import CONFIG_MAPS
from trainer_kube_testing import FakeClient

SCRIPT = Document(
    CONFIG_MAPS, {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "script"}, "data": {"train.py": "1"}}
)


def job(name: str = "demo") -> Document:
    return Document(TRAIN_JOBS, {**train_job(), "metadata": {"name": name}})


async def send(client: FakeClient, *documents: Document) -> list[Object]:
    return await submit(client, list(documents), namespace=None, default_namespace="team")


async def test_needs_come_first(client: FakeClient, capsys: pytest.CaptureFixture[str]) -> None:
    """A ConfigMap that stands after the TrainJob is there before it; each object is reported."""
    (created,) = await send(client, job(), SCRIPT)

    assert [request.resource for request in client.requests_of("apply", "create")] == [CONFIG_MAPS, TRAIN_JOBS]
    assert (created["metadata"]["namespace"], created["metadata"]["name"]) == ("team", "demo")
    assert capsys.readouterr().out.splitlines() == [
        "configmap/script applied",
        "trainjob.trainer.kubeflow.org/demo created",
    ]


async def test_generated_name(client: FakeClient) -> None:
    """A TrainJob may leave its name to the server."""
    document = Document(TRAIN_JOBS, {**train_job(), "metadata": {"generateName": "demo-"}})

    (created,) = await send(client, document)

    assert created["metadata"]["name"].startswith("demo-")


async def test_existing_job_changes_nothing(client: FakeClient) -> None:
    """If one of the jobs exists, nothing is changed, not even the script that the existing one may be running."""
    client.add({**train_job("second"), "metadata": {"name": "second", "namespace": "team"}})

    with pytest.raises(BadInputError) as caught:
        await send(client, SCRIPT, job("first"), job("second"))

    assert "TrainJob second exists already in namespace team: delete it (trainer delete second -n team)" in str(
        caught.value
    )
    assert not client.requests_of("apply", "create")


@pytest.mark.parametrize(
    ("verb", "error", "exit_code", "message"),
    [
        pytest.param(
            "create",
            InvalidError(422, 'TrainJob "demo" is invalid: spec.x: no'),
            ExitCode.BAD_INPUT,
            'TrainJob demo: TrainJob "demo" is invalid: spec.x: no',
            id="refused by the server",
        ),
        pytest.param(
            "create", ForbiddenError(403, "you may not"), ExitCode.FAILED, "TrainJob demo: you may not", id="forbidden"
        ),
        pytest.param(
            "create",
            NotFoundError(404, 'namespaces "team" not found'),
            ExitCode.FAILED,
            'namespaces "team" not found',
            id="no such namespace",
        ),
        pytest.param(
            "apply",
            ConflictError(409, "conflict with kubectl: .data"),
            ExitCode.FAILED,
            "ConfigMap script has fields of another field manager",
            id="fields of others",
        ),
    ],
)
async def test_refusals(client: FakeClient, verb: str, error: Exception, exit_code: ExitCode, message: str) -> None:
    """What the server refuses is reported with the object; wrong input has an exit code of its own."""
    client.faults.fail(error, verb=verb)

    with pytest.raises(CommandError) as caught:
        await send(client, SCRIPT, job())

    assert message in str(caught.value)
    assert caught.value.exit_code == exit_code


async def test_cluster_without_train_jobs() -> None:
    """On a cluster without our CRDs the user learns how to install them."""
    with pytest.raises(CommandError, match=r"has no CRD for TrainJobs: install it .*, or go on with trainer up"):
        await send(FakeClient(), SCRIPT, job())
