"""The configuration of the manager as a whole."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal

from pydantic import Field

from trainer.api.model import ApiModel
from trainer.configuration.bind_address import NOWHERE, host_and_port
from trainer.configuration.cert_management import CertManagementConfiguration
from trainer.configuration.client_connection import ClientConnectionConfiguration
from trainer.configuration.controller import ControllerConfiguration
from trainer.configuration.feature_gates import PROGRESS_HISTORY, TRAIN_JOB_PROGRESS, FeatureGates
from trainer.configuration.health import HealthConfiguration
from trainer.configuration.leader_election import LeaderElectionConfiguration
from trainer.configuration.logging import LoggingConfiguration
from trainer.configuration.metrics import MetricsConfiguration
from trainer.configuration.progress import ProgressConfiguration
from trainer.configuration.status_server import StatusServerConfiguration
from trainer.configuration.tls import TlsConfiguration
from trainer.configuration.webhook import WebhookConfiguration
from trainer.framework.startup.plugins_configuration import PluginsConfiguration
from trainer.kube.field_errors import invalid

if TYPE_CHECKING:
    from collections.abc import Iterator

    from trainer.kube.field_errors import FieldError
    from trainer.progress.options import ProgressOptions

API_VERSION: Final = "config.trainer.kubeflow.org/v1alpha1"
KIND: Final = "Configuration"


class Configuration(ApiModel):
    """What the controller manager can be told; everything but apiVersion and kind has a default."""

    api_version: Literal["config.trainer.kubeflow.org/v1alpha1"] = API_VERSION
    """Always config.trainer.kubeflow.org/v1alpha1, as for the released manager, whose files are understood."""
    kind: Literal["Configuration"] = KIND
    """Always Configuration."""
    webhook: WebhookConfiguration = Field(default_factory=WebhookConfiguration)
    """How wrong TrainJobs and runtimes are refused before they are stored."""
    cert_management: CertManagementConfiguration = Field(default_factory=CertManagementConfiguration)
    """Who makes the certificates of the servers."""
    leader_election: LeaderElectionConfiguration = Field(default_factory=LeaderElectionConfiguration)
    """How managers of the same cluster agree which of them works."""
    metrics: MetricsConfiguration = Field(default_factory=MetricsConfiguration)
    """How the metrics are served."""
    health: HealthConfiguration = Field(default_factory=HealthConfiguration)
    """How the probes of the kubelet are answered."""
    controller: ControllerConfiguration = Field(default_factory=ControllerConfiguration)
    """How the controllers work."""
    client_connection: ClientConnectionConfiguration = Field(default_factory=ClientConnectionConfiguration)
    """How hard the API server is asked."""
    tls: TlsConfiguration = Field(default_factory=TlsConfiguration)
    """What TLS of the servers is."""
    status_server: StatusServerConfiguration = Field(default_factory=StatusServerConfiguration)
    """Has no effect; for files of the released manager."""
    feature_gates: dict[str, bool] = Field(default_factory=dict)
    """What is switched on or off, by the name of its gate; --feature-gates of the command line goes before. Defaults
    to nothing: each gate has its own default."""
    progress: ProgressConfiguration = Field(default_factory=ProgressConfiguration)
    """How the progress of trainings is followed."""
    plugins: PluginsConfiguration = Field(default_factory=PluginsConfiguration)
    """Which plugins are used, and what they are told."""
    logging: LoggingConfiguration = Field(default_factory=LoggingConfiguration)
    """What the manager writes to its log."""

    @property
    def gates(self) -> FeatureGates:
        """What is switched on."""
        return FeatureGates(self.feature_gates)

    @property
    def progress_options(self) -> ProgressOptions | None:
        """How logs are followed; None: not at all."""
        if not self.gates.enabled(TRAIN_JOB_PROGRESS):
            return None
        return self.progress.options(serve_history=self.gates.enabled(PROGRESS_HISTORY))

    def without_servers(self) -> Configuration:
        """The same for a manager that listens nowhere: no webhooks, no metrics, no probes."""
        return self.model_copy(
            update={
                "webhook": self.webhook.model_copy(update={"enabled": False}),
                "metrics": self.metrics.model_copy(update={"bind_address": NOWHERE}),
                "health": self.health.model_copy(update={"health_probe_bind_address": NOWHERE}),
            }
        )

    def effective(self) -> Configuration:
        """The same, with every feature gate named."""
        return self.model_copy(update={"feature_gates": self.gates.effective()})

    def semantic_errors(self) -> Iterator[FieldError]:
        """See `ApiModel.semantic_errors`."""
        yield from self.webhook.errors("webhook")
        yield from self.leader_election.errors("leaderElection")
        yield from self.metrics.errors("metrics")
        yield from self.controller.errors("controller")
        yield from self.client_connection.errors("clientConnection")
        yield from self.tls.errors("tls")
        yield from self.gates.errors("featureGates")
        yield from self.gates.conflicts("featureGates")
        if self.gates.enabled(PROGRESS_HISTORY) and self.metrics.bind_address == NOWHERE:
            detail = "is served by the metrics server: set metrics.bindAddress, or switch this off"
            yield invalid(f"featureGates[{PROGRESS_HISTORY.name}]", value=True, detail=detail)
        yield from self._shared_ports()

    def _shared_ports(self) -> Iterator[FieldError]:
        """Two servers cannot listen at one place."""
        taken: list[tuple[str, str, int]] = []
        for path, value, place in self._places():
            host, port = place
            for other, other_host, other_port in taken:
                if port == other_port != 0 and (host == other_host or "" in {host, other_host}):
                    yield invalid(path, value, f"is where the server of {other} listens: choose another port")
            taken.append((path, host, port))

    def _places(self) -> Iterator[tuple[str, object, tuple[str, int]]]:
        """Where the servers listen: field, its value, host and port."""
        if self.webhook.enabled:
            yield "webhook.port", self.webhook.port, (self.webhook.host, self.webhook.port)
        for path, address in (
            ("metrics.bindAddress", self.metrics.bind_address),
            ("health.healthProbeBindAddress", self.health.health_probe_bind_address),
        ):
            place = host_and_port(address)
            if place is not None:
                yield path, address, place
