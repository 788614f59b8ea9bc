"""What one run of a container starts: command, environment and mounts, made from the specification."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import anyio.to_thread

from trainer_devcluster.kubelet.environment import EnvironmentBuilder, command_line
from trainer_devcluster.kubelet.options import inherited_environment
from trainer_devcluster.kubelet.root_filesystem import SandboxMount
from trainer_devcluster.kubelet.sandbox import Program
from trainer_devcluster.kubelet.termination import DEFAULT_PATH
from trainer_devcluster.kubelet.volume_mounts import image_mounts, volume_mounts

if TYPE_CHECKING:
    from collections.abc import Mapping

    from trainer_devcluster.kubelet.pod_api import RunningPod


@dataclass(frozen=True, slots=True)
class ProgramBuilder:
    """Makes the programs of one container."""

    pod: RunningPod
    container: Mapping[str, Any]

    async def build(self, run: int) -> Program:
        """The program of a run.

        Args:
            run: how many times the container has been restarted before.

        Raises:
            ContainerCreateError: it can never be made.
            KubeError: something that it refers to is missing; worth another try.
        """
        pod, container, name = self.pod, self.container, self.container["name"]
        services = pod.host.services.variables(pod.pod)
        builder = EnvironmentBuilder(
            pod.pod, container, pod.facts, pod.host.reader, rewrite=self._rewrite, services=services
        )
        variables = await builder.build()
        command = command_line(container, variables)
        await anyio.to_thread.run_sync(pod.directory.prepare_run, name, run)
        mounts = await anyio.to_thread.run_sync(volume_mounts, container, pod.volumes, variables)
        if pod.host.network.isolated:
            mounts += await anyio.to_thread.run_sync(image_mounts, pod.directory.empty)
        inherited = inherited_environment(pod.host.options, os.environ) | {"HOSTNAME": pod.names.hostname}
        return Program(
            command,
            inherited | variables,
            scratch=pod.directory.scratch(name, run),
            log_file=pod.directory.log_file(name, run),
            log_limits=pod.host.options.log_limits,
            working_directory=container.get("workingDir") or "",
            mounts=(*self._own_files(run), *mounts),
        )

    def _own_files(self, run: int) -> list[SandboxMount]:
        """The files that every container has."""
        pod = self.pod
        message_path = self.container.get("terminationMessagePath") or DEFAULT_PATH
        files = [
            SandboxMount(pod.directory.hosts, "/etc/hosts"),
            SandboxMount(pod.directory.termination_log(self.container["name"], run), message_path),
        ]
        if pod.host.network.resolv_conf is not None:
            files.append(SandboxMount(pod.directory.resolv_conf, "/etc/resolv.conf"))
        return files

    def _rewrite(self, value: str) -> str:
        names = self.pod.names
        return self.pod.host.network.rewrite(value, namespace=names.namespace, subdomain=names.subdomain)
