"""`trainer history record`: the recorder in the foreground."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import anyio
import typer
from anyio.to_thread import run_sync

from trainer.api.optimization import OPTIMIZATION_JOBS
from trainer.cli.current_cluster import current_cluster, open_cluster
from trainer.cli.errors import BadInputError, ExitCode
from trainer.cli.logs.logs import parse_duration
from trainer.cli.options import Context, Kubeconfig
from trainer.kube.clock import SystemClock
from trainer.kube.errors import KubeError
from trainer.kube.logger import get_logger
from trainer.kube.logs.logs import configure_logging
from trainer.kube.manager.health import HealthChecks
from trainer.kube.manager.health_server import HealthServer
from trainer.kube.manager.signals import run_until_signal
from trainer.kube.memory import limit_memory
from trainer.kube.quantity import parse_quantity, quantity_problem
from trainer_dashboard.commands.history_database import RECORDING, DatabaseUrl, database_of
from trainer_dashboard.history.notifications import Webhook
from trainer_dashboard.history.recorder import Recorder
from trainer_dashboard.history.retention import RetentionOptions

log = get_logger(__name__)

_NOTIFY_URL = "TRAINER_HISTORY_NOTIFY_URL"


class NotifiedState(StrEnum):
    """Values of `--notify-on`."""

    COMPLETE = "complete"
    FAILED = "failed"
    STALLED = "stalled"


def record(
    *,
    retain: Annotated[str, typer.Option(metavar="365d", help="How long trainings are kept after their end.")] = "365d",
    retain_size: Annotated[
        str, typer.Option(metavar="10Gi", help="Size above which namespaces with most lose what ended first.")
    ] = "10Gi",
    notify_url: Annotated[
        str,
        typer.Option(
            metavar="URL",
            envvar=_NOTIFY_URL,
            show_envvar=False,
            help="Webhook that gets JSON when a TrainJob ends or stalls, or a sweep ends, as Slack takes it. Other "
            f"accounts can read command lines: rather use ${_NOTIFY_URL} or --notify-url-file.",
        ),
    ] = "",
    notify_url_file: Annotated[Path | None, typer.Option(help="File with the URL of the webhook.")] = None,
    notify_on: Annotated[
        list[NotifiedState] | None, typer.Option(help="State to notify of; may be given several times. Default: all.")
    ] = None,
    notify_trials: Annotated[
        bool, typer.Option("--notify-trials", help="Notify also of each trial of a sweep. Default: of the sweep alone.")
    ] = False,
    namespace: Annotated[
        str | None, typer.Option("--namespace", "-n", help="Only TrainJobs of this namespace; default: of all.")
    ] = None,
    health_port: Annotated[
        int | None, typer.Option(min=0, max=65535, help="Port of /healthz and /readyz. Default: there are none.")
    ] = None,
    database: DatabaseUrl = None,
    kubeconfig: Kubeconfig = None,
    context: Context = None,
) -> None:
    """Record TrainJobs and sweeps of a cluster until interrupted: what they were, how they ended, metrics, log lines.

    A restart goes on where the last run ended, and loses nothing that the cluster still has. It works with the rights
    of the kubeconfig, or of its pod. Values that may be secret are not stored.
    """
    opened = database_of(database)
    if (problem := quantity_problem(retain_size)) is not None:
        raise BadInputError(f"--retain-size: {retain_size}: {problem}")
    webhook = _webhook(notify_url.strip(), notify_url_file, notify_on, with_trials=notify_trials)
    age = parse_duration(retain, option="--retain").total_seconds()
    retention = RetentionOptions(age, int(parse_quantity(retain_size)))
    limit_memory()
    configure_logging(json=None, level="info")
    options = current_cluster(kubeconfig, context, pod_first=True)

    async def run() -> int:
        async with _probes(health_port) as is_ready:
            await run_sync(opened.migrate)
            async with open_cluster(options) as cluster:
                recorder = Recorder(
                    cluster.client,
                    opened,
                    retention,
                    namespace=namespace,
                    server=cluster.server,
                    webhook=webhook,
                    optimization_jobs=cluster.served.resource(OPTIMIZATION_JOBS),
                )

                async def announce() -> None:
                    log.info(RECORDING, database=opened.name)
                    is_ready.set()

                await recorder.run(started=announce)
        return ExitCode.OK

    code = run_until_signal(run, second_kills=True)
    # A signal is the normal end of a recorder.
    raise typer.Exit(ExitCode.OK if code > 128 else code)


@asynccontextmanager
async def _probes(port: int | None) -> AsyncIterator[anyio.Event]:
    """Serve probes, if wanted; the recorder is ready when the event is set."""
    is_ready, clock = anyio.Event(), SystemClock()

    async def check() -> None:
        if not is_ready.is_set():
            raise KubeError("the recorder does not know yet what there is")

    live, ready = (HealthChecks(name, clock=clock) for name in ("healthz", "readyz"))
    ready.add("recorder", check)
    async with anyio.create_task_group() as tasks:
        if port is not None:
            tasks.start_soon(HealthServer("", port, checks=(live, ready), clock=clock).run)
        yield is_ready
        tasks.cancel_scope.cancel()


def _webhook(url: str, file: Path | None, states: list[NotifiedState] | None, *, with_trials: bool) -> Webhook | None:
    """Where notifications go, if somewhere."""
    if file is not None:
        try:
            url = file.read_text().strip()
        except (OSError, UnicodeDecodeError) as error:
            raise BadInputError(f"--notify-url-file: cannot read {file}: {type(error).__name__}") from None
    if not url and file is None:
        if states or with_trials:
            option = "--notify-on" if states else "--notify-trials"
            raise BadInputError(f"{option} needs a webhook: --notify-url-file FILE")
        return None
    return Webhook(url, frozenset(state.capitalize() for state in states or NotifiedState), with_trials)
