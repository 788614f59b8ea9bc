"""A kubelet in a process: `python -m packages.devcluster.tests.kubelet.kubelet_process MODE DATA_DIR SCRIPT`.

It runs one pod with a shell script on an API server in memory, prints the pod's phases and ends when the pod does.
The pod has a readiness probe that writes the user whom it runs as to a volume, in the file `probed`.
"""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path

import anyio

from packages.devcluster.tests.kubelet.fakes import make_pod, mounting, shell
from trainer.kube.manager.manager import Manager
from trainer.kube.resource import PODS
from trainer_devcluster.kubelet import KubeletOptions, PodNetworkMode, register
from trainer_kube_testing import FakeClient


async def main(mode: str, data_dir: str, script: str) -> None:
    """Run the pod to its end."""
    volumes = [{"name": "v", "emptyDir": {}}]
    command = [
        "sh",
        "-c",
        "echo probed by $(id -u) > probing; mv probing probed",
    ]
    probe = {"exec": {"command": command}, "periodSeconds": 1}
    place = "/unprivileged-test"
    container = shell(script, workingDir=place, volumeMounts=mounting(v=place), readinessProbe=probe)
    pod = make_pod("pod", container, volumes=volumes)
    client = FakeClient(pod)
    manager = Manager(client)
    register(manager, KubeletOptions(Path(data_dir), pod_network=PodNetworkMode(mode)))
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(manager.run)
        phase = ""
        while phase not in {"Succeeded", "Failed"}:
            await anyio.sleep(0.02)
            status = client.objects(PODS)[0].get("status", {})
            if status.get("phase", "") != phase:
                phase = status["phase"]
                sys.stdout.write(f"{phase}\n")
                sys.stdout.flush()
        tasks.cancel_scope.cancel()


if __name__ == "__main__":
    anyio.run(partial(main, *sys.argv[1:]))
