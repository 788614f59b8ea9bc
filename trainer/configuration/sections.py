"""The sections of the configuration file; their attribute docstrings are its reference."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import Annotated, Final, Literal, TypeAlias

from pydantic import AfterValidator, Field

from trainer.api import patterns
from trainer.api.model import ApiModel, text
from trainer.api.trainingruntime import CLUSTER_TRAINING_RUNTIMES, TRAINING_RUNTIMES
from trainer.api.trainjob import TRAIN_JOBS
from trainer.configuration.values import (
    NOWHERE,
    BindAddress,
    Duration,
    Name,
    Namespace,
    ObjectName,
    Port,
    PositiveDuration,
    format_duration,
    limits,
)
from trainer.kube.election.leader_election import JITTER, LeaderElectionOptions
from trainer.kube.field_errors import FieldError, forbidden, invalid, not_supported
from trainer.kube.serving.tls import CIPHER_SUITES, TlsOptions
from trainer.progress.controller import ProgressOptions
from trainer.progress.status_server import StatusServerOptions

_SECOND: Final = timedelta(seconds=1)


GangScheduling: TypeAlias = Literal["none", "auto", "workload", "coscheduling", "volcano"]
"""Values of `Configuration.gang_scheduling`."""


class WebhookConfiguration(ApiModel):
    """Admission webhooks for TrainJobs and runtimes; every replica serves them, whether it leads or not."""

    enabled: bool = True
    """Whether webhooks are served. Defaults to true: mistakes are refused where they are made. Without them a TrainJob
    with mistakes is stored, and its conditions report them."""
    port: Port = 9443
    """Port to listen on. Defaults to 9443, as for all webhooks made with controller-runtime."""
    host: str = ""
    """Address to listen on. Defaults to "", all addresses, since the API server connects from elsewhere."""
    hosts: list[Name] = Field(default_factory=list)
    """Further DNS names and IP addresses in the certificate that the manager makes: those in the URLs of webhook
    configurations that name no Service, and those by which metrics are scraped. Defaults to none."""
    client_ca_file: Annotated[str, Field(alias="clientCAFile")] = ""
    """PEM file with certificate authorities: only clients with a certificate of one of them may send requests. It is
    read again when it changes. Defaults to "", every client that reaches the port, since an API server shows a
    certificate only if it is configured to; see the guide to operation."""
    client_names: list[Name] = Field(default_factory=list)
    """Common names, one of which the certificate of a client must have; for authorities that also sign others. Defaults
    to none: every certificate of clientCAFile is accepted."""
    validating_webhook_configuration_name: ObjectName = "validator.trainer.kubeflow.org"
    """ValidatingWebhookConfiguration whose caBundle the manager writes. Defaults to validator.trainer.kubeflow.org, as
    in the manifests."""
    mutating_webhook_configuration_name: ObjectName = "defaulter.trainer.kubeflow.org"
    """MutatingWebhookConfiguration whose caBundle the manager writes. Defaults to defaulter.trainer.kubeflow.org, as in
    the manifests."""

    def errors(self) -> Iterator[FieldError]:
        """Fields that contradict each other."""
        if self.client_names and not self.client_ca_file:
            yield forbidden("webhook.clientNames", "clients show no certificate without clientCAFile: set it")


class CertManagementConfiguration(ApiModel):
    """The certificate of the servers of webhooks, metrics and status."""

    enable: bool = True
    """Whether the manager is its own authority: it makes and renews the certificates, keeps them in a Secret for all
    replicas, and writes the caBundle of the webhook configurations. Defaults to true: nothing else has to be installed.
    When false, something else does all that, such as cert-manager, and the files are in certificateDirectory."""
    certificate_directory: Name = "/tmp/k8s-webhook-server/serving-certs"  # noqa: S108 - where Kubernetes mounts them
    """Directory with tls.crt and tls.key if enable is false, such as a mounted Secret; it is read again when it
    changes. Defaults to /tmp/k8s-webhook-server/serving-certs, as in controller-runtime."""
    webhook_service_name: ObjectName = "trainer-webhook"
    """Service by which the API server finds the webhooks, and pods the status server; its names are in the certificate.
    Defaults to trainer-webhook, as in the manifests."""
    webhook_secret_name: ObjectName = "trainer-webhook-certificates"  # noqa: S105 - the name of one
    """Secret in which the authority and the certificate are kept. Defaults to trainer-webhook-certificates, which the
    manifests let the manager read and write."""
    namespace: Namespace = ""
    """Namespace of Secret and Service. Defaults to "": that of the service account, or of the kubeconfig's context."""


