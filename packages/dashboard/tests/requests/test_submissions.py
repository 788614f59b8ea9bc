"""TrainJobs that are made on the page."""

from __future__ import annotations

from typing import Any

import pytest

from packages.dashboard.tests.conftest import UserClient, train_job, visiting
from trainer.api.trainjob import TRAIN_JOBS
from trainer.kube.errors import ForbiddenError, InternalError, InvalidError, UnauthorizedError
from trainer.v1alpha1.client import SERVED
from trainer.v1alpha1.discovery import Served
from trainer_dashboard.requests.submissions import LONGEST_YAML

GOOD = """
apiVersion: trainer.kubeflow.org/v2alpha1
kind: TrainJob
metadata: {name: demo-2, namespace: default}
spec: {runtimeRef: {name: plain}}
"""

NO_TRAINER = {"details": {"causes": [{"reason": "FieldValueForbidden", "message": "no", "field": "spec.trainer"}]}}


async def test_story(client: UserClient) -> None:
    """A copy is tried without being stored, and then created."""
    client.add(train_job())
    async with visiting(client) as visitor:
        _, content = await visitor.json("/api/trainjobs/default/demo/copy")
        tried = await visitor.json("/api/trials", "POST", json=content)
        assert tried == (200, {"namespace": "default", "name": "demo-2"})
        assert client.find(TRAIN_JOBS, "demo-2", "default") is None
        created = await visitor.json("/api/trainjobs", "POST", json=content)
        assert created == (201, {"namespace": "default", "name": "demo-2"})
        assert (client.find(TRAIN_JOBS, "demo-2", "default") or {})["spec"] == {"runtimeRef": {"name": "plain"}}
        status, refused = await visitor.json("/api/trials", "POST", json=content)
        assert (status, "already exists" in refused["problem"]) == (200, True)
        assert (await visitor.json("/api/trainjobs", "POST", json=content))[0] == 409


@pytest.mark.parametrize(
    ("text", "message"),
    [
        pytest.param("a: [", "not valid YAML", id="no-yaml"),
        pytest.param("a: &x [1]\nb: [*x, *x]", "an alias is not allowed here", id="alias"),
        pytest.param("", "must be one TrainJob, found 0 documents", id="nothing"),
        pytest.param(f"{GOOD}---\n{GOOD}", "must be one TrainJob, found 2 documents", id="two"),
        pytest.param("[]", "must be one TrainJob", id="a-list"),
        pytest.param(GOOD.replace("TrainJob", "Secret"), "kind: must be TrainJob", id="another-kind"),
        pytest.param(GOOD.replace("v2alpha1", "v1alpha1"), "as this cluster serves TrainJobs", id="another-version"),
        pytest.param(GOOD.replace("demo-2", ""), "metadata.name: Required value", id="no-name"),
        pytest.param(GOOD.replace(", namespace: default", ""), "metadata.namespace: Required value", id="no-namespace"),
        pytest.param(GOOD.replace("default", "../../x"), "metadata.namespace", id="path-as-namespace"),
        pytest.param(GOOD.replace("runtimeRef", "runtimeReff"), "spec.runtimeReff", id="typing-error"),
        pytest.param(GOOD.replace("plain", '"\\ud800"'), "found invalid Unicode", id="half-a-character"),
        pytest.param(GOOD + " " * LONGEST_YAML, "must have at most", id="too-long"),
    ],
)
@pytest.mark.parametrize(
    ("path", "expected", "field"), [("/api/trials", 200, "problem"), ("/api/trainjobs", 422, "error")]
)
async def test_wrong_texts(client: UserClient, path: str, expected: int, field: str, text: str, message: str) -> None:
    """What is no TrainJob is refused with the field before the cluster is asked."""
    async with visiting(client) as visitor:
        status, content = await visitor.json(path, "POST", json={"yaml": text})
        assert status == expected
        assert message in content[field]
        assert field == "error" or message in "; ".join(
            f"{each['field']}: {each['message']}" for each in content["errors"]
        )
        assert not [request for request in client.requests_of("create") if request.resource == TRAIN_JOBS]


@pytest.mark.parametrize(
    ("body", "message"),
    [
        pytest.param(b"", "JSON with yaml", id="nothing"),
        pytest.param(b"[]", "JSON with yaml", id="a-list"),
        pytest.param(b'{"yaml": 1}', "JSON with yaml", id="a-number"),
        pytest.param(b'{"yaml": "' + b"x" * 7 * LONGEST_YAML + b'"}', "must have at most", id="too-long"),
    ],
)
async def test_wrong_bodies(client: UserClient, body: bytes, message: str) -> None:
    """A request that the page does not send is refused, however long it is."""
    async with visiting(client) as visitor:
        status, content = await visitor.json("/api/trials", "POST", data=body)
        assert (status, message in content["error"]) == (400, True)


@pytest.mark.parametrize(
    ("error", "status"),
    [
        pytest.param(ForbiddenError(403, "you may not create trainjobs"), 403, id="no-right"),
        pytest.param(InvalidError(422, "spec.trainer: no", status=NO_TRAINER), 422, id="refused-by-admission"),
    ],
)
async def test_refusals(client: UserClient, error: Any, status: int) -> None:
    """What the API server refuses is answered with its status and words."""
    client.faults.fail(error, verb="create", resource=TRAIN_JOBS, times=2)
    async with visiting(client) as visitor:
        errors = [{"field": each["field"], "message": each["message"]} for each in error.causes]
        tried = await visitor.json("/api/trials", "POST", json={"yaml": GOOD})
        assert tried == (200, {"problem": str(error), "errors": errors})
        assert await visitor.json("/api/trainjobs", "POST", json={"yaml": GOOD}) == (status, {"error": str(error)})


async def test_v1alpha1() -> None:
    """A cluster with the released version gets its own kind of TrainJob."""
    client = UserClient(resources=(*SERVED.values(),))
    client.add(train_job() | {"apiVersion": "trainer.kubeflow.org/v1alpha1"})
    async with visiting(client, Served("v1alpha1")) as visitor:
        _, content = await visitor.json("/api/trainjobs/default/demo/copy")
        assert "apiVersion: trainer.kubeflow.org/v1alpha1\n" in content["yaml"]
        assert (await visitor.json("/api/trainjobs", "POST", json=content))[0] == 201
        assert client.find(SERVED[TRAIN_JOBS], "demo-2", "default") is not None
        status, content = await visitor.json("/api/trials", "POST", json={"yaml": GOOD})
        assert (status, "v1alpha1" in content["problem"]) == (200, True)


@pytest.mark.parametrize("error", [UnauthorizedError(401, "the token has expired"), InternalError(500, "etcd is away")])
async def test_trials_that_fail(client: UserClient, error: Any) -> None:
    """Where the API server does not judge a text, nothing is wrong with it."""
    client.faults.fail(error, verb="create", resource=TRAIN_JOBS)
    async with visiting(client) as visitor:
        answer = await visitor.json("/api/trials", "POST", json={"yaml": GOOD})
        assert (answer[0], answer[1]["error"]) == (error.code, str(error))
