"""A cluster of kind with JobSet and Kueue, and the end-to-end tests on it.

    python -m hack.kind_cluster create [--kubernetes 1.37]
    python -m hack.kind_cluster e2e      the tests, with webhooks on this machine
    python -m hack.kind_cluster logs     of the nodes and their pods, into build/kind/logs
    python -m hack.kind_cluster delete

It needs Docker, and kind on PATH. The kubeconfig is build/kind/kubeconfig; that of the user is left alone.
"""

from __future__ import annotations

import argparse
import ipaddress
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import yaml

ROOT: Final = Path(__file__).parents[1]
DIRECTORY: Final = ROOT / "build" / "kind"
NAME: Final = "trainer-e2e"
NETWORK: Final = "kind"
"""The network of Docker in which kind puts its nodes."""
KIND: Final = "v0.33.0"
"""The release whose node images these are: kind supports each image with the release that it was built for."""
JOBSET: Final = "v0.12.0"
KUEUE: Final = "v0.19.2"
MANIFESTS: Final = {
    "jobset-system": f"https://github.com/kubernetes-sigs/jobset/releases/download/{JOBSET}/manifests.yaml",
    "kueue-system": f"https://github.com/kubernetes-sigs/kueue/releases/download/{KUEUE}/manifests.yaml",
}
"""What is installed beside Kubernetes, by the namespace of its Deployments."""


@dataclass(frozen=True, slots=True)
class Node:
    """One minor version of Kubernetes."""

    image: str
    """Tag and digest below kindest/node."""
    gates: tuple[str, ...] = ()
    """Feature gates that are switched on; default: none."""
    served: tuple[str, ...] = ()
    """Versions of the API that are served besides; default: none."""


NODES: Final[Mapping[str, Node]] = {
    "1.34": Node("v1.34.11@sha256:44e222ee2132dab25ff87301682f89eb82c7880ea3a1bf543bfe9708fd08d67d"),
    "1.35": Node("v1.35.8@sha256:07b2536e30b803ed61d1677a79df6115f798ce64c80f9e22f6ed45afd09323c0"),
    "1.36": Node(
        "v1.36.4@sha256:099e049362a1526b2db71494e1947aae99bd16290d7c895f2b7ea312e3cbfaed",
        ("GenericWorkload", "GangScheduling", "TopologyAwareWorkloadScheduling", "WorkloadAwarePreemption"),
        ("scheduling.k8s.io/v1alpha2",),
    ),
    "1.37": Node(
        "v1.37.0@sha256:a1ed56cfb0e7b93589bdf97c8cd566405a265939e3620fc4f5de89adff580ae5",
        ("GenericWorkload", "TopologyAwareWorkloadScheduling"),
        ("scheduling.k8s.io/v1beta1",),
    ),
}
"""From the notes of this release of kind; gates and versions are those of docs/gang-scheduling.md."""


class KindError(RuntimeError):
    """A program is missing or has failed; the message says what to do."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Do what the command line says."""
    parser = argparse.ArgumentParser(prog="hack.kind_cluster", description="A cluster of kind for end-to-end tests.")
    parser.add_argument("action", choices=["create", "e2e", "logs", "delete"])
    parser.add_argument("--kubernetes", choices=list(NODES), default=max(NODES), help="default: %(default)s")
    options = parser.parse_args(arguments)
    try:
        match options.action:
            case "create":
                create(NODES[options.kubernetes])
            case "e2e":
                end_to_end_tests()
            case "logs":
                _run("kind", "export", "logs", str(DIRECTORY / "logs"), "--name", NAME)
            case "delete":
                _run("kind", "delete", "cluster", "--name", NAME, "--kubeconfig", str(kubeconfig()))
    except KindError as error:
        sys.stderr.write(f"error: {error}\n")
        return 2
    return 0


def kubeconfig() -> Path:
    """The file with the credentials of the cluster's administrator."""
    return DIRECTORY / "kubeconfig"


