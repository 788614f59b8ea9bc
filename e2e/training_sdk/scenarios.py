"""Scenarios of the SDK `kubeflow-training`: each prints what the SDK has answered, and which calls have been made.

python -m e2e.training_sdk.scenarios NAMESPACE SCENARIO KIND GATE
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any, cast

from kubeflow.training import TrainingClient

from e2e.training_sdk.fine_tuning import fine_tune
from e2e.training_sdk.jobs import IMAGE, job_of
from e2e.training_sdk.lifecycle import failing, lifecycle, restarting
from e2e.training_sdk.recorder import PUBLIC_CALLS, Recorder


def train(parameters: dict[str, int]) -> None:
    """What the SDK sends as text to the workers."""
    import torch  # noqa: PLC0415

    group = torch.distributed
    group.init_process_group("gloo")
    total = torch.ones(1) * parameters["weight"]
    group.all_reduce(total)
    print(f"rank {group.get_rank()} of {group.get_world_size()}: {total.item()}", flush=True)  # noqa: T201
    # Without it threads of gloo abort the process now and then while the interpreter ends (pytorch/pytorch#179291). The
    # pod is started again then, and waits for the others, which are done.
    group.destroy_process_group()


def by_hand(client: TrainingClient, gate: Path) -> dict[str, Any]:
    """A job of the models, followed from its creation to its deletion."""
    line = "echo rank ${RANK:-$PROCESS_ID} of ${WORLD_SIZE:-$NUM_PROCESSES}"
    client.create_job(job_of(client.job_kind, "hand", line, gate, pods=3))
    answer = followed(client, "hand", 3, gate)
    client.delete_job("hand")
    return answer


def function(client: TrainingClient, _gate: Path) -> dict[str, Any]:
    """A function of the user, which torchrun starts on two workers."""
    client.create_job(
        name="function",
        train_func=train,
        parameters={"weight": 3},
        num_workers=2,
        num_procs_per_worker=1,
        base_image=IMAGE,
        resources_per_worker={"cpu": 1},
    )
    client.wait_for_job_conditions("function", wait_timeout=240, polling_interval=1)
    logs, _ = client.get_job_logs("function")
    return {"succeeded": client.is_job_succeeded("function"), "master": list(logs.values())}


def followed(client: TrainingClient, name: str, pods: int, gate: Path) -> dict[str, Any]:
    """What the SDK says of a job while it runs, and in the end."""
    client.wait_for_job_conditions(name, expected_conditions={"Running"}, wait_timeout=90, polling_interval=1)
    is_running = client.is_job_running(name)
    worker = {"is_master": False, "replica_type": "worker", "replica_index": 1}
    deadline = time.monotonic() + 60
    while True:
        logs, _ = client.get_job_logs(name)
        all_logs, _ = client.get_job_logs(name, is_master=False)
        second, _ = client.get_job_logs(name, **worker)
        if len([text for text in all_logs.values() if text]) == pods and logs and second:
            break
        assert time.monotonic() < deadline, (logs, all_logs, second)
        time.sleep(0.5)
    (gate / "go").touch()
    job = client.wait_for_job_conditions(name, wait_timeout=90, polling_interval=1)
    return {
        "created": client.is_job_created(name),
        "ran": is_running,
        "succeeded": client.is_job_succeeded(job=job),
        "running": client.is_job_running(name),
        "conditions": [each.type for each in client.get_job_conditions(name)],
        "completed": client.get_job(name).status.completion_time is not None,
        "listed": [each.metadata.name for each in client.list_jobs()],
        "master": list(logs.values()),
        "all": sorted(all_logs.values()),
        "second": list(second.values()),
    }


def calls(_client: TrainingClient, _gate: Path) -> dict[str, Any]:
    """The calls that there are."""
    return {"public": PUBLIC_CALLS}


SCENARIOS = {each.__name__: each for each in (by_hand, calls, failing, fine_tune, function, lifecycle, restarting)}


def main() -> None:
    """Print the answer of a scenario as JSON."""
    namespace, name, kind, gate = sys.argv[1:]
    client = Recorder(TrainingClient(namespace=namespace, job_kind=kind))
    answer = SCENARIOS[name](cast("TrainingClient", client), Path(gate))
    print(json.dumps(answer | {"called": sorted(client.called)}))  # noqa: T201


if __name__ == "__main__":
    main()
