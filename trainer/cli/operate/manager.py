"""`trainer manager`: the controller manager in the foreground."""

from __future__ import annotations

import sys
from pathlib import Path  # noqa: TC003 - typer reads annotations
from typing import TYPE_CHECKING, Annotated, Protocol

import structlog
import typer

from trainer.api.trainjob import TRAIN_JOBS
from trainer.cli.console import say
from trainer.cli.current_cluster import Context, Kubeconfig  # noqa: TC001 - typer reads annotations
from trainer.cli.errors import BadInputError, ExitCode
from trainer.configuration.configuration import load_configuration, render_configuration
from trainer.configuration.feature_gates import described, parse_feature_gates
from trainer.kube.errors import ConfigurationError, KubeError, NotFoundError
from trainer.kube.logs.logs import configure_logging
from trainer.kube.manager.signals import run_until_signal
from trainer.kube.metrics import Metrics
from trainer.kube.rest.connection import ConnectionOptions, connect
from trainer.manager import run_manager

if TYPE_CHECKING:
    from trainer.kube.objects import Object


log = structlog.get_logger(__name__)


class RawClient(Protocol):
    """A client that can send requests beyond the typed ones."""

    async def request(self, method: str, path: str) -> Object:
        """Send a request without a body and return the answer."""


async def require_own_version(client: RawClient) -> None:
    """Check that the CRDs of the cluster are not those of another Trainer.

    Missing CRDs and an API server that does not answer are left to the informers, which wait for them.
    """
    try:
        group = await client.request("GET", f"/apis/{TRAIN_JOBS.group}")
    except NotFoundError:
        return
    except KubeError as error:
        log.warning("could not find out which versions are served", group=TRAIN_JOBS.group, error=str(error))
        return
    served = sorted(entry["version"] for entry in group.get("versions") or [])
    if not served or TRAIN_JOBS.version in served:
        return
    raise ConfigurationError(
        f"the cluster serves {TRAIN_JOBS.group} as {', '.join(served)}, and this manager works with "
        f"{TRAIN_JOBS.version}: the CRDs of another Kubeflow Trainer are installed; remove that Trainer and its CRDs "
        'and apply those of this one, as docs/install.md says under "Beside the released Kubeflow Trainer"'
    )


READY = "started manager"
"""Logged by the manager once its controllers run."""


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

    Without --kubeconfig and $KUBECONFIG it uses the service account of its pod.
    """
    if config is not None and not config.is_file():
        raise BadInputError(f"--config: there is no file {config}")
    configuration = load_configuration(config, parse_feature_gates(feature_gates))
    if print_config:
        say(render_configuration(configuration).rstrip("\n"))
        return
    if kubeconfig is not None and not kubeconfig.is_file():
        raise BadInputError(f"--kubeconfig: there is no file {kubeconfig}")
    configure_logging(json=configuration.logging.as_json, level=configuration.logging.level)
    qps, burst = configuration.client_connection.limit or (None, None)
    connection = ConnectionOptions(kubeconfig=kubeconfig, context=context, qps=qps, burst=burst)

    async def run() -> int:
        metrics = Metrics()
        async with connect(connection, metrics=metrics) as client:
            await require_own_version(client)
            await run_manager(client, configuration, namespace=client.namespace, metrics=metrics)
        return ExitCode.OK

    code = run_until_signal(run, second_kills=True)
    # A signal is the normal end of a manager.
    raise typer.Exit(ExitCode.OK if code > 128 else code)
