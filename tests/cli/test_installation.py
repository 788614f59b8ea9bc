"""Definitions and runtimes come to a cluster that may still be starting, and every other error is reported."""

from __future__ import annotations

import anyio
import pytest

from trainer.api.trainingruntime import CLUSTER_TRAINING_RUNTIMES
from trainer.cli.errors import CommandError, ExitCode
from trainer.cli.installation import Installation, Installed, install_definitions, install_runtimes
from trainer.cli.manifests import FIELD_MANAGER, runtimes
from trainer.kube.errors import (
    ConflictError,
    ForbiddenError,
    InternalError,
    InvalidError,
    KubeError,
    NotFoundError,
    TransportError,
    UntrustedServerError,
)
from trainer.kube.objects import labels_of, name_of, uid_of
from trainer.kube.resource import CUSTOM_RESOURCE_DEFINITIONS
from trainer_kube_testing import FakeClient, ManualClock

NOT_SERVED = NotFoundError(404, "the server could not find the requested resource")
IMMUTABLE = InvalidError(422, "spec: Invalid value: the spec of a runtime is immutable")
NO_WEBHOOK = InternalError(500, "failed calling webhook: no endpoints available for service trainer-webhook")


async def pass_time(clock: ManualClock, seconds: float) -> None:
    """Let somebody's pauses pass, one after the other."""
    for _ in range(int(seconds)):
        await clock.wait_for_sleepers()
        await clock.advance(1)


async def test_all_are_applied(client: FakeClient, clock: ManualClock) -> None:
    """A cluster that is ready has them all at once, and a second time changes nothing."""
    shipped = runtimes()

    outcomes = await Installation(client, clock).run(shipped, 60)
    before = client.objects(CLUSTER_TRAINING_RUNTIMES)
    await Installation(client, clock).run(shipped, 60)

    assert outcomes == {name_of(runtime): Installed.APPLIED for runtime in shipped}
    assert client.objects(CLUSTER_TRAINING_RUNTIMES) == before


@pytest.mark.parametrize(
    "errors",
    [
        pytest.param([NOT_SERVED, NOT_SERVED, NO_WEBHOOK], id="new-cluster"),
        pytest.param([TransportError("connection refused")], id="api-server-restarts"),
    ],
)
async def test_a_cluster_that_is_not_ready(
    client: FakeClient, clock: ManualClock, errors: list[Exception], capsys: pytest.CaptureFixture[str]
) -> None:
    """The request is repeated until it succeeds; each reason to wait is reported once."""
    for error in errors:
        client.faults.fail(error, verb="apply")
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(pass_time, clock, 30)
        outcomes = await Installation(client, clock).run(runtimes(), 600)
        tasks.cancel_scope.cancel()

    assert set(outcomes.values()) == {Installed.APPLIED}
    assert len(client.objects(CLUSTER_TRAINING_RUNTIMES)) == len(outcomes)
    reported = capsys.readouterr().err.splitlines()
    assert reported == [f"note: not ready yet: {reason}" for reason in dict.fromkeys(map(str, errors))]


async def test_a_cluster_that_is_never_ready(client: FakeClient, clock: ManualClock) -> None:
    """The timeout says how far it came, and the last reason."""
    client.faults.fail(NO_WEBHOOK, times=None, verb="apply")
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(pass_time, clock, 60)
        with pytest.raises(CommandError) as caught:
            await Installation(client, clock).run(runtimes(), 60)
        tasks.cancel_scope.cancel()

    assert str(caught.value) == (
        f"0 of {len(runtimes())} runtimes are applied, and the next one is not after 60 s: {NO_WEBHOOK}"
    )
    assert caught.value.exit_code is ExitCode.TIMEOUT


@pytest.mark.parametrize(
    "error",
    [
        pytest.param(ForbiddenError(403, "clustertrainingruntimes is forbidden"), id="forbidden"),
        pytest.param(UntrustedServerError("certificate verify failed"), id="untrusted"),
    ],
)
async def test_what_does_not_pass(client: FakeClient, clock: ManualClock, error: KubeError) -> None:
    """What waiting does not change ends the command at once."""
    client.faults.fail(error, verb="apply")

    with pytest.raises(type(error)):
        await Installation(client, clock).run(runtimes(), 600)


async def test_a_runtime_that_is_refused(
    client: FakeClient, clock: ManualClock, capsys: pytest.CaptureFixture[str]
) -> None:
    """One of somebody else whose spec would change is reported with what to do, and the others are applied."""
    shipped = runtimes()
    await client.apply(CLUSTER_TRAINING_RUNTIMES, shipped[0], field_manager="somebody")
    client.faults.fail(IMMUTABLE, verb="apply")

    outcomes = await Installation(client, clock).run(shipped, 60)

    first, *others = map(name_of, shipped)
    assert outcomes == {first: Installed.REFUSED, **dict.fromkeys(others, Installed.APPLIED)}
    assert {name_of(obj) for obj in client.objects(CLUSTER_TRAINING_RUNTIMES)} == {first, *others}
    note = capsys.readouterr().err
    assert note.startswith(f"note: {first} is refused: spec: Invalid value: the spec of a runtime is immutable; ")
    assert "delete it and try again" in note


async def test_an_outdated_runtime(client: FakeClient, clock: ManualClock) -> None:
    """The spec that an earlier version of this command has applied gives way, once the new one would be accepted."""
    shipped = runtimes()
    await Installation(client, clock).run(shipped, 60)
    before = {name_of(obj): uid_of(obj) for obj in client.objects(CLUSTER_TRAINING_RUNTIMES)}
    client.faults.fail(IMMUTABLE, verb="apply")

    outcomes = await Installation(client, clock).run(shipped, 60)

    first, *others = map(name_of, shipped)
    assert outcomes == {first: Installed.REPLACED, **dict.fromkeys(others, Installed.APPLIED)}
    after = {name_of(obj): uid_of(obj) for obj in client.objects(CLUSTER_TRAINING_RUNTIMES)}
    assert {name for name in before if after[name] != before[name]} == {first}


