"""The composition root of the controller manager: reads the configuration, wires everything, runs it."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Annotated

import structlog
import yaml
from anyio.to_thread import run_sync
from pydantic import AfterValidator, Field, ValidationInfo, field_validator

from trainer.api import patterns
from trainer.api.invalid_object import InvalidObjectError
from trainer.api.model import ApiModel, text
from trainer.bind_address import BindAddress, host_and_port
from trainer.controllers.trainjob import TrainJobController
from trainer.framework.discovery import available_plugins, bundled_plugins, load_plugins, make_registry
from trainer.framework.pipeline import Pipeline
from trainer.framework.plugins_configuration import PluginsConfiguration
from trainer.framework.reader import CacheReader
from trainer.kube.election.leader_election import JITTER, LeaderElectionOptions
from trainer.kube.errors import ConfigurationError
from trainer.kube.manager.manager import Manager, ManagerOptions
from trainer.plugins import BUILT_IN
from trainer.progress.configuration import ProgressConfiguration
from trainer.progress.controller import ProgressController
from trainer.webhooks.configuration import WebhookConfiguration
from trainer.webhooks.handlers import Admission
from trainer.webhooks.live_runtimes import LiveRuntimes

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from trainer.framework.discovery import EnabledPlugin
    from trainer.framework.reader import Reader
    from trainer.framework.registry import Registry
    from trainer.kube.client import Client
    from trainer.kube.clock import Clock
    from trainer.kube.metrics import Metrics

log = structlog.get_logger(__name__)


def _check_number(value: float) -> float:
    if math.isnan(value):
        raise ValueError("must be a number")
    return value


class LeaderElectionConfiguration(ApiModel):
    """How managers of the same cluster agree which of them works; field names are those of Kubernetes' components."""

    leader_elect: bool = False
    """Whether this manager works only while it holds the lease. Defaults to false, for the only manager of a laptop;
    the manifests that install a Deployment set it to true."""
    resource_name: Annotated[str, Field(min_length=1)] = "trainer.kubeflow.org"
    """Name of the Lease. Defaults to trainer.kubeflow.org, so that two controllers of the same objects, whatever their
    Deployments are called, never both work in one namespace."""
    resource_namespace: Annotated[str, Field(min_length=1)] | None = None
    """Namespace of the Lease. Defaults to that of the service account, or of the kubeconfig's context."""
    lease_duration_seconds: Annotated[int, Field(ge=1, le=2**31 - 1)] = 15
    """How long the others wait for a manager that no longer renews the lease. Defaults to 15."""
    renew_deadline_seconds: Annotated[float, Field(gt=0, validate_default=True)] = 10.0
    """A manager that could not renew the lease for this long exits; less than leaseDurationSeconds. Defaults to 10."""
    retry_period_seconds: Annotated[float, Field(gt=0, validate_default=True)] = 2.0
    """How often the lease is renewed; less than renewDeadlineSeconds divided by 1.2. Defaults to 2."""

    @field_validator("renew_deadline_seconds")
    @classmethod
    def _check_renew_deadline(cls, value: float, info: ValidationInfo) -> float:
        duration = info.data.get("lease_duration_seconds", math.inf)
        if value >= duration:
            raise ValueError(f"must be less than leaseDurationSeconds ({duration})")
        return value

    @field_validator("retry_period_seconds")
    @classmethod
    def _check_retry_period(cls, value: float, info: ValidationInfo) -> float:
        deadline = info.data.get("renew_deadline_seconds", math.inf)
        if value * JITTER >= deadline:
            raise ValueError(f"must be less than renewDeadlineSeconds ({deadline}) divided by {JITTER}")
        return value

    def options(self, namespace: str) -> LeaderElectionOptions:
        """The part that is for `trainer.kube`, with the namespace to use if none is configured."""
        return LeaderElectionOptions(
            name=self.resource_name,
            namespace=self.resource_namespace or namespace,
            lease_duration=self.lease_duration_seconds,
            renew_deadline=self.renew_deadline_seconds,
            retry_period=self.retry_period_seconds,
        )


