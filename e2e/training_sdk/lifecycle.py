"""The scenario in which a job is suspended, changed, resumed, followed and deleted; that of its restart; of its end."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kubeflow.training.models import V1DeleteOptions

from e2e.training_sdk.jobs import PYTORCH, job_of

if TYPE_CHECKING:
    from kubeflow.training import TrainingClient

NAME = "life"


def lifecycle(client: TrainingClient, gate: Path) -> dict[str, Any]:
    """All calls in the order of a life."""
    job = job_of(client.job_kind, NAME, "echo hello", gate, suspend=True)
    client.create_job(job, queue_name="absent")
    until(lambda: "Suspended" in kinds(client))
    try:
        client.wait_for_job_conditions(NAME, expected_conditions={"Running"}, wait_timeout=2, polling_interval=1)
    except TimeoutError:
        found: dict[str, Any] = {"timed_out": True, "pods_of_suspended": client.get_job_pod_names(NAME)}

    seen: list[str] = []
    specs = job.spec.pytorch_replica_specs if client.job_kind == PYTORCH else job.spec.jax_replica_specs
    specs["Worker"].template.spec.containers[0].command[2] = "echo changed; " + wait_of(specs["Worker"])
    job.spec.run_policy.suspend = False
    client.update_job(job, NAME)
    running = {"expected_conditions": {"Running"}, "wait_timeout": 90, "polling_interval": 1}
    client.wait_for_job_conditions(NAME, callback=lambda each: seen.append(each.metadata.name), **running)
    until(lambda: len(client.get_job_pod_names(NAME, replica_type="worker", replica_index=0)) == 1)
    until(lambda: {pod.status.phase for pod in client.get_job_pods(NAME)} == {"Running"})
    found |= {
        "called_back": set(seen) == {NAME},
        "is": states(client),
        "pods": len(client.get_job_pods(NAME)),
        "masters": len(client.get_job_pod_names(NAME, is_master=True)),
        "by_role": [len(client.get_job_pod_names(NAME, replica_type=role)) for role in ("master", "worker")],
        "by_index": [len(client.get_job_pod_names(NAME, replica_type="worker", replica_index=n)) for n in (0, 1, 2)],
        "refused": refusal(client, job, specs["Worker"]),
    }
    (gate / "go").touch()
    followed, _ = client.get_job_logs(NAME, is_master=False, follow=True)
    client.wait_for_job_conditions(NAME, wait_timeout=90, polling_interval=1)
    logs, events = client.get_job_logs(NAME, is_master=False, verbose=True)
    found |= {
        "followed": sorted(followed.values()),
        "logs": sorted(logs.values()),
        "events": sorted({key.split("/")[0] for key in events}),
        "event": any(
            f"{client.job_kind} {client.namespace}/{NAME} is running." in text for text in events[own_key(client)]
        ),
        "ended": states(client),
    }
    client.delete_job(NAME, delete_options=V1DeleteOptions(propagation_policy="Foreground", grace_period_seconds=0))
    until(lambda: client.list_jobs() == [])
    try:
        client.get_job(NAME)
    except RuntimeError as error:
        found["gone"] = "NotFound" in str(error)
    return found | {"pods_left": client.get_job_pod_names(NAME)}


def restarting(client: TrainingClient, gate: Path) -> dict[str, Any]:
    """A pod fails with an exit code after which the Training Operator makes another one."""
    line = "test -e /gate/again || { touch /gate/again; exit 130; }"
    client.create_job(job_of(client.job_kind, NAME, line, gate, pods=1, restarts="ExitCode"))
    wait = {"wait_timeout": 90, "polling_interval": 1}
    client.wait_for_job_conditions(NAME, expected_conditions={"Restarting"}, **wait)
    found = {"restarting": states(client)}
    client.wait_for_job_conditions(NAME, expected_conditions={"Running"}, **wait)
    found["running"] = states(client)
    (gate / "go").touch()
    client.wait_for_job_conditions(NAME, **wait)
    return found | {"ended": states(client)}


def failing(client: TrainingClient, gate: Path) -> dict[str, Any]:
    """A job that fails: the SDK raises while it waits, unless that is what it waits for."""
    client.create_job(job_of(client.job_kind, NAME, "exit 4", gate, pods=1))
    wait = {"wait_timeout": 90, "polling_interval": 1}
    expected = client.wait_for_job_conditions(NAME, expected_conditions={"Failed"}, **wait)
    found = {"expected": client.is_job_failed(job=expected), "ended": states(client), "raised": ""}
    try:
        client.wait_for_job_conditions(NAME, **wait)
    except RuntimeError as error:
        found["raised"] = str(error)
    return found


def states(client: TrainingClient) -> list[str]:
    """What holds of the job by the SDK's questions."""
    questions: dict[str, Callable[..., bool]] = {
        "created": client.is_job_created,
        "running": client.is_job_running,
        "restarting": client.is_job_restarting,
        "succeeded": client.is_job_succeeded,
        "failed": client.is_job_failed,
    }
    return [state for state, holds in questions.items() if holds(NAME)]


def kinds(client: TrainingClient) -> list[str]:
    """The types of its conditions."""
    return [each.type for each in client.get_job_conditions(NAME)]


def own_key(client: TrainingClient) -> str:
    """Where the SDK puts events about the job itself."""
    return f"{client.job_kind.lower()}/{NAME}"


def refusal(client: TrainingClient, job: Any, worker: Any) -> str:
    """What is said about another image of a running job."""
    worker.template.spec.containers[0].image = "other"
    try:
        client.update_job(job, NAME)
    except RuntimeError as error:
        return str(error)
    return ""


def wait_of(worker: Any) -> str:
    """The part of its line of shell that waits."""
    found: str = worker.template.spec.containers[0].command[2].split("; ", 1)[1]
    return found


def until(holds: Callable[[], bool]) -> None:
    """Wait until something holds."""
    deadline = time.monotonic() + 90
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.3)
