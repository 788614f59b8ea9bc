"""A controller manager of the tests: its process, its configuration, and the metrics that it serves."""

from __future__ import annotations

import base64
import json
import re
import ssl
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NoReturn

import pytest
import yaml

from e2e.cluster import Cluster
from e2e.identity import NAMESPACE
from e2e.installation import CONFIG, HOST, free_ports, merged
from e2e.kubectl import BIN
from e2e.processes import Process

READER = "e2e-metrics-reader"
_SECRET = "trainer-webhook-certificates"


@dataclass(slots=True)
class Manager(Process):
    """A manager on this machine."""

    configuration: dict[str, Any] = field(default_factory=dict)

    def series(self, cluster: Cluster, name: str) -> float:
        """The sum of all time series of this name that it serves."""
        values = re.findall(rf"^{name}(?:\{{.*\}})? (\S+)$", self.metrics(cluster), re.MULTILINE)
        assert values, f"there is no series {name}"
        return sum(map(float, values))

    def metrics(self, cluster: Cluster) -> str:
        """All that it serves."""
        return read_metrics(cluster, self.configuration)


def read_metrics(cluster: Cluster, configuration: dict[str, Any]) -> str:
    """All metrics of the manager with this configuration, as an authorised Prometheus reads them."""
    headers = {"Authorization": f"Bearer {_token(cluster)}"}
    request = urllib.request.Request(f"https://{configuration['metrics']['bindAddress']}/metrics", headers=headers)
    with urllib.request.urlopen(request, timeout=10, context=_trust(cluster)) as answer:
        text: str = answer.read().decode()
    return text


def manager(cluster: Cluster, directory: Path, name: str = "manager", /, **changes: Any) -> Manager:
    """A manager that is configured like that of the cluster; not started.

    Args:
        cluster: which it looks after.
        directory: where its files go.
        name: of its files.
        changes: sections of the configuration, or single fields of them.
    """
    configuration = merged(cluster.configuration, changes)
    file = directory / f"{name}.yaml"
    file.write_text(yaml.safe_dump(configuration))
    command = [str(BIN / "trainer"), "manager", "--kubeconfig", str(cluster.manager_kubeconfig), "--config", str(file)]
    return Manager(command, directory / f"{name}.log", configuration=configuration)


@contextmanager
def reconfigured(cluster: Cluster, directory: Path, **changes: Any) -> Iterator[Manager]:
    """A manager in place of that of the cluster, within the context.

    Args:
        cluster: which it looks after.
        directory: where its files go.
        changes: sections of the configuration, or single fields of them.
    """
    cluster.manager.stop()
    process = manager(cluster, directory, **changes)
    try:
        process.start(ready="started manager")
        yield process
    finally:
        process.stop()
        cluster.manager.start(ready="started manager")


@contextmanager
def with_reporter(cluster: Cluster, directory: Path) -> Iterator[Manager]:
    """A manager in place of that of the cluster, within the context: it has an image with the progress reporter.

    Args:
        cluster: that of the session.
        directory: where its files go.
    """
    settings: dict[str, Any] = {
        "plugins": {"configuration": {"progress-reporter": {"image": "trainer-operator"}}},
        "progress": {"statusInterval": "200ms", "readInterval": "50ms"},
    }
    with reconfigured(cluster, directory, **settings) as process:
        yield process


def other_ports() -> dict[str, dict[str, Any]]:
    """The configuration of a manager beside another one: the API server does not call its webhooks."""
    webhook, metrics, health = free_ports(3)
    return {
        "webhook": {"port": webhook},
        "metrics": {"bindAddress": f"{HOST}:{metrics}"},
        "health": {"healthProbeBindAddress": f"{HOST}:{health}"},
    }


class InstalledManager(Manager):
    """A manager that is a Deployment of the cluster, and not ours to stop: tests that would are skipped."""

    def __init__(self) -> None:
        super().__init__([], CONFIG / "nowhere")

    @property
    def pid(self) -> int:
        _skip()

    def start(self, *, ready: str) -> None:
        _skip()

    def output(self) -> str:
        _skip()

    def stop(self) -> None:
        _skip()


def _skip() -> NoReturn:
    pytest.skip("the manager of this cluster is a Deployment, and the test wants it to stop, or to read its output")


def _trust(cluster: Cluster) -> ssl.SSLContext:
    """What the manager proves itself by: its own authority, unless it serves no webhooks and made a certificate up."""
    shown = cluster.kubectl("get", "secret", _SECRET, "-n", NAMESPACE, "-o", "json").stdout
    authority = (json.loads(shown).get("data") or {}).get("ca.crt")
    if authority and cluster.has_webhooks:
        return ssl.create_default_context(cadata=base64.b64decode(authority).decode())
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    return context


_tokens: dict[str, str] = {}


def _token(cluster: Cluster) -> str:
    """Of an account that may read metrics, and nothing else."""
    key = str(cluster.kubeconfig)
    if key not in _tokens:
        role = yaml.safe_load((CONFIG / "prometheus/metrics_reader_role.yaml").read_text())
        reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": READER}
        subject = {"kind": "ServiceAccount", "name": READER, "namespace": NAMESPACE}
        cluster.belongings.create(
            replace(cluster, namespace=""),
            {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": READER, "namespace": NAMESPACE}},
            role | {"metadata": {"name": READER}},
            {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": {"name": READER}}
            | {"roleRef": reference, "subjects": [subject]},
        )
        _tokens[key] = cluster.kubectl("create", "token", READER, "-n", NAMESPACE, "--duration=4h").stdout.strip()
    return _tokens[key]