class ManagerConfiguration(ApiModel):
    """What the controller manager can be told; everything has a default."""

    namespace: Annotated[str, Field(min_length=1)] | None = None
    """The only namespace whose TrainJobs are looked after. Defaults to all namespaces."""
    max_concurrent_reconciles: Annotated[int, Field(ge=1)] = 5
    """How many TrainJobs are worked on at the same time. Defaults to 5."""
    http_bind_address: BindAddress | None = None
    """`host:port` for /healthz, /readyz and /metrics; all addresses when the host is empty, and those of IPv6 in
    brackets. Defaults to no server."""
    cache_sync_timeout_seconds: Annotated[float, Field(gt=0)] = 120.0
    """How long the first lists of all watched resources may take before the manager gives up. Defaults to 120."""
    graceful_shutdown_timeout_seconds: Annotated[float, AfterValidator(_check_number)] = 30.0
    """How long reconciles that run may take to end when the manager is stopped; 0: no time, less: for ever. Defaults to
    30; terminationGracePeriodSeconds of the pod must be longer."""
    cluster_domain: (
        Annotated[str, Field(min_length=1, json_schema_extra=text(pattern=patterns.OBJECT_NAME, longest=100))] | None
    ) = None
    """Domain of the cluster, such as cluster.local: pods are told each other's DNS names in full. Defaults to none:
    short names resolve in any cluster, except for pods whose dnsPolicy gives them no search domains."""
    leader_election: LeaderElectionConfiguration = Field(default_factory=LeaderElectionConfiguration)
    """How managers of the same cluster agree which of them works. Defaults to no election."""
    webhook: WebhookConfiguration = Field(default_factory=WebhookConfiguration)
    """How wrong TrainJobs and runtimes are refused before they are stored. Defaults to not at all: conditions tell."""
    progress: ProgressConfiguration = Field(default_factory=ProgressConfiguration)
    """How the progress of trainings is followed. Defaults to all trainings that report some."""
    plugins: PluginsConfiguration = Field(default_factory=PluginsConfiguration)
    """Which plugins are used, and what they are told. Defaults to all that are installed."""

    @classmethod
    def load(cls, path: Path) -> ManagerConfiguration:
        """Read a YAML file.

        Raises:
            ConfigurationError: the file cannot be read, or has unknown or wrong fields; one line names them.
        """
        try:
            document = yaml.safe_load(path.read_text(encoding="utf-8"))
        except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
            raise ConfigurationError(f"cannot read {path}: {' '.join(str(error).split())}") from error
        if document is not None and not isinstance(document, dict):
            raise ConfigurationError(f"{path}: must be a mapping of settings, not {type(document).__name__}")
        try:
            return cls.from_object(document or {}, strict=True)
        except InvalidObjectError as error:
            raise ConfigurationError(f"{path}: {'; '.join(map(str, error.errors))}") from error

    def options(self, namespace: str = "default") -> ManagerOptions:
        """The part that is for `trainer.kube`; the namespace is that of the lease if none is configured."""
        bind = host_and_port(self.http_bind_address) if self.http_bind_address is not None else None
        election = self.leader_election
        return ManagerOptions(
            cache_sync_timeout=self.cache_sync_timeout_seconds,
            graceful_shutdown_timeout=self.graceful_shutdown_timeout_seconds,
            http_bind=bind,
            leader_election=election.options(namespace) if election.leader_elect else None,
        )


def built_in_plugins(reader: Reader) -> Registry:
    """The plugins that come with this package."""
    return make_registry(load_plugins(bundled_plugins(BUILT_IN), PluginsConfiguration()), reader)


def enabled_plugins(configuration: PluginsConfiguration) -> list[EnabledPlugin]:
    """The plugins of this package and of all installed ones, as far as they are enabled; it reads files.

    Raises:
        ConfigurationError: the configuration names unknown plugins, or a package cannot be imported.
    """
    return load_plugins(available_plugins(BUILT_IN), configuration)


def build_manager(
    client: Client,
    configuration: ManagerConfiguration,
    *,
    plugins: Iterable[EnabledPlugin] | None = None,
    namespace: str = "default",
    clock: Clock | None = None,
    metrics: Metrics | None = None,
) -> Manager:
    """A manager with all controllers registered, ready to run.

    Args:
        client: for the cluster.
        configuration: see there.
        plugins: see `enabled_plugins`; default: those of this package, as far as they are enabled.
        namespace: where the manager itself lives; its lease is there if the configuration names no other.
        clock: default: that of the machine.
        metrics: those of the client, so that one endpoint shows both; default: none but the manager's own.

    Raises:
        ConfigurationError: a plugin cannot be made or used; names plugin and remedy.
    """
    manager = Manager(client, clock=clock, options=configuration.options(namespace), metrics=metrics)
    reader = CacheReader()
    if plugins is None:
        plugins = load_plugins(bundled_plugins(BUILT_IN), configuration.plugins)
    pipeline = Pipeline(make_registry(plugins, reader), cluster_domain=configuration.cluster_domain)
    controller = TrainJobController(
        manager,
        pipeline,
        reader,
        namespace=configuration.namespace,
        max_concurrent_reconciles=configuration.max_concurrent_reconciles,
    )
    if configuration.progress.enabled:
        ProgressController(manager, configuration.progress, namespace=configuration.namespace)
    if configuration.webhook.enabled:
        runtimes = LiveRuntimes(controller.runtimes, manager.api_reader)
        configuration.webhook.serve(manager, Admission(pipeline, runtimes), namespace)
    return manager


async def run_manager(
    client: Client,
    configuration: ManagerConfiguration,
    *,
    namespace: str = "default",
    metrics: Metrics | None = None,
) -> None:
    """Run the controller manager until cancelled; arguments as for `build_manager`, with all installed plugins.

    Raises:
        ConfigurationError: the configuration names unknown plugins, or a plugin cannot be imported, made or used.
        CacheSyncError: the API server does not serve our kinds or JobSets in time; the message names the remedy.
        LeadershipLostError: another manager may be working.
        ShutdownError: reconciles did not end within the grace period.
        OSError: the address of the health endpoint or the webhooks is in use.
    """
    plugins = await run_sync(enabled_plugins, configuration.plugins)
    if configuration.webhook.enabled:
        await run_sync(Admission.prepare)
    log.info("loaded plugins", plugins=[str(plugin.plugin) for plugin in plugins])
    await build_manager(client, configuration, plugins=plugins, namespace=namespace, metrics=metrics).run()
