"""`trainer manager`: the controller manager in the foreground."""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from trainer.cli.errors import BadInputError, ExitCode
from trainer.cli.options import Context, Kubeconfig
from trainer.components import installed_components
from trainer.configuration.configuration import load_configuration, render_configuration
from trainer.configuration.feature_gates import described, parse_feature_gates
from trainer.framework.plugin_api.plugin_context import CacheReader
from trainer.framework.startup.discovery import make_registry
from trainer.kube.clock import SystemClock
from trainer.kube.logs.logs import configure_logging
from trainer.kube.manager.signals import run_until_signal
from trainer.kube.memory import limit_memory
from trainer.kube.metrics import Metrics
from trainer.kube.rest.connection import ConnectionOptions, connect
from trainer.manager import enabled_plugins, run_manager
from trainer.v1alpha1.discovery import find_served, watch_served


def manager_command(kubeconfig: Path, configuration: Path) -> list[str]:
    """The command line of a controller manager for the cluster of this kubeconfig."""
    files = ["--kubeconfig", str(kubeconfig), "--config", str(configuration)]
    return [sys.executable, "-m", "trainer.cli", "manager", *files]


_GATES = f"Switches for features, such as A=true,B=false; they override those of the file: {', '.join(described())}."


def manager(
    *,
    kubeconfig: Kubeconfig = None,
    config: Annotated[Path | None, typer.Option(help="Configuration file (YAML).")] = None,
    feature_gates: Annotated[str, typer.Option(help=_GATES, metavar="GATES")] = "",
    print_config: Annotated[
        bool, typer.Option("--print-config", help="Print the configuration with all defaults, and exit.")
    ] = False,
    context: Context = None,
) -> None:
    """Run the controller manager in the foreground; SIGTERM or Ctrl-C stops it gracefully, a second one at once.

    Without --kubeconfig and $KUBECONFIG it uses the service account of its pod. --print-config refuses what the manager
    would refuse at its start, plugins and their settings included, and asks no cluster.
    """
    if config is not None and not config.is_file():
        raise BadInputError(f"--config: there is no file {config}")
    configuration = load_configuration(config, parse_feature_gates(feature_gates))
    if print_config:
        make_registry(
            enabled_plugins(configuration.plugins, configuration.controller.api_version or "v2alpha1"), CacheReader()
        )
        installed_components(configuration)
        typer.echo(render_configuration(configuration), nl=False)
        return
    if kubeconfig is not None and not kubeconfig.is_file():
        raise BadInputError(f"--kubeconfig: there is no file {kubeconfig}")
    limit_memory()
    configure_logging(json=configuration.logging.as_json, level=configuration.logging.level)
    qps, burst = configuration.client_connection.limit or (None, None)
    connection = ConnectionOptions(kubeconfig=kubeconfig, context=context, qps=qps, burst=burst)

    async def run() -> int:
        metrics = Metrics()
        async with connect(connection, metrics=metrics) as client:
            served = await find_served(client, configuration.controller.api_version or None)
            await run_manager(
                served.client(client),
                configuration,
                served=served,
                version_watch=partial(watch_served, client, served, SystemClock()),
                namespace=client.namespace,
                metrics=metrics,
            )
        return ExitCode.OK

    code = run_until_signal(run, second_kills=True)
    # A signal is the normal end of a manager.
    raise typer.Exit(ExitCode.OK if code > 128 else code)
