"""Versions of the control plane on a cluster: each is applied from its own manifests and run by its own programs."""

from __future__ import annotations

import subprocess
from collections.abc import Collection
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import yaml

from e2e.cluster import Cluster
from e2e.identity import NAMESPACE, write_credentials
from e2e.installation import CONFIG, HOST, free_ports, merged, wait_for_trust
from e2e.kubectl import BIN, Kubectl
from e2e.manager import Manager
from e2e.upgrades.released import Release

SERVICE = "trainer-webhook"
INSTALLER = "trainer-runtimes"
"""Account of the Job that applies the runtimes."""


@dataclass(frozen=True, slots=True)
class Version:
    """A version with its programs and manifests."""

    name: str
    bin: Path
    config: Path

    @staticmethod
    def tree() -> Version:
        """What the tests are part of."""
        return Version("tree", BIN, CONFIG)

    @staticmethod
    def of(release: Release) -> Version:
        """A release, in the environment that all tests share."""
        return Version(release.version, release.bin, release.config)

    def run(self, *arguments: str, kubeconfig: Path, check: bool = True) -> subprocess.CompletedProcess[str]:
        """Run a subcommand of its `trainer` on a cluster, to its end."""
        command: list[str | Path] = [self.bin / "trainer", *arguments, "--kubeconfig", kubeconfig]
        result = subprocess.run(command, capture_output=True, text=True, timeout=110, check=False)
        if check and result.returncode != 0:
            raise AssertionError(f"{self.name}: trainer {' '.join(arguments)}:\n{result.stdout}{result.stderr}")
        return result


@dataclass(slots=True)
class Site:
    """A cluster on which versions follow each other, with processes of this machine in place of their Deployments."""

    cluster: Cluster
    directory: Path
    version: Version | None = None
    managers: list[Manager] = field(default_factory=list)
    """All that have been started, the last one last."""

    @property
    def system(self) -> Kubectl:
        """The namespace of the manager."""
        return replace(self.cluster, namespace=NAMESPACE)

    def apply(self, version: Version, kinds: Collection[str] = ()) -> None:
        """`kubectl apply --server-side -k config/default`, without the Job that applies the runtimes.

        Args:
            version: whose manifests.
            kinds: of the objects that are applied. Default: all.
        """
        objects = [obj for obj in self._rendered(version.config / "default") if obj["kind"] != "Job"]
        chosen = [obj for obj in objects if not kinds or obj["kind"] in kinds]
        self.cluster.kubectl("apply", "--server-side", "-f", "-", stdin=yaml.dump_all(chosen, Dumper=yaml.CSafeDumper))
        self.cluster.kubectl("wait", "--for=condition=Established", "crd/trainjobs.trainer.kubeflow.org")

    def apply_runtimes(self, version: Version) -> list[str]:
        """What the Job does, as its account; returns the runtimes that are refused."""
        kubeconfig = self.directory / "installer.kubeconfig"
        write_credentials(self.cluster, kubeconfig, INSTALLER)
        result = version.run("install-runtimes", "--timeout", "60", kubeconfig=kubeconfig, check=False)
        refused = [line.removesuffix(" refused") for line in result.stdout.splitlines() if line.endswith(" refused")]
        assert result.returncode == int(bool(refused)), result.stdout + result.stderr
        return refused

    def roll_out(self, version: Version, *, webhooks: bool = True) -> Manager:
        """Start a manager of this version, lead the webhooks to it, and end the one before, as a Deployment does.

        Args:
            version: whose programs and configuration.
            webhooks: whether it serves them; False where none are applied.
        """
        manager = self._manager(version, {} if webhooks else {"enabled": False})
        before = self.managers[-1] if self.managers else None
        self.managers.append(manager)
        self.cluster.manager, self.cluster.configuration, self.version = manager, manager.configuration, version
        manager.start(ready="started manager")
        if webhooks:
            self._point_webhooks_at(manager.configuration["webhook"]["port"])
        if before is not None:
            before.stop()
        manager.wait_for_output("started controller")
        if webhooks:
            wait_for_trust(self.cluster)
        return manager

    def close(self) -> None:
        """End all managers."""
        for manager in self.managers:
            manager.stop()

    def _manager(self, version: Version, webhook: dict[str, Any]) -> Manager:
        """A manager on ports of its own, not started."""
        port, metrics, health = free_ports(3)
        number = len(self.managers)
        if not self.managers:
            write_credentials(self.cluster, self.cluster.manager_kubeconfig)
        shipped: dict[str, Any] = yaml.safe_load((version.config / "manager/configuration.yaml").read_text())
        own = {
            "webhook": {"host": HOST, "port": port, **webhook},
            "metrics": {"bindAddress": f"{HOST}:{metrics}"},
            "health": {"healthProbeBindAddress": f"{HOST}:{health}"},
        }
        configuration = merged(shipped, own)
        file = self.directory / f"manager-{number}.yaml"
        file.write_text(yaml.safe_dump(configuration))
        options = ["--kubeconfig", str(self.cluster.manager_kubeconfig), "--config", str(file)]
        log = self.directory / f"manager-{number}.log"
        return Manager([str(version.bin / "trainer"), "manager", *options], log, configuration=configuration)

    def _point_webhooks_at(self, port: int) -> None:
        metadata = {
            "name": SERVICE,
            "namespace": NAMESPACE,
            "labels": {"kubernetes.io/service-name": SERVICE},
        }
        self.cluster.apply(
            {
                "apiVersion": "discovery.k8s.io/v1",
                "kind": "EndpointSlice",
                "metadata": metadata,
                "addressType": "IPv4",
                "endpoints": [{"addresses": [HOST], "conditions": {"ready": True}}],
                "ports": [{"name": "webhook", "port": port}],
            }
        )

    def _rendered(self, directory: Path) -> list[dict[str, Any]]:
        text = self.cluster.kubectl("kustomize", str(directory)).stdout
        return list(yaml.load_all(text, yaml.CSafeLoader))
