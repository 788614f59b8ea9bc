"""The admission webhooks of a manager on this machine, as `trainer up` and `trainer demo` start one.

The API server of the dev cluster reaches them by URL, on a port of the loopback interface that is free at the moment.
What they check, and for which requests, is said in config/webhook, as for every other cluster.
"""

from __future__ import annotations

import socket
from dataclasses import dataclass
from typing import TYPE_CHECKING

import yaml
from anyio.to_thread import run_sync

from trainer.cli.errors import CommandError
from trainer.cli.manifests import FIELD_MANAGER, configuration_directory
from trainer.configuration.configuration import Configuration, render_configuration
from trainer.configuration.sections import MetricsAuthConfiguration, MetricsConfiguration, WebhookConfiguration
from trainer.kube.clock import SystemClock, move_on_after
from trainer.kube.objects import name_of
from trainer.kube.resource import MUTATING_WEBHOOK_CONFIGURATIONS, VALIDATING_WEBHOOK_CONFIGURATIONS

if TYPE_CHECKING:
    from pathlib import Path

    from trainer.kube.client import Client
    from trainer.kube.clock import Clock
    from trainer.kube.objects import Object
    from trainer.kube.resource import Resource

_HOST = "127.0.0.1"
_FILES = {MUTATING_WEBHOOK_CONFIGURATIONS: "mutating.yaml", VALIDATING_WEBHOOK_CONFIGURATIONS: "validating.yaml"}
_TRUSTED_SECONDS = 30.0
_POLL_SECONDS = 0.05


@dataclass(frozen=True, slots=True)
class LocalAdmission:
    """Webhooks on one port of this machine."""

    port: int

    @classmethod
    def on_free_port(cls) -> LocalAdmission:
        """On a port that nobody listens on; the manager tells if somebody was quicker to take it."""
        with socket.create_server((_HOST, 0)) as free:
            return cls(free.getsockname()[1])

    def write_configuration(self, file: Path, *, metrics_port: int = 0) -> None:
        """Write the configuration file of a manager that serves the webhooks.

        Args:
            file: is replaced.
            metrics_port: where it serves its metrics on this machine, to whoever asks. Default: nowhere.
        """
        webhook = WebhookConfiguration(host=_HOST, port=self.port, hosts=[_HOST])
        configuration = Configuration().without_servers().model_copy(update={"webhook": webhook})
        if metrics_port:
            metrics = MetricsConfiguration(
                bind_address=f"{_HOST}:{metrics_port}",
                secure_serving=False,
                auth=MetricsAuthConfiguration(enabled=False),
            )
            configuration = configuration.model_copy(update={"metrics": metrics})
        file.write_text(render_configuration(configuration), encoding="utf-8")

    async def switch_on(self, client: Client) -> None:
        """Have the API server ask the webhooks; until the manager serves them, TrainJobs and runtimes are refused."""
        for resource, configuration in (await run_sync(_configurations)).items():
            await client.apply(resource, self._local(configuration), field_manager=FIELD_MANAGER, force=True)

    def _local(self, configuration: Object) -> Object:
        """With URLs in place of the Service."""
        for webhook in configuration["webhooks"]:
            path = webhook["clientConfig"]["service"]["path"]
            webhook["clientConfig"] = {"url": f"https://{_HOST}:{self.port}{path}"}
        return configuration


async def wait_for_admission(client: Client, clock: Clock | None = None) -> None:
    """Wait until the API server trusts the webhooks of a manager that serves them.

    Raises:
        CommandError: it does not in time.
    """
    clock = clock or SystemClock()
    async with move_on_after(clock, _TRUSTED_SECONDS) as scope:
        for resource, configuration in (await run_sync(_configurations)).items():
            while not _is_trusted(await client.get(resource, name_of(configuration))):
                await clock.sleep(_POLL_SECONDS)
    if scope.cancelled_caught:
        raise CommandError(
            f"the manager has not made the API server trust its webhooks within {_TRUSTED_SECONDS:.0f} s"
        )


def _configurations() -> dict[Resource, Object]:
    directory = configuration_directory() / "webhook"
    return {
        resource: yaml.safe_load((directory / file).read_text(encoding="utf-8")) for resource, file in _FILES.items()
    }


def _is_trusted(configuration: Object) -> bool:
    return all((webhook.get("clientConfig") or {}).get("caBundle") for webhook in configuration.get("webhooks") or [])
