"""The tables of bad inputs: each is refused at admission, and without webhooks by something else."""

from __future__ import annotations

import pytest

from tests.webhooks import bad_inputs, bad_runtimes
from tests.webhooks.bad_inputs import BadInput
from tests.webhooks.nets import caught
from tests.webhooks.requests import admit

TABLES = {
    "train-job": bad_inputs.TRAIN_JOBS,
    "train-job-change": bad_inputs.TRAIN_JOB_CHANGES,
    "runtime": bad_runtimes.RUNTIMES,
    "runtime-change": bad_runtimes.RUNTIME_CHANGES,
}
ROWS = [pytest.param(row, id=f"{table}-{row.name}") for table, rows in TABLES.items() for row in rows]
AS_KUBERNETES = (
    "Invalid value: ",
    "Required value",
    "Unsupported value: ",
    "Duplicate value: ",
    "Not found: ",
    "Forbidden: ",
    "Too long: ",
    "Too many: ",
    "Unknown field: ",
)

for_every_row = pytest.mark.parametrize("row", ROWS)


@for_every_row
async def test_refused_at_admission(row: BadInput) -> None:
    """The answer names the field, the value and the rule, and nothing else."""
    response = await admit(row.object, row.old)

    assert not response.allowed
    assert (response.status_code, response.reason) == (422, "Invalid")
    assert [(cause.field, cause.message) for cause in response.causes] == [(row.field, row.rule)]
    assert response.message == f"{row.field}: {row.rule}"
    assert row.rule.startswith(AS_KUBERNETES)


@for_every_row
def test_caught_without_webhooks(row: BadInput) -> None:
    """With the webhooks switched off the CRD refuses it, or its build: nothing bad reaches a JobSet."""
    net, words = caught(row)

    assert net is row.net, words
