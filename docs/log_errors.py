"""Prints the errors that a container logs, until it has ended, through whatever happens to the connection."""

from collections.abc import Callable

import anyio

from trainer import kube
from trainer.kube.clock import Clock, SystemClock
from trainer.kube.podlogs.container_log import ContainerLog, ContainerLogOptions, Interrupted
from trainer.kube.resource import PODS

OPTIONS = ContainerLogOptions(line_limit=64 * 1024)


async def tell_errors(
    client: kube.Client, pod: kube.ObjectKey, container: str, tell: Callable[[str], None], clock: Clock
) -> None:
    one_pod = kube.Selection(pod.namespace, field_selector=f"metadata.name={pod.name}")
    pods = kube.Informer(client, PODS, one_pod, clock=clock)

    def has_ended() -> bool:
        found = pods.lister.get(pod)
        return found is None or found.get("status", {}).get("phase") in {"Succeeded", "Failed"}

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(pods.run)
        await pods.wait_for_sync()
        container_log = ContainerLog(client, *pod, container, clock=clock, options=OPTIONS)
        async for event in container_log.follow(has_ended):
            if not isinstance(event, Interrupted):  # one or more whole lines
                for line in event.decode(errors="replace").splitlines():
                    if "ERROR" in line:
                        tell(line)
        tasks.cancel_scope.cancel()


async def main() -> int:
    async with kube.connect() as client:
        await tell_errors(client, kube.ObjectKey("default", "a-pod"), "trainer", print, SystemClock())
    return 0


if __name__ == "__main__":
    raise SystemExit(kube.run_until_signal(main))