def _whole_seconds(value: timedelta) -> timedelta:
    if value % _SECOND:
        raise ValueError("must be whole seconds: a Lease cannot hold fractions")
    return value


LeaseDuration = Annotated[Duration, limits(_SECOND, (2**31 - 1) * _SECOND), AfterValidator(_whole_seconds)]


class LeaderElectionConfiguration(ApiModel):
    """How managers of the same cluster agree which of them works; field names are those of Kubernetes' components.

    All replicas should have the same settings. Each one measures the times by its own clock.
    """

    leader_elect: bool = False
    """Whether this manager works only while it holds the lease. Defaults to false, for the only manager of a laptop;
    the manifests that install a Deployment set it to true."""
    resource_name: ObjectName = "trainer.kubeflow.org"
    """Name of the Lease. Defaults to trainer.kubeflow.org, so that two controllers of the same objects never both work
    in one namespace, whatever their Deployments are called."""
    resource_namespace: Namespace = ""
    """Namespace of the Lease. Defaults to "": that of the service account, or of the kubeconfig's context."""
    resource_lock: Literal["leases", ""] = "leases"
    """Kind of the lock object. Defaults to leases, the only kind; "" means the same."""
    lease_duration: LeaseDuration = timedelta(seconds=15)
    """How long the other managers wait after the last renewal of the lease; whole seconds. Defaults to 15s, as in
    Kubernetes' components."""
    renew_deadline: PositiveDuration = timedelta(seconds=10)
    """A manager that could not renew the lease for this long exits; less than leaseDuration. Defaults to 10s, which
    leaves it 5s to end."""
    retry_period: PositiveDuration = timedelta(seconds=2)
    """How often the lease is renewed; less than renewDeadline divided by 1.2. Defaults to 2s, as in Kubernetes'
    components."""

    def errors(self) -> Iterator[FieldError]:
        """Times with which a leader could not renew the lease before it expires."""
        if self.renew_deadline >= self.lease_duration:
            detail = f"must be less than leaseDuration ({format_duration(self.lease_duration)})"
            yield invalid("leaderElection.renewDeadline", format_duration(self.renew_deadline), detail)
        if self.retry_period * JITTER >= self.renew_deadline:
            detail = f"must be less than renewDeadline ({format_duration(self.renew_deadline)}) divided by {JITTER}"
            yield invalid("leaderElection.retryPeriod", format_duration(self.retry_period), detail)

    def options(self, namespace: str, identity: str = "") -> LeaderElectionOptions | None:
        """The options of `trainer.kube`; None without an election. `namespace` is the default for the lease."""
        if not self.leader_elect:
            return None
        return LeaderElectionOptions(
            name=self.resource_name,
            namespace=self.resource_namespace or namespace,
            identity=identity,
            lease_duration=self.lease_duration // _SECOND,
            renew_deadline=self.renew_deadline.total_seconds(),
            retry_period=self.retry_period.total_seconds(),
        )


class MetricsAuthConfiguration(ApiModel):
    """Who may read the metrics."""

    enabled: bool = True
    """Whether the manager asks the API server who a caller is (TokenReview) and whether it may get the path
    (SubjectAccessReview). Defaults to true, unlike in Kubeflow Trainer (Go): metrics name namespaces and runtimes,
    which are not for everybody."""


