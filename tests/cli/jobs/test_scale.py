"""`trainer scale`."""

from __future__ import annotations

from typing import Any

import pytest
from typer.testing import CliRunner

from tests.cli.conftest import finished, train_job
from trainer.api.rules import TRAINER_IMMUTABLE
from trainer.api.trainjob import TRAIN_JOBS
from trainer.cli.app import app
from trainer.kube.errors import ForbiddenError, InvalidError
from trainer.kube.objects import Object
from trainer.plugins.jobset.revision import ELASTIC_JOBSETS
from trainer_kube_testing import FakeClient

ELASTIC = {"state": "Running", "startTime": "2026-01-01T00:00:00Z", "scale": {"minNodes": 1, "maxNodes": 4, "nodes": 4}}
IMMUTABLE = InvalidError(422, f"spec.trainer.numNodes: Forbidden: {TRAINER_IMMUTABLE}")
REFUSED = {"type": "Created", "status": "True", "message": f"the cluster has rejected a change ({ELASTIC_JOBSETS})"}


def job(status: dict[str, Any], *, suspend: bool = False) -> Object:
    found = train_job("a", **status)
    return found | {"spec": found["spec"] | {"suspend": suspend, "trainer": {"numNodes": 2}}}


def nodes(served: FakeClient) -> int:
    (found,) = served.objects(TRAIN_JOBS)
    return int(found["spec"]["trainer"]["numNodes"])


@pytest.mark.usefixtures("cluster")
@pytest.mark.parametrize(
    ("given", "said"),
    [
        pytest.param(
            job({"state": "Suspended"}, suspend=True), "scaled to 4 nodes: trainer resume a starts it", id="suspended"
        ),
        pytest.param(job(ELASTIC), "scaled to 4 nodes", id="elastic"),
        pytest.param(job({}), "scaled to 4 nodes", id="without Jobs"),
    ],
)
def test_scaled(served: FakeClient, given: Object, said: str) -> None:
    """The TrainJob asks for that number, and what starts it is said."""
    served.add(given)

    result = CliRunner().invoke(app, "scale a 4")

    assert (result.exit_code, result.stderr) == (0, "")
    assert result.stdout == f"trainjob.trainer.kubeflow.org/a {said}\n"
    assert nodes(served) == 4


@pytest.mark.usefixtures("cluster")
@pytest.mark.parametrize(
    ("given", "wanted", "refusal", "complaint"),
    [
        pytest.param(
            job(finished("Complete", "Done", "")),
            3,
            None,
            "TrainJob a cannot be scaled: it has ended, and is Complete; submit it again with 3 nodes "
            "(trainer run SCRIPT --nodes 3, ",
            id="has ended",
        ),
        pytest.param(
            job(ELASTIC),
            5,
            None,
            "TrainJob a cannot have 5 nodes: its runtime allows 1 to 4 (elasticPolicy)",
            id="out of bounds",
        ),
        pytest.param(
            job({"state": "Running", "startTime": "2026-01-01T00:00:00Z"}),
            3,
            IMMUTABLE,
            "TrainJob a cannot be scaled while it is not suspended, because runtime plain has no elasticPolicy: "
            "trainer suspend a -n default, trainer scale a 3 -n default, trainer resume a -n default\n",
            id="is not suspended",
        ),
        pytest.param(job({"state": "Suspended"}, suspend=True), 3, IMMUTABLE, str(IMMUTABLE), id="suspended"),
        pytest.param(
            job({"state": "Suspended"}, suspend=True),
            3,
            ForbiddenError(403, "you may not patch trainjobs"),
            "you may not patch trainjobs",
            id="another refusal",
        ),
    ],
)
def test_refused(served: FakeClient, given: Object, wanted: int, refusal: Exception | None, complaint: str) -> None:
    """One line says why the number stays, and what to do instead."""
    served.add(given)
    if refusal is not None:
        served.faults.fail(refusal, verb="patch")

    result = CliRunner().invoke(app, f"scale a {wanted}")

    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr.startswith(f"error: {complaint}")
    assert nodes(served) == 2


@pytest.mark.usefixtures("cluster")
def test_the_same_number(served: FakeClient) -> None:
    """Nothing is changed, and the command says so."""
    served.add(job({}))

    result = CliRunner().invoke(app, "scale a 2")

    assert (result.exit_code, result.stderr) == (0, "note: TrainJob a has 2 nodes already\n")


@pytest.mark.usefixtures("cluster")
def test_jobset_does_not_let_nodes_come_and_go(served: FakeClient) -> None:
    """The feature gate that a cluster needs is named, each time."""
    served.add(job(ELASTIC | {"conditions": [REFUSED]}))

    for _ in range(2):
        result = CliRunner().invoke(app, "scale a 3")

        assert result.exit_code == 1
        assert result.stderr.strip().endswith(f"goes on with those that it has: {ELASTIC_JOBSETS}")
