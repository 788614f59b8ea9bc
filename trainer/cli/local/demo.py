"""`trainer demo`: one TrainJob on a cluster that is started for it."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Annotated

import typer
from anyio.to_thread import run_sync

from trainer.cli.console import say
from trainer.cli.current_cluster import warning_user
from trainer.cli.documents import Document, read_documents, version_of
from trainer.cli.errors import BadInputError
from trainer.cli.installation import install_definitions, install_runtimes
from trainer.cli.kinds import further_definitions
from trainer.cli.local.cluster import Network, NodeResources, PodNetworkMode, cluster_command
from trainer.cli.local.manager import prepare_manager, wait_for_admission
from trainer.cli.local.readiness import cluster_answers, manager_answers
from trainer.cli.manifests import example
from trainer.cli.processes.child import child_process
from trainer.cli.run.run import exit_code, follow_on_screen
from trainer.cli.run.submission import submit
from trainer.cli.similar import did_you_mean_file
from trainer.kube.clock import SystemClock
from trainer.kube.logs.logs import configure_logging
from trainer.kube.manager.signals import run_until_signal
from trainer.kube.rest.connection import ConnectionOptions, connect
from trainer.v1alpha1.discovery import Served

_DEFAULT_EXAMPLE = "jax-digits"


def demo(
    path: Annotated[
        Path | None,
        typer.Argument(help="File with TrainJobs, or directory with a trainjob.yaml; default: the jax-digits example."),
    ] = None,
    pod_network: Network = PodNetworkMode.AUTO,
    node_resources: NodeResources = "",
) -> None:
    """Start a dev cluster and a controller manager, run a TrainJob on them, show how it ends, and clean up.

    Exit code 0 when the job is Complete, 1 when it Failed. No process is left, however the demo ends.
    """
    documents = read_documents(str(_example_file(path)))
    configure_logging(json=False, level="error")
    with tempfile.TemporaryDirectory(prefix="trainer-demo-", ignore_cleanup_errors=True) as directory:
        code = run_until_signal(lambda: _demo(documents, Path(directory), pod_network, node_resources))
    raise typer.Exit(code)


def _example_file(path: Path | None) -> Path:
    if path is None:
        file = example(_DEFAULT_EXAMPLE)
        if file is None:
            raise BadInputError("name a file with a TrainJob: the examples are in the repository of the project")
        return file
    file = path / "trainjob.yaml" if path.is_dir() else path
    if not file.is_file():
        raise BadInputError(f"there is no file {file}{did_you_mean_file(file)}")
    return file


async def _demo(documents: list[Document], directory: Path, pod_network: PodNetworkMode, node_resources: str) -> int:
    kubeconfig = directory / "kubeconfig"
    cluster = cluster_command(
        data_dir=directory / "data", kubeconfig=kubeconfig, pod_network=pod_network, node_resources=node_resources
    )
    clock, version = SystemClock(), version_of(documents)
    say("starting the dev cluster")
    async with (
        child_process("dev cluster", cluster, directory / "cluster.log", cluster_answers(kubeconfig)),
        connect(warning_user(ConnectionOptions(kubeconfig=kubeconfig))) as client,
    ):
        await install_definitions(client, version=version, further=await run_sync(further_definitions, version))
        say("starting the controller manager")
        manager = await prepare_manager(
            client,
            kubeconfig,
            kubeconfig=directory / "manager.kubeconfig",
            configuration=directory / "manager.yaml",
            version=version,
        )
        is_ready = await manager_answers(directory / "manager.yaml")
        async with child_process("controller manager", manager, directory / "manager.log", is_ready):
            await wait_for_admission(client)
            await install_runtimes(client, version)
            decoding = Served(version).client(client)
            jobs = await submit(decoding, documents, namespace=None, default_namespace=client.namespace)
            outcomes = await follow_on_screen(decoding, jobs, clock)
    for outcome in outcomes.values():
        if outcome.is_complete and outcome.result:
            say(outcome.result)
    return exit_code(outcomes)