class MetricsConfiguration(ApiModel):
    """The server of /metrics; every replica has one."""

    bind_address: BindAddress = ":8443"
    """`host:port` to listen on; all addresses when the host is empty, those of IPv6 in brackets, and "0" for no server
    at all. Defaults to :8443, as in the manifests."""
    secure_serving: bool = True
    """Whether it is HTTPS, with the certificate of the webhooks or, when they are off and certManagement is on, with
    one that the manager makes for itself. Defaults to true, since callers show their tokens."""
    auth: MetricsAuthConfiguration = Field(default_factory=MetricsAuthConfiguration)
    """Who may read the metrics. Defaults to those whom the API server allows to."""

    def errors(self) -> Iterator[FieldError]:
        """Fields that contradict each other."""
        if self.auth.enabled and not self.secure_serving and self.bind_address != NOWHERE:
            detail = "needs secureServing, or tokens would be sent unencrypted: set secureServing, or set this to false"
            yield invalid("metrics.auth.enabled", value=True, detail=detail)


class HealthConfiguration(ApiModel):
    """The server of /healthz and /readyz: plain HTTP for everybody, since a kubelet shows no token."""

    health_probe_bind_address: BindAddress = ":8081"
    """`host:port` to listen on; all addresses when the host is empty, those of IPv6 in brackets, and "0" for no server
    at all. Defaults to :8081, as in the manifests."""
    readiness_endpoint_name: Literal["readyz"] = "readyz"
    """Path of the readiness probe. Defaults to readyz, the only one."""
    liveness_endpoint_name: Literal["healthz"] = "healthz"
    """Path of the liveness probe. Defaults to healthz, the only one."""


_TRAIN_JOB: Final = f"{TRAIN_JOBS.kind}.{TRAIN_JOBS.group}"
_WITHOUT_CONTROLLER: Final = tuple(
    f"{each.kind}.{each.group}" for each in (CLUSTER_TRAINING_RUNTIMES, TRAINING_RUNTIMES)
)


class ControllerConfiguration(ApiModel):
    """How the controllers work."""

    group_kind_concurrency: Annotated[
        dict[str, Annotated[int, Field(ge=1, le=1000)]], AfterValidator(lambda value: {_TRAIN_JOB: 10} | value)
    ] = Field(default_factory=dict, validate_default=True)
    """How many objects of a kind are reconciled at the same time, by `<Kind>.<group>`. Defaults to 10 for
    TrainJob.trainer.kubeflow.org: reconciles mostly wait for the API server, and more of them do not make this process
    faster. TrainingRuntime and ClusterTrainingRuntime are accepted, as in files of Kubeflow Trainer (Go), and ignored
    with a line in the log: they have no controller here."""
    api_version: Literal["", "v1alpha1", "v2alpha1"] = ""
    """Version of TrainJobs and runtimes to work with; the manager does not start where the cluster does not serve it.
    Defaults to "", what the cluster serves: v2alpha1, or v1alpha1 where that is the only one."""
    namespace: Namespace = ""
    """The only namespace whose TrainJobs are reconciled. Defaults to "", all namespaces."""
    cluster_domain: Annotated[str, Field(json_schema_extra=text(pattern=patterns.OBJECT_NAME, longest=100))] = ""
    """Domain of the cluster, such as cluster.local: pods get each other's full DNS names. Defaults to "": short names
    resolve in any cluster, except for pods whose dnsPolicy gives them no search domains."""
    cache_sync_timeout: PositiveDuration = timedelta(minutes=2)
    """How long the first lists of all watched resources may take before the manager exits. Defaults to 2m, as in
    controller-runtime."""
    graceful_shutdown_timeout: Duration = timedelta(seconds=30)
    """How long running reconciles may take to end when the manager is stopped; 0s: no time, less: without limit.
    Defaults to 30s, as in controller-runtime; terminationGracePeriodSeconds of the pod must be longer."""

    @property
    def train_job_concurrency(self) -> int:
        """How many TrainJobs are reconciled at the same time."""
        return self.group_kind_concurrency[_TRAIN_JOB]

    @property
    def ignored(self) -> list[str]:
        """Paths of settings that have no effect."""
        kinds = [kind for kind in _WITHOUT_CONTROLLER if kind in self.group_kind_concurrency]
        return [f"controller.groupKindConcurrency[{kind}]" for kind in kinds]

    def errors(self) -> Iterator[FieldError]:
        """Unknown kinds."""
        known = (_TRAIN_JOB, *_WITHOUT_CONTROLLER)
        for name in self.group_kind_concurrency:
            if name not in known:
                yield not_supported("controller.groupKindConcurrency", name, known)


