"""Fields behind feature gates that are off."""

from __future__ import annotations

import pytest

from trainer.kube.client import ObjectRequest, Verb
from trainer.kube.errors import InvalidError
from trainer.kube.objects import Object
from trainer.kube.resource import JOBS
from trainer_kube_testing import FakeClient


def job(**spec: object) -> Object:
    metadata = {"name": "a", "namespace": "ns"}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": spec}


async def send(client: FakeClient, verb: Verb, obj: Object, *, dry_run: bool = False) -> Object:
    request = ObjectRequest(verb, JOBS, "a", "ns", obj, field_manager="test", dry_run=dry_run)
    answer = await client.send(request)
    assert answer is not None
    return answer


@pytest.mark.parametrize(
    ("verb", "dry_run", "exists"),
    [
        pytest.param(Verb.CREATE, False, False, id="create"),
        pytest.param(Verb.CREATE, True, False, id="dry run"),
        pytest.param(Verb.APPLY, False, False, id="apply of something new"),
        pytest.param(Verb.APPLY, False, True, id="apply"),
        pytest.param(Verb.PATCH, False, True, id="patch"),
    ],
)
async def test_fields_are_refused_or_dropped(verb: Verb, dry_run: bool, exists: bool) -> None:
    """A request that brings the field is invalid, or does without it; once the gate is on, it passes."""
    client = FakeClient(*([job()] if exists else []))
    gated = job(suspend=True, volumes=[{"name": "v", "secret": "s"}])
    client.close_gate(JOBS, "spec.suspend")
    with pytest.raises(InvalidError, match=r"spec\.suspend: Forbidden: field is disabled by its feature gate"):
        await send(client, verb, gated, dry_run=dry_run)
    client.close_gate(JOBS, "spec.suspend", drops=True)
    client.close_gate(JOBS, "spec.volumes.secret", drops=True)
    assert (await send(client, verb, gated, dry_run=dry_run))["spec"] == {"volumes": [{"name": "v"}]}
    if (stored := client.find(JOBS, "a", "ns")) is not None:
        client.remove(JOBS, "a", "ns")
        assert stored["spec"] == {"volumes": [{"name": "v"}]}
        if exists:
            client.add(job())
    client.open_gate(JOBS, "spec.suspend")
    client.open_gate(JOBS, "spec.volumes.secret")
    assert (await send(client, verb, gated, dry_run=dry_run))["spec"] == gated["spec"]


async def test_fields_that_an_object_has_stay() -> None:
    """As when a gate is switched off again."""
    client = FakeClient(job(suspend=True))
    client.close_gate(JOBS, "spec.suspend")
    changed = await client.patch(JOBS, "a", {"spec": {"suspend": False}}, "ns")
    assert changed["spec"] == {"suspend": False}


async def test_dry_runs_are_recorded_as_such() -> None:
    """So that tests of writes can leave them out."""
    client = FakeClient()
    await send(client, Verb.CREATE, job(), dry_run=True)
    await send(client, Verb.CREATE, job())
    assert [request.dry_run for request in client.requests] == [True, False]
