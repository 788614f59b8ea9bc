"""The composition root of the controller manager: constructs all parts by the configuration, and runs them."""

from __future__ import annotations

import os
import platform
from collections.abc import Iterable, Mapping
from functools import partial
from pathlib import Path

from anyio.to_thread import run_sync
from prometheus_client import CollectorRegistry, Gauge

from trainer import __version__
from trainer.api.trainjob import TRAIN_JOBS
from trainer.components import ComponentContext, Registration, Webhooks, installed_components
from trainer.configuration.configuration import Configuration
from trainer.configuration.feature_gates import TRAIN_JOB_STATUS
from trainer.configuration.own_image import with_own_image
from trainer.configuration.values import host_and_port
from trainer.controllers.trainjob import TrainJobController
from trainer.framework import PluginFactory
from trainer.framework.building.profile import Profile
from trainer.framework.deploying.transforms import NAMESPACE_LIMITS, TRANSFORMS
from trainer.framework.pipeline import Pipeline
from trainer.framework.plugin_api.extension_points import Plugin
from trainer.framework.plugin_api.plugin_context import CacheReader, PluginContext, Reader
from trainer.framework.runtimes.default_gang import NO_GANG, DefaultGang
from trainer.framework.startup.discovery import (
    AvailablePlugin,
    EnabledPlugin,
    PluginsConfiguration,
    available_plugins,
    bundled_plugins,
    load_plugins,
    make_registry,
)
from trainer.framework.startup.dry_runs import DryRuns
from trainer.framework.startup.registry import Registry
from trainer.kube.client import Client
from trainer.kube.clock import Clock, SystemClock
from trainer.kube.election.leader_election import default_identity
from trainer.kube.errors import ConfigurationError
from trainer.kube.logger import get_logger
from trainer.kube.manager.manager import Manager, ManagerOptions
from trainer.kube.manager.metrics_server import MetricsServer, MetricsServerOptions
from trainer.kube.manager.runnable_group import Run
from trainer.kube.manager.supervisor import Group
from trainer.kube.metrics import Metrics
from trainer.kube.objects import ObjectKey
from trainer.kube.serving.certificates import CaBundle, CertificateSource, FileCertificates
from trainer.kube.serving.rotation import CertificateRotator, service_names
from trainer.kube.webhook.ca_injection import CaInjector
from trainer.kube.webhook.server import WebhookServer, WebhookServerOptions
from trainer.plugins import BUILT_IN
from trainer.plugins.status_server import StatusServerAccess
from trainer.plugins.workload import Workload, is_offered
from trainer.progress.controller import ProgressController
from trainer.progress.status_server import StatusServer
from trainer.v1alpha1.admission import V1Alpha1Admission
from trainer.v1alpha1.discovery import V2ALPHA1, Served, Version
from trainer.v1alpha1.finalizer import register_finalizer_removal
from trainer.v1alpha1.plugins import PLUGINS
from trainer.v1alpha1.policies import priority_classes_of
from trainer.v1alpha1.profile import V1ALPHA1_PROFILE
from trainer.v1alpha1.take_over import TakeOver
from trainer.webhooks.handlers import AdmissionHandlers
from trainer.webhooks.live_runtimes import LiveRuntimes

log = get_logger(__name__)


class BuildInfoSeries:
    """The gauge `trainer_build_info`, for joins: does something change with a release?"""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._info = Gauge(
            "trainer_build_info",
            "Always 1; the labels say which version of the manager runs, with which Python, and with which version of "
            "the TrainJob API.",
            ["version", "python_version", "api_version"],
            registry=registry,
        )

    def show(self, api_version: str) -> None:
        """Expose the gauge; `api_version` is that of TrainJobs in the cluster."""
        self._info.labels(__version__, platform.python_version(), api_version).set(1)


def profile_of(version: Version) -> Profile:
    """The profile of an API version."""
    return V1ALPHA1_PROFILE if version == "v1alpha1" else Profile()


def built_in_plugins(reader: Reader, version: Version = "v2alpha1") -> Registry:
    """The plugins that come with this package."""
    return make_registry(load_plugins(bundled_plugins(_built_in(version)), PluginsConfiguration()), reader)


def enabled_plugins(configuration: PluginsConfiguration, version: Version = "v2alpha1") -> list[EnabledPlugin]:
    """The enabled plugins of this package and of all installed ones; reads files."""
    return load_plugins(available_plugins(_built_in(version)), configuration)


def _built_in(version: Version) -> Mapping[str, PluginFactory]:
    return PLUGINS if version == "v1alpha1" else BUILT_IN


def default_gang(configuration: Configuration, reader: Reader) -> DefaultGang:
    """What gangScheduling gives runtimes without podGroupPolicy; the reader knows what the cluster serves."""
    setting, scheduler = configuration.gang_scheduling, configuration.gang_scheduler_name
    match setting:
        case "none":
            return NO_GANG
        case "auto":
            return DefaultGang(lambda: Workload.name if is_offered(reader) else "", scheduler)
        case _:
            return DefaultGang(lambda: setting, scheduler)