class V1JobsConfiguration(ApiModel):
    """PyTorchJobs and JAXJobs of kubeflow.org/v1, which become TrainJobs; config/v1 has what this needs."""

    enabled: bool = False
    """Whether they are served. Defaults to false: without config/v1 the manager may not even read them."""


class ControllersConfiguration(ApiModel):
    """Controllers that are switched on."""

    v1: V1JobsConfiguration = Field(default_factory=V1JobsConfiguration)
    """PyTorchJobs and JAXJobs of kubeflow.org/v1."""


class ClientConnectionConfiguration(ApiModel):
    """A limit on the requests of this manager."""

    qps: Annotated[float, Field(ge=0, allow_inf_nan=False)] = 0.0
    """Requests per second, in the long run; 0: no limit. Defaults to 0: the API server's priority and fairness limits
    requests better, and a limit here only makes people wait."""
    burst: Annotated[int, Field(ge=0, le=2**31 - 1)] = 0
    """Requests that may be sent at once before qps counts. Defaults to 0: twice qps, the proportion of client-go."""

    @property
    def limit(self) -> tuple[float, int | None] | None:
        """Requests per second and the burst, None for twice that; None: no limit."""
        return (self.qps, self.burst or None) if self.qps else None

    def errors(self) -> Iterator[FieldError]:
        """Fields that contradict each other."""
        if self.burst and not self.qps:
            detail = "has no effect without qps: set qps too, or leave burst out"
            yield invalid("clientConnection.burst", self.burst, detail)


_ALWAYS_OFFERED: Final = ("TLS_AES_128_GCM_SHA256", "TLS_AES_256_GCM_SHA384", "TLS_CHACHA20_POLY1305_SHA256")
"""Cipher suites of TLS 1.3."""


class TlsConfiguration(ApiModel):
    """TLS of the servers of webhooks, metrics and status."""

    min_version: Literal["1.2", "1.3"] = "1.2"
    """The oldest version that is accepted. Defaults to 1.2; older ones are broken, and OpenSSL has dropped them."""
    cipher_suites: list[Name] = Field(default_factory=list)
    """Cipher suites of TLS 1.2 that are offered, by the names that Go has for them, such as
    TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256; those that Go calls insecure are refused, and those of TLS 1.3 are always
    all offered, named or not. The certificates that the manager makes have ECDSA keys. Defaults to none, which means
    those that Python considers safe."""
    next_protos: list[Literal["http/1.1"]] = Field(default_factory=list)
    """Protocols that are offered (ALPN). Defaults to none, which means http/1.1, the only one: servers with so few
    requests gain nothing from HTTP/2."""

    def errors(self) -> Iterator[FieldError]:
        """Cipher suites that are unknown, or of no use."""
        for position, name in enumerate(self.cipher_suites):
            if name not in CIPHER_SUITES and name not in _ALWAYS_OFFERED:
                yield not_supported(f"tls.cipherSuites[{position}]", name, (*CIPHER_SUITES, *_ALWAYS_OFFERED))
        if self.min_version == "1.2" and self.cipher_suites and set(self.cipher_suites).issubset(_ALWAYS_OFFERED):
            detail = "names none of TLS 1.2: add some, or set minVersion to 1.3"
            yield invalid("tls.cipherSuites", self.cipher_suites, detail)

    def options(self) -> TlsOptions:
        """The options of `trainer.kube`."""
        chosen = tuple(name for name in self.cipher_suites if name in CIPHER_SUITES)
        return TlsOptions(min_version=self.min_version, cipher_suites=chosen)


