"""The processes of a soak, each of which says what it holds, and what lies between them and the API server."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import anyio
import msgspec
import yaml

from benchmarks.child import Child, child
from benchmarks.converging.installation import free_port
from benchmarks.soaking.observed import Sample
from e2e.balancer import Balancer, balanced
from trainer.cli.installation import install_definitions
from trainer.cli.local.manager import prepare_manager, wait_for_admission
from trainer.kube.rest.connection import ConnectionOptions, connect

_OBSERVED: Final = "benchmarks.soaking.observed"
_COMMAND: Final = "trainer.cli.main"
_CLUSTER: Final = "trainer_devcluster.cluster"
_ANSWER_SECONDS: Final = 20.0
_LAST_WORDS: Final = 2000
_decode: Final = msgspec.json.Decoder(Sample).decode


@dataclass(slots=True)
class Subject:
    """One process under observation."""

    child: Child
    file: Path
    """Where it writes samples."""
    logs: list[Path]
    """What it has written, since each of its starts."""
    is_running: bool = True
    """Whether it can be asked: it is killed otherwise if it does not listen yet."""
    samples: list[Sample] = field(default_factory=list)
    rests: list[list[Sample]] = field(default_factory=list)
    """The samples of each rest."""

    def was_killed(self) -> bool:
        """Whether it is being started again."""
        return not self.is_running

    @property
    def name(self) -> str:
        """What reports call it."""
        return self.child.name

    async def take_sample(self) -> None:
        """Ask it what it holds.

        Raises:
            RuntimeError: it does not answer, or has ended.
        """
        if self.was_killed():
            return
        if self.child.has_ended:
            raise RuntimeError(f"the {self.name} has ended:\n{self.child.log.read_text()[-_LAST_WORDS:]}")
        os.kill(self.child.pid, signal.SIGUSR1)
        deadline = time.monotonic() + _ANSWER_SECONDS
        while (lines := await anyio.Path(self.file).read_bytes()).count(b"\n") <= len(self.samples):
            if self.was_killed():
                return
            if time.monotonic() > deadline:
                raise RuntimeError(f"the {self.name} does not say what it holds: see {self.child.log}")
            await anyio.sleep(0.05)
        self.samples.append(_decode(lines.splitlines()[len(self.samples)]))


@dataclass(frozen=True, slots=True)
class Processes:
    """What runs."""

    directory: Path
    kubeconfig: Path
    """Of the administrator, straight to the API server."""
    data: Path
    """Of the cluster."""
    balancer: Balancer
    """Through which all others reach the API server."""
    subjects: Mapping[str, Subject]
    restart_cluster: Callable[[], None]
    """Kills the API server and starts it with what it has stored; blocks."""


@contextmanager
def running(directory: Path, entries: int) -> Iterator[Processes]:
    """A dev cluster whose pods are fake, a manager, a recorder and a dashboard, until the context ends.

    Args:
        directory: for logs and data.
        entries: of bounded caches, at most.
    """
    subjects: dict[str, Subject] = {}
    kubeconfig, data = directory / "kubeconfig", directory / "data"
    with ExitStack() as stack:

        def start(name: str, module: str, *arguments: str, ready: str, room: Path = directory) -> None:
            file = directory / f"{name}.samples"
            file.touch()
            command = [sys.executable, "-m", _OBSERVED, str(file), str(entries), module, *arguments]
            process = stack.enter_context(child(name, command, room, ready=ready))
            subject = subjects.setdefault(name, Subject(process, file, []))
            subject.child, subject.is_running = process, True
            subject.logs.append(process.log)

        def start_cluster(room: Path) -> None:
            start("cluster", _CLUSTER, *options, ready="cluster ready", room=room)

        def restart_cluster() -> None:
            again = directory / "restarted"
            again.mkdir()
            subjects["cluster"].is_running = False
            subjects["cluster"].child.kill()
            start_cluster(again)

        port = free_port()
        options = ["--fake-pods", "--feature-gates", "ElasticJobSet=true", "--port", str(port)]
        options += ["--data-dir", str(data), "--kubeconfig", str(kubeconfig)]
        start_cluster(directory)
        document = yaml.safe_load(kubeconfig.read_text())
        balancer = stack.enter_context(balanced([port]))
        document["clusters"][0]["cluster"]["server"] = f"https://127.0.0.1:{balancer.port}"
        outer = directory / "balanced.kubeconfig"
        outer.write_text(yaml.safe_dump(document), encoding="utf-8")
        identity, configuration = directory / "manager.kubeconfig", directory / "manager.yaml"
        anyio.run(_prepare, kubeconfig, outer, identity, configuration)
        files = ["--kubeconfig", str(identity), "--config", str(configuration)]
        start("manager", _COMMAND, "manager", *files, ready="started manager")
        anyio.run(_wait_for_admission, kubeconfig)
        shared = ["--kubeconfig", str(outer), "--database", f"sqlite:///{directory / 'history.db'}"]
        start("recorder", _COMMAND, "history", "record", *shared, ready="started recorder")
        served = ["--plain-http", "--host", "127.0.0.1", "--port", "0", "--health-port", "0"]
        start("dashboard", _COMMAND, "dashboard-server", *served, *shared, ready='"dashboard"')
        yield Processes(directory, kubeconfig, data, balancer, subjects, restart_cluster)


async def _prepare(kubeconfig: Path, outer: Path, identity: Path, configuration: Path) -> None:
    async with connect(ConnectionOptions(kubeconfig=kubeconfig)) as client:
        await install_definitions(client)
        await prepare_manager(client, outer, kubeconfig=identity, configuration=configuration)


async def _wait_for_admission(kubeconfig: Path) -> None:
    async with connect(ConnectionOptions(kubeconfig=kubeconfig)) as client:
        await wait_for_admission(client)
