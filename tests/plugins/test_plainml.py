"""PlainML: training without a framework."""

from __future__ import annotations

import pytest

from tests.framework.samples import runtime, train_job
from trainer.framework.building.extraction import extract
from trainer.kube.objects import Object
from trainer.plugins.plainml import PlainML

PROCESSES = "spec.trainer.numProcPerNode"


@pytest.mark.parametrize(
    ("policy", "fields"),
    [
        pytest.param(None, [PROCESSES], id="no-policy"),
        pytest.param({"numNodes": 2}, [PROCESSES], id="no-source"),
        *(
            pytest.param({source: {}}, [], id=source)
            for source in ("torch", "mpi", "jax", "xgboost", "tensorflow", "paddle")
        ),
    ],
)
def test_one_process_per_node(policy: Object | None, fields: list[str]) -> None:
    """Without a framework nobody starts several processes; runtimes of a framework are left to its plugin."""
    job = train_job(trainer={"numProcPerNode": 2})
    errors = list(PlainML().validate(extract(job, runtime(policy=policy)), None, job))
    assert [error.field for error in errors] == fields