class StatusServerConfiguration(ApiModel):
    """The server to which pods post their progress, while the gate TrainJobStatus is on; every replica has one."""

    port: Port = 10443
    """Port to listen on. Defaults to 10443, as in Kubeflow Trainer (Go)."""
    host: str = ""
    """Address to listen on. Defaults to "", all addresses, since pods connect from elsewhere."""
    qps: Annotated[float, Field(ge=0, allow_inf_nan=False)] = 5.0
    """How many statuses are written per second, in the long run; 0: no limit. Defaults to 5, as in the Go
    manager; a training posts each five seconds, so that this is enough for 25 of them."""
    burst: Annotated[int, Field(ge=0, le=2**31 - 1)] = 10
    """How many may be written at once before qps counts; 0: twice qps. Defaults to 10, as in Kubeflow Trainer (Go)."""
    url: Annotated[str, Field(json_schema_extra=text(pattern=r"^(https://[^/?#\s]+)?$", longest=300))] = ""
    """By what pods reach the server, such as https://trainer.example.com:10443; webhook.hosts must have the host.
    Defaults to "", the Service certManagement.webhookServiceName with this port."""

    def options(self, tls: TlsOptions) -> StatusServerOptions:
        """The options of `trainer.progress`."""
        limit = (self.qps, self.burst or max(1, round(2 * self.qps))) if self.qps else None
        return StatusServerOptions(host=self.host, port=self.port, limit=limit, tls=tls)


class ProgressConfiguration(ApiModel):
    """Progress and metrics of TrainJobs, read from logs (KEP-2779), while the gate TrainJobProgress is on."""

    status_interval: Annotated[Duration, limits(timedelta(), timedelta(hours=1))] = timedelta(seconds=5)
    """The least time between two writes of the status of one TrainJob; only the end of a run is written at once.
    Defaults to 5s: people read it, and a thousand TrainJobs make 200 requests a second of it."""
    read_interval: Annotated[Duration, limits(timedelta(), timedelta(minutes=1))] = timedelta(milliseconds=500)
    """How long a busy log is left alone before it is read again, so that many lines are read at once. 0s reads each
    line as it comes. Defaults to 500ms, with which a thousand busy logs wake the manager 2,000 times a second."""
    stall_timeout: PositiveDuration | None = None
    """How long a training that has reported progress may go on without more before people are warned. Defaults to no
    limit, since only its author knows how long a step takes; the annotation
    trainer.kubeflow.org/trainer-status-stall-seconds of a TrainJob takes precedence."""

    def options(self, *, with_pushes: bool) -> ProgressOptions:
        """The options of `trainer.progress`."""
        return ProgressOptions(
            status_interval=self.status_interval.total_seconds(),
            read_interval=self.read_interval.total_seconds(),
            stall_timeout=None if self.stall_timeout is None else self.stall_timeout.total_seconds(),
            with_pushes=with_pushes,
        )


class LoggingConfiguration(ApiModel):
    """The log of the manager, on standard error."""

    level: Literal["debug", "info", "warning", "error"] = "info"
    """The least severe events that are written. Defaults to info: changes, not every reconcile."""
    format: Literal["auto", "json", "text"] = "auto"
    """One JSON object per line, or text for people. Defaults to auto: text on a terminal, JSON elsewhere."""

    @property
    def as_json(self) -> bool | None:
        """Whether JSON is written; None: what fits standard error."""
        return {"auto": None, "json": True, "text": False}[self.format]