def create(node: Node) -> None:
    """Start a cluster, and wait until JobSet and Kueue are ready.

    Raises:
        KindError: a program is missing or has failed.
    """
    for program, remedy in (("docker", "install Docker"), ("kind", f"install kind {KIND}")):
        if shutil.which(program) is None:
            raise KindError(f"{program} is not on PATH: {remedy}")
    found = _answer("kind", "version").split()
    if KIND not in found:
        sys.stderr.write(f"warning: the node images were built for kind {KIND}, and this is {' '.join(found)}\n")
    DIRECTORY.mkdir(parents=True, exist_ok=True)
    config = DIRECTORY / "cluster.yaml"
    config.write_text(yaml.safe_dump(cluster_config(node), sort_keys=False), encoding="utf-8")
    _run("kind", "create", "cluster", "--config", str(config), "--kubeconfig", str(kubeconfig()), "--wait", "3m")
    for manifests in MANIFESTS.values():
        _kubectl("apply", "--server-side", "-f", manifests)
    for namespace in MANIFESTS:
        _kubectl("wait", "--for=condition=Available", "deployment", "--all", "-n", namespace, "--timeout=5m")
    sys.stdout.write(f"cluster ready: make kind-e2e, or make e2e KUBECONFIG={kubeconfig().relative_to(ROOT)}\n")


def cluster_config(node: Node) -> dict[str, Any]:
    """What kind reads: one node, whose feature gates are those of all of its components."""
    return {
        "kind": "Cluster",
        "apiVersion": "kind.x-k8s.io/v1alpha4",
        "name": NAME,
        "featureGates": dict.fromkeys(node.gates, True),
        "runtimeConfig": dict.fromkeys(node.served, "true"),
        "nodes": [{"role": "control-plane", "image": f"kindest/node:{node.image}"}],
    }


def end_to_end_tests() -> None:
    """Run all end-to-end tests on the cluster; its API server reaches the webhooks by the gateway of its network.

    Raises:
        KindError: there is no cluster, or a test has failed.
    """
    if not kubeconfig().exists():
        raise KindError(f"there is no {kubeconfig().relative_to(ROOT)}: make kind-cluster")
    host = gateway(json.loads(_answer("docker", "network", "inspect", NETWORK)))
    _run("make", "e2e", f"KUBECONFIG={kubeconfig()}", environment={"E2E_WEBHOOK_HOST": host})


def gateway(networks: Sequence[Mapping[str, Any]]) -> str:
    """Give this machine's IPv4 address in a network of Docker.

    Args:
        networks: what `docker network inspect` prints of it.

    Raises:
        KindError: it has none.
    """
    pools = [pool for network in networks for pool in network["IPAM"]["Config"] or ()]
    found = [pool["Gateway"] for pool in pools if "Gateway" in pool]
    for each in found:
        if ipaddress.ip_address(each).version == 4:
            return str(each)
    raise KindError(f"network {NETWORK} of Docker has no IPv4 gateway: make kind-delete kind-cluster")


def _kubectl(*arguments: str) -> None:
    _run(str(Path(sys.executable).with_name("kubectl")), "--kubeconfig", str(kubeconfig()), *arguments)


def _answer(*command: str) -> str:
    try:
        return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
    except FileNotFoundError as error:
        raise KindError(f"{command[0]} is not on PATH") from error
    except subprocess.CalledProcessError as error:
        raise KindError(f"{' '.join(command)} ended with exit code {error.returncode}") from error


def _run(*command: str, environment: Mapping[str, str] | None = None) -> None:
    sys.stdout.write(f"+ {' '.join(command)}\n")
    sys.stdout.flush()
    try:
        subprocess.run(command, check=True, cwd=ROOT, env=os.environ | (environment or {}))
    except FileNotFoundError as error:
        raise KindError(f"{command[0]} is not on PATH") from error
    except subprocess.CalledProcessError as error:
        raise KindError(f"{' '.join(command)} ended with exit code {error.returncode}") from error


if __name__ == "__main__":
    sys.exit(main())
