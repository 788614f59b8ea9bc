"""The recorder of the history in front of a cluster whose manager changes."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from e2e.cluster import Cluster
from e2e.identity import NAMESPACE, write_credentials
from e2e.installation import CONFIG, free_ports
from e2e.kubectl import BIN
from e2e.processes import Process

ACCOUNT = "trainer-history"
_RIGHTS = ("service_account", "role", "role_binding")


@dataclass(frozen=True, slots=True)
class Recorder:
    """A recorder that runs, with a database of its own."""

    process: Process

    def states(self) -> dict[str, str]:
        """The state of each TrainJob that it has recorded."""
        return {each["name"]: each["state"] for each in self._list()}

    def deleted(self) -> set[str]:
        """TrainJobs that are gone."""
        return {each["name"] for each in self._list() if each["deleted"]}

    def _list(self) -> list[dict[str, Any]]:
        command: list[str | Path] = [BIN / "trainer", "history", "list", "-o", "json"]
        environment = os.environ | self.process.environment
        answer = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=110, check=True)
        found: list[dict[str, Any]] = json.loads(answer.stdout)
        return found


@contextmanager
def running_recorder(cluster: Cluster, directory: Path) -> Iterator[Recorder]:
    """A recorder of the namespace with the account and the rights of config/history, until the context closes."""
    for file in _RIGHTS:
        cluster.kubectl("apply", "--server-side", "-n", NAMESPACE, "-f", str(CONFIG / "history" / f"{file}.yaml"))
    kubeconfig = directory / "history.kubeconfig"
    write_credentials(cluster, kubeconfig, ACCOUNT, NAMESPACE)
    (port,) = free_ports(1)
    command = [str(BIN / "trainer"), "history", "record", "--health-port", str(port), "--kubeconfig", str(kubeconfig)]
    state = {"XDG_STATE_HOME": str(directory / "state")}
    process = Process([*command, "-n", cluster.namespace], directory / "recorder.log", state)
    process.start(ready="started recorder")
    try:
        yield Recorder(process)
    finally:
        process.stop()
