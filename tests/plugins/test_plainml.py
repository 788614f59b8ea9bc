"""PlainML: training without a framework."""

from __future__ import annotations

from tests.framework.samples import runtime, train_job
from trainer.framework.extraction import extract
from trainer.plugins.plainml import PlainML


def test_one_process_per_node() -> None:
    """Without a framework there is nobody to start several processes."""
    job = train_job(trainer={"numProcPerNode": 2})
    errors = list(PlainML().validate(extract(job, runtime()), None, job))
    assert [error.field for error in errors] == ["spec.trainer.numProcPerNode"]