@pytest.mark.parametrize(
    ("verb", "error"),
    [
        pytest.param("create", InvalidError(422, "spec.mlPolicy: Invalid value"), id="new-one-is-refused"),
        pytest.param("get", ForbiddenError(403, "cannot get resource"), id="role-of-before"),
        pytest.param("delete", ConflictError(409, "the UID in the precondition differs"), id="somebody-was-faster"),
    ],
)
async def test_an_outdated_runtime_that_stays(
    client: FakeClient, clock: ManualClock, verb: str, error: KubeError, capsys: pytest.CaptureFixture[str]
) -> None:
    """Nothing is deleted where the new runtime would not take its place, and the reason is said."""
    shipped = runtimes()
    await Installation(client, clock).run(shipped, 60)
    before = client.objects(CLUSTER_TRAINING_RUNTIMES)
    client.faults.fail(IMMUTABLE, verb="apply")
    client.faults.fail(error, verb=verb)

    outcomes = await Installation(client, clock).run(shipped, 60)

    assert outcomes[name_of(shipped[0])] is Installed.REFUSED
    assert client.objects(CLUSTER_TRAINING_RUNTIMES) == before
    assert f"note: {name_of(shipped[0])} was not replaced: {error}" in capsys.readouterr().err


async def test_changes_of_others(client: FakeClient, clock: ManualClock, capsys: pytest.CaptureFixture[str]) -> None:
    """A runtime with a label that somebody has changed stays as it is, unless it is taken back."""
    shipped = runtimes()
    (label, value), *_ = labels_of(shipped[0]).items()
    edited = {**shipped[0], "metadata": {**shipped[0]["metadata"], "labels": {label: "ours"}}}
    await client.apply(CLUSTER_TRAINING_RUNTIMES, edited, field_manager="somebody")

    kept = await Installation(client, clock).run(shipped, 60)
    note = capsys.readouterr().err

    assert [name for name, outcome in kept.items() if outcome is Installed.KEPT] == [name_of(edited)]
    assert f"note: {name_of(edited)} was not changed: " in note
    assert "--force overwrites labels" in note
    assert labels_of(await client.get(CLUSTER_TRAINING_RUNTIMES, name_of(edited)))[label] == "ours"

    taken = await Installation(client, clock, force=True).run(shipped, 60)

    assert set(taken.values()) == {Installed.APPLIED}
    assert labels_of(await client.get(CLUSTER_TRAINING_RUNTIMES, name_of(edited)))[label] == value


async def establish(client: FakeClient, clock: ManualClock) -> None:
    """What an API server does with a CustomResourceDefinition."""
    await clock.wait_for_sleepers()
    for definition in client.objects(CUSTOM_RESOURCE_DEFINITIONS):
        client.add({**definition, "status": {"conditions": [{"type": "Established", "status": "True"}]}})
    await clock.advance(1)


async def test_definitions_and_runtimes(client: FakeClient, clock: ManualClock) -> None:
    """The runtimes are applied once the API server serves their kind; a second time changes nothing."""
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(establish, client, clock)
        await install_definitions(client, clock)
    await install_runtimes(client)
    before = client.objects(CLUSTER_TRAINING_RUNTIMES)
    await install_definitions(client, clock)
    await install_runtimes(client)

    assert {name_of(definition) for definition in client.objects(CUSTOM_RESOURCE_DEFINITIONS)} == {
        f"{plural}.trainer.kubeflow.org" for plural in ("trainjobs", "trainingruntimes", "clustertrainingruntimes")
    }
    assert sorted(map(name_of, before)) == sorted(map(name_of, runtimes()))
    assert client.objects(CLUSTER_TRAINING_RUNTIMES) == before


@pytest.mark.parametrize(
    ("owners", "is_replaced"),
    [
        pytest.param([FIELD_MANAGER], True, id="ours"),
        pytest.param(["somebody"], False, id="of-somebody-else"),
        pytest.param([FIELD_MANAGER, "somebody"], False, id="of-both"),
    ],
)
async def test_runtimes_of_before(
    client: FakeClient, owners: list[str], is_replaced: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    """Those whose spec differs are replaced where nobody else has applied them; others stay, and the user reads why."""
    first, *others = runtimes()
    for owner in owners:
        await client.apply(CLUSTER_TRAINING_RUNTIMES, first, field_manager=owner)
    before = await client.get(CLUSTER_TRAINING_RUNTIMES, name_of(first))
    client.faults.fail(IMMUTABLE, verb="apply")

    await install_runtimes(client)

    after = await client.get(CLUSTER_TRAINING_RUNTIMES, name_of(first))
    assert (uid_of(after) != uid_of(before)) is is_replaced
    assert len(client.objects(CLUSTER_TRAINING_RUNTIMES)) == 1 + len(others)
    assert (f"note: {name_of(first)} is refused: " in capsys.readouterr().err) is not is_replaced


async def test_server_that_never_serves(client: FakeClient, clock: ManualClock) -> None:
    """Definitions that are never established are reported, not awaited forever."""

    async def pass_time() -> None:
        await clock.wait_for_sleepers()
        await clock.advance(60)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(pass_time)
        with pytest.raises(CommandError, match="does not serve our resources"):
            await install_definitions(client, clock)