def build_manager(
    client: Client,
    configuration: Configuration,
    *,
    served: Served = V2ALPHA1,
    plugins: Iterable[EnabledPlugin] | None = None,
    components: Iterable[Registration] = (),
    namespace: str = "default",
    clock: Clock | None = None,
    metrics: Metrics | None = None,
) -> Manager:
    """A manager with all controllers registered, ready to run.

    Without `plugins` it has the enabled ones of this package. `components` are registered after all of our own, by
    default none. `namespace` is its own, for lease and certificates if the
    configuration names no other; `metrics` are those of the client, so that one endpoint exposes both.
    """
    manager = Manager(client, clock=clock, options=_options(configuration, namespace), metrics=metrics)
    manager.metrics.series(BuildInfoSeries).show(served.version)
    reader = CacheReader()
    if plugins is None:
        plugins = load_plugins(bundled_plugins(_built_in(served.version)), configuration.plugins)
    settings = configuration.controller
    only_namespace = settings.namespace or None
    certificates = certificates_of(manager, configuration, namespace)
    authority: CaBundle | None = None
    if configuration.gates.enabled(TRAIN_JOB_STATUS):
        assert certificates is not None
        authority = certificates.ca
        options = configuration.status_server.options(configuration.tls.options())
        StatusServer(manager, certificates, options, namespace=only_namespace)
        plugins = [*plugins, _status_server_access(configuration, namespace, authority)]
    pipeline = Pipeline(
        make_registry(plugins, reader),
        profile=profile_of(served.version),
        cluster_domain=settings.cluster_domain or None,
        devices=configuration.device_table(reader),
        gang=default_gang(configuration, reader),
        metrics=manager.metrics,
    )
    dry_runs = DryRuns(client, reader.refusals, only_namespace or namespace, manager.clock)
    manager.add(dry_runs.run, name="dry runs", group=Group.OTHERS, started=dry_runs.wait_for_sync)
    _check_gang_scheduling(configuration, pipeline)
    controller = TrainJobController(
        manager,
        pipeline,
        reader,
        namespace=only_namespace,
        max_concurrent_reconciles=settings.train_job_concurrency,
        keeps_digest=served.is_extended,
        take_over=TakeOver(manager.client, reader) if served.version == "v1alpha1" else None,
        dry_runs=dry_runs,
    )
    if authority is not None:
        manager.add(partial(_follow_authority, authority, controller), name="authority of the status server")
    if (progress := configuration.progress_options) is not None:
        ProgressController(manager, progress, namespace=only_namespace)
    live = LiveRuntimes(controller.runtimes, manager.api_reader, pipeline.gang)
    if served.version == "v1alpha1":
        register_finalizer_removal(manager, only_namespace)
    webhooks = Webhooks()
    webhooks.add(
        _admission(manager, served.version, pipeline, live),
        validating=configuration.webhook.validating_webhook_configuration_name,
        mutating=configuration.webhook.mutating_webhook_configuration_name,
    )
    context = ComponentContext(configuration, served.version, pipeline)
    for register in components:
        register(manager, webhooks, context)
    add_servers(manager, configuration, webhooks, certificates)
    return manager


def _admission(manager: Manager, version: Version, pipeline: Pipeline, live: LiveRuntimes) -> AdmissionHandlers:
    if version != "v1alpha1":
        return AdmissionHandlers(pipeline, live, metrics=manager.metrics)
    has_priority_class = priority_classes_of(manager.api_reader)
    return V1Alpha1Admission(
        pipeline, live, manager.clock, metrics=manager.metrics, has_priority_class=has_priority_class
    )


async def run_manager(
    client: Client,
    configuration: Configuration,
    *,
    served: Served = V2ALPHA1,
    version_watch: Run | None = None,
    namespace: str = "default",
    metrics: Metrics | None = None,
) -> None:
    """Run the controller manager until cancelled; arguments as for `build_manager`, with all that is installed.

    Raises:
        ServedVersionChangedError: of `version_watch`; a new process works with what is served now.
        ConfigurationError: the configuration names unknown plugins, or a plugin cannot be imported, made or used; a
            component is missing or cannot be imported; an address is in use; there is no certificate in time.
        CacheSyncError: the API server does not serve our kinds or JobSets in time; the message names the remedy.
        LeadershipLostError: another manager may be working.
        ShutdownError: reconciles did not end within the grace period.
    """
    own_pod = ObjectKey(namespace, os.environ.get("POD_NAME", ""))
    with_image = await with_own_image(client, configuration.plugins, own_pod, SystemClock())
    plugins = await run_sync(enabled_plugins, with_image, served.version)
    components = await run_sync(installed_components, configuration)
    if configuration.webhook.enabled:
        await run_sync(AdmissionHandlers.prepare)
    log.info("loaded plugins", plugins=[str(plugin.plugin) for plugin in plugins])
    if configuration.ignored:
        log.warning("ignored settings that have no effect here", settings=configuration.ignored)
    log.info("works with", api_version=f"{TRAIN_JOBS.group}/{served.version}")
    manager = build_manager(
        client,
        configuration,
        served=served,
        plugins=plugins,
        components=components,
        namespace=namespace,
        metrics=metrics,
    )
    if version_watch is not None:
        manager.add(version_watch, name="version watch", group=Group.HTTP_SERVERS)
    await manager.run()


