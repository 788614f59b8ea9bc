"""The configuration of the manager: kind Configuration of config.trainer.kubeflow.org/v1alpha1, and its file."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Annotated, Final, Literal

from pydantic import Field

from trainer.api import patterns
from trainer.api.invalid_object import InvalidObjectError
from trainer.api.model import ApiModel, text
from trainer.configuration.devices import DeviceConfiguration
from trainer.configuration.feature_gates import TRAIN_JOB_PROGRESS, TRAIN_JOB_STATUS, FeatureGates
from trainer.configuration.sections import (
    CertManagementConfiguration,
    ClientConnectionConfiguration,
    ControllerConfiguration,
    ControllersConfiguration,
    GangScheduling,
    HealthConfiguration,
    LeaderElectionConfiguration,
    LoggingConfiguration,
    MetricsConfiguration,
    ProgressConfiguration,
    StatusServerConfiguration,
    TlsConfiguration,
    WebhookConfiguration,
)
from trainer.configuration.values import NOWHERE, host_and_port
from trainer.framework.plugin_api.devices import DeviceTable
from trainer.framework.plugin_api.plugin_context import Reader
from trainer.framework.startup.discovery import PluginsConfiguration
from trainer.kube.errors import ConfigurationError
from trainer.kube.field_errors import FieldError, invalid, not_supported, required
from trainer.kube.objects import Object
from trainer.kubernetes_yaml import YamlError, dump, parse
from trainer.progress.controller import ProgressOptions

API_VERSION: Final = "config.trainer.kubeflow.org/v1alpha1"
KIND: Final = "Configuration"
_TYPE: Final = {"apiVersion": API_VERSION, "kind": KIND}


class Configuration(ApiModel):
    """Settings of the controller manager; everything but apiVersion and kind has a default."""

    api_version: Literal["config.trainer.kubeflow.org/v1alpha1"] = API_VERSION
    """Always config.trainer.kubeflow.org/v1alpha1, as for Kubeflow Trainer (Go), whose files are accepted."""
    kind: Literal["Configuration"] = KIND
    """Always Configuration."""
    webhook: WebhookConfiguration = Field(default_factory=WebhookConfiguration)
    """How invalid TrainJobs and runtimes are refused before they are stored."""
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
    controllers: ControllersConfiguration = Field(default_factory=ControllersConfiguration)
    """Which controllers there are beside that of TrainJobs."""
    client_connection: ClientConnectionConfiguration = Field(default_factory=ClientConnectionConfiguration)
    """How many requests the API server gets."""
    tls: TlsConfiguration = Field(default_factory=TlsConfiguration)
    """TLS versions and cipher suites of the servers."""
    status_server: StatusServerConfiguration = Field(default_factory=StatusServerConfiguration)
    """How the progress is taken that pods post."""
    feature_gates: dict[str, bool] = Field(default_factory=dict)
    """Features that are switched on or off, by the name of the gate; --feature-gates of the command line takes
    precedence. Defaults to nothing: each gate has its own default."""
    progress: ProgressConfiguration = Field(default_factory=ProgressConfiguration)
    """How the progress of trainings is followed."""
    plugins: PluginsConfiguration = Field(default_factory=PluginsConfiguration)
    """Which plugins are used, and their settings."""
    gang_scheduling: GangScheduling = "none"
    """Gang scheduling of trainings whose runtime has no podGroupPolicy: `workload` (the Workload API of Kubernetes 1.36
    and later), `coscheduling`, `volcano`, `auto` (`workload` where the cluster has what it needs, else none) or `none`.
    Defaults to none: nothing has to be installed. A runtime whose pods name another scheduler is left alone. A TrainJob
    keeps what it was first built with."""
    gang_scheduler_name: Annotated[str, Field(json_schema_extra=text(pattern=patterns.OBJECT_NAME, longest=253))] = ""
    """Scheduler of the pods to which gangScheduling applies and whose runtime names none. Defaults to "": the usual one
    of the gang scheduler, such as `volcano`."""
    devices: Annotated[list[DeviceConfiguration], Field(max_length=100)] = Field(default_factory=list)
    """Further names of devices, which come before the usual ones. Defaults to none: those of the common makers of
    devices are known."""
    logging: LoggingConfiguration = Field(default_factory=LoggingConfiguration)
    """What the manager writes to its log."""

    @property
    def gates(self) -> FeatureGates:
        """The feature gates."""
        return FeatureGates(self.feature_gates)

    @property
    def progress_options(self) -> ProgressOptions | None:
        """How logs are followed; None: not at all."""
        if not self.gates.enabled(TRAIN_JOB_PROGRESS):
            return None
        return self.progress.options(with_pushes=self.gates.enabled(TRAIN_JOB_STATUS))

    def device_table(self, reader: Reader) -> DeviceTable:
        """Says which resources and claims are devices; the reader has the ResourceClaimTemplates."""
        return DeviceTable((each.kind for each in self.devices), reader)

    @property
    def ignored(self) -> list[str]:
        """Paths of settings of Kubeflow Trainer (Go) that have no effect here."""
        return self.controller.ignored

    def without_servers(self) -> Configuration:
        """A copy for a manager that listens nowhere: no webhooks, no metrics, no probes, no posts of progress."""
        return self.model_copy(
            update={
                "feature_gates": self.feature_gates | {TRAIN_JOB_STATUS.name: False},
                "webhook": self.webhook.model_copy(update={"enabled": False}),
                "metrics": self.metrics.model_copy(update={"bind_address": NOWHERE}),
                "health": self.health.model_copy(update={"health_probe_bind_address": NOWHERE}),
            }
        )

    def effective(self) -> Configuration:
        """A copy that names every feature gate."""
        return self.model_copy(update={"feature_gates": self.gates.effective()})

    def semantic_errors(self) -> Iterator[FieldError]:
        """See `ApiModel.semantic_errors`."""
        yield from self.webhook.errors()
        yield from self.leader_election.errors()
        yield from self.metrics.errors()
        yield from self.controller.errors()
        yield from self.client_connection.errors()
        yield from self.tls.errors()
        for index, device in enumerate(self.devices):
            yield from device.errors(f"devices[{index}]")
        yield from self.gates.errors("featureGates")
        if self.gang_scheduler_name and self.gang_scheduling == "none":
            rule = "has no effect where gangScheduling is none; set that too, or leave this out"
            yield invalid("gangSchedulerName", self.gang_scheduler_name, rule)
        yield from self._shared_ports()

    def _shared_ports(self) -> Iterator[FieldError]:
        """Servers that would listen on the same address and port."""
        taken: list[tuple[str, str, int]] = []
        for path, value, (host, port) in self._addresses():
            for other, other_host, other_port in taken:
                if port == other_port != 0 and (host == other_host or "" in {host, other_host}):
                    yield invalid(path, value, f"is where the server of {other} listens: choose another port")
            taken.append((path, host, port))

    def _addresses(self) -> Iterator[tuple[str, object, tuple[str, int]]]:
        """Field, its value, host and port of each server."""
        if self.webhook.enabled:
            yield "webhook.port", self.webhook.port, (self.webhook.host, self.webhook.port)
        if self.gates.enabled(TRAIN_JOB_STATUS):
            yield "statusServer.port", self.status_server.port, (self.status_server.host, self.status_server.port)
        for path, address in (
            ("metrics.bindAddress", self.metrics.bind_address),
            ("health.healthProbeBindAddress", self.health.health_probe_bind_address),
        ):
            if (place := host_and_port(address)) is not None:
                yield path, address, place


def load_configuration(file: Path | None = None, feature_gates: Mapping[str, bool] | None = None) -> Configuration:
    """Read the configuration of a manager; feature gates of the command line take precedence over those of the file.

    Raises:
        ConfigurationError: the file cannot be read, or has unknown or wrong fields; one line names all of them.
    """
    origin = f"{file}: " if file is not None else ""
    document = dict(_TYPE) if file is None else _read(file)
    _refuse(origin, _type_errors(document))
    if feature_gates:
        _refuse("", FeatureGates(feature_gates).errors("--feature-gates"))
        present = document.get("featureGates") or {}
        if isinstance(present, dict):  # else it is refused below
            document = document | {"featureGates": {**present, **feature_gates}}
    try:
        return Configuration.from_object(document, strict=True)
    except InvalidObjectError as error:
        raise ConfigurationError(f"{origin}{'; '.join(map(str, error.errors))}") from error


def render_configuration(configuration: Configuration) -> str:
    """The YAML of a configuration with all defaults, which `load_configuration` reads."""
    return dump(configuration.effective().to_object())


def _read(file: Path) -> Object:
    try:
        documents = list(parse(file.read_text(encoding="utf-8")))
    except YamlError as error:
        place = f", {error.where}" if error.where else ""
        raise ConfigurationError(f"{file}{place}: {error}") from error
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigurationError(f"cannot read {file}: {' '.join(str(error).split())}") from error
    written = [document for document in documents if document is not None]
    if len(written) > 1:
        raise ConfigurationError(f"{file}: must be one document, not {len(written)}")
    document = written[0] if written else {}
    if not isinstance(document, dict):
        raise ConfigurationError(f"{file}: must be a mapping of settings, not {type(document).__name__}")
    return document


def _type_errors(document: Object) -> Iterator[FieldError]:
    """A wrong kind or version, of whose file nothing else is checked."""
    for name, value in _TYPE.items():
        if document.get(name) is None:
            yield required(name, f"add {name}: {value}")
        elif document[name] != value:
            yield not_supported(name, document[name], [value])


def _refuse(origin: str, errors: Iterable[FieldError]) -> None:
    found = list(errors)
    if found:
        raise ConfigurationError(f"{origin}{'; '.join(map(str, found))}")