def _options(configuration: Configuration, namespace: str) -> ManagerOptions:
    settings = configuration.controller
    return ManagerOptions(
        cache_sync_timeout=settings.cache_sync_timeout.total_seconds(),
        graceful_shutdown_timeout=settings.graceful_shutdown_timeout.total_seconds(),
        health_bind=host_and_port(configuration.health.health_probe_bind_address),
        leader_election=configuration.leader_election.options(
            namespace, default_identity(os.environ.get("POD_UID", ""), os.getpid())
        ),
        transforms=TRANSFORMS,
        namespace_limits=NAMESPACE_LIMITS,
    )


def _check_gang_scheduling(configuration: Configuration, pipeline: Pipeline) -> None:
    setting = configuration.gang_scheduling
    if setting not in {"none", "auto"} and setting not in pipeline.pod_group_policy_sources:
        problem = f"no plugin serves podGroupPolicy.{setting}: enable the plugin {setting}, or change the setting"
        raise ConfigurationError(f"gangScheduling: {problem}")


_REMEDY = (
    "apply config/webhook, which grants get and update on it, or set webhook.enabled: false in the configuration, and "
    "not the gate TrainJobStatus"
)


async def _follow_authority(authority: CaBundle, controller: TrainJobController) -> None:
    """Give pods that run the new certificates, by which they verify the status server."""
    pem = authority.pem
    while True:
        pem = await authority.other_than(pem)
        await controller.requeue_unfinished()


def _status_server_access(configuration: Configuration, namespace: str, authority: CaBundle) -> EnabledPlugin:
    """The plugin that gives pods what they need to post their progress."""
    settings, management = configuration.status_server, configuration.cert_management
    host = f"{management.webhook_service_name}.{management.namespace or namespace}.svc"
    url = settings.url or f"https://{host}:{settings.port}"

    def make(context: PluginContext) -> Plugin:
        return StatusServerAccess(context.reader, url, lambda: authority.pem)

    return EnabledPlugin(AvailablePlugin(StatusServerAccess.name, lambda: make), make, {})


def certificates_of(
    manager: Manager, configuration: Configuration, namespace: str
) -> FileCertificates | CertificateRotator | None:
    """The source of the certificate of all servers.

    None without webhooks, status server and files: then no CA bundle is injected, and that of the metrics server is
    generated in memory.
    """
    management = configuration.cert_management
    if not management.enable:
        directory = Path(management.certificate_directory)
        return FileCertificates(directory, clock=manager.clock, metrics=manager.metrics)
    if not (configuration.webhook.enabled or configuration.gates.enabled(TRAIN_JOB_STATUS)):
        return None
    namespace = management.namespace or namespace
    return CertificateRotator(
        manager.api_reader,
        ObjectKey(namespace, management.webhook_secret_name),
        dns_names=[*service_names(management.webhook_service_name, namespace), *configuration.webhook.hosts],
        clock=manager.clock,
        remedy=_REMEDY,
    )


def add_servers(
    manager: Manager,
    configuration: Configuration,
    webhooks: Webhooks,
    certificates: FileCertificates | CertificateRotator | None,
) -> tuple[WebhookServer | None, MetricsServer | None]:
    """Add the servers of webhooks and metrics that are enabled."""
    metrics = _metrics_server(manager, configuration, certificates)
    if not configuration.webhook.enabled:
        return None, metrics
    assert certificates is not None
    server = _webhook_server(manager, configuration, certificates)
    webhooks.register(server)
    if isinstance(certificates, CertificateRotator):
        CaInjector(manager, certificates, validating=webhooks.validating, mutating=webhooks.mutating)
    return server, metrics


def _webhook_server(
    manager: Manager, configuration: Configuration, certificates: FileCertificates | CertificateRotator
) -> WebhookServer:
    webhook = configuration.webhook
    options = WebhookServerOptions(
        host=webhook.host,
        port=webhook.port,
        tls=configuration.tls.options(),
        client_ca=Path(webhook.client_ca_file) if webhook.client_ca_file else None,
        client_names=frozenset(webhook.client_names),
    )
    return WebhookServer(manager, certificates=certificates, options=options)


def _metrics_server(
    manager: Manager, configuration: Configuration, certificates: CertificateSource | None
) -> MetricsServer | None:
    settings = configuration.metrics
    address = host_and_port(settings.bind_address)
    if address is None:
        return None
    host, port = address
    options = MetricsServerOptions(
        host=host,
        port=port,
        secure=settings.secure_serving,
        authorize=settings.auth.enabled,
        tls=configuration.tls.options(),
    )
    return MetricsServer(manager, options, certificates=certificates)
