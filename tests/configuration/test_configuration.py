"""The configuration file: what it means, what is refused, and how it is written."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import TypeGuard

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from tests.configuration.sections import sections
from tests.configurations import HEAD, write
from trainer.api.invalid_object import InvalidObjectError
from trainer.configuration.configuration import Configuration, load_configuration, render_configuration
from trainer.configuration.feature_gates import TRAIN_JOB_PROGRESS, TRAIN_JOB_STATUS
from trainer.configuration.values import host_and_port
from trainer.kube.election.leader_election import LeaderElectionOptions
from trainer.kube.errors import ConfigurationError
from trainer.kube.objects import Object
from trainer.kube.serving.tls import CIPHER_SUITES, TlsOptions
from trainer.kubernetes_yaml import parse
from trainer.progress.status_server import StatusServerOptions

SECOND = timedelta(seconds=1)
TLS_1_3 = ("TLS_AES_128_GCM_SHA256", "TLS_AES_256_GCM_SHA384", "TLS_CHACHA20_POLY1305_SHA256")

RELEASED = """\
apiVersion: config.trainer.kubeflow.org/v1alpha1
kind: Configuration
webhook:
  port: 9443
  host: ""
leaderElection:
  leaderElect: true
  resourceName: trainer.kubeflow.org
  resourceNamespace: ""
  leaseDuration: 15s
  renewDeadline: 10s
  retryPeriod: 2s
metrics:
  bindAddress: ":8443"
  secureServing: true
health:
  healthProbeBindAddress: ":8081"
  readinessEndpointName: readyz
  livenessEndpointName: healthz
controller:
  groupKindConcurrency:
    TrainJob.trainer.kubeflow.org: 5
    TrainingRuntime.trainer.kubeflow.org: 1
    ClusterTrainingRuntime.trainer.kubeflow.org: 1
certManagement:
  enable: true
  webhookServiceName: kubeflow-trainer-controller-manager
  webhookSecretName: kubeflow-trainer-webhook-cert
clientConnection:
  qps: 50
  burst: 100
statusServer:
  port: 10443
  qps: 5
  burst: 10
"""
"""Every setting that Kubeflow Trainer (Go) ships with."""


def test_defaults() -> None:
    """Without a file everything is on but the election, and nothing is throttled."""
    configuration = load_configuration()

    assert configuration == Configuration()
    assert configuration.webhook.enabled
    assert configuration.metrics.auth.enabled
    assert configuration.controller.train_job_concurrency == 10
    assert configuration.client_connection.limit is None
    assert configuration.leader_election.options("here") is None
    assert configuration.progress_options is not None


def test_file(tmp_path: Path) -> None:
    """What is absent has its default."""
    file = write(
        tmp_path / "manager.yaml", "controller: {namespace: team}\nhealth: {healthProbeBindAddress: '[::1]:81'}"
    )
    configuration = load_configuration(file)

    assert configuration.controller.namespace == "team"
    assert configuration.controller.cache_sync_timeout == 120 * SECOND
    assert host_and_port(configuration.health.health_probe_bind_address) == ("::1", 81)
    assert load_configuration(write(file, "")) == Configuration()


def test_a_file_of_the_released_manager(tmp_path: Path) -> None:
    """It is accepted as it is; what has no effect here is named."""
    file = tmp_path / "controller_manager_config.yaml"
    file.write_text(RELEASED)
    configuration = load_configuration(file)

    assert (configuration.webhook.host, configuration.webhook.port) == ("", 9443)
    assert configuration.leader_election.options("kubeflow-system") == LeaderElectionOptions(
        "trainer.kubeflow.org", "kubeflow-system", lease_duration=15, renew_deadline=10.0, retry_period=2.0
    )
    assert host_and_port(configuration.metrics.bind_address) == ("", 8443)
    assert configuration.metrics.secure_serving
    assert host_and_port(configuration.health.health_probe_bind_address) == ("", 8081)
    assert configuration.controller.train_job_concurrency == 5
    assert configuration.ignored == [
        "controller.groupKindConcurrency[ClusterTrainingRuntime.trainer.kubeflow.org]",
        "controller.groupKindConcurrency[TrainingRuntime.trainer.kubeflow.org]",
    ]
    assert configuration.status_server.options(TlsOptions()) == StatusServerOptions(port=10443, limit=(5.0, 10))
    management = configuration.cert_management
    assert management.enable
    assert management.webhook_service_name == "kubeflow-trainer-controller-manager"
    assert management.webhook_secret_name == "kubeflow-trainer-webhook-cert"
    assert configuration.client_connection.limit == (50.0, 100)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        pytest.param("metric: {}", "metric: Unknown field: did you mean metrics?", id="typo"),
        pytest.param(
            "leaderElection: {leaseDurationSeconds: 15}",
            "leaderElection.leaseDurationSeconds: Unknown field: did you mean leaseDuration?",
            id="seconds",
        ),
        pytest.param(
            "leaderElection: {leaderElect: 'yes'}",
            'leaderElection.leaderElect: Invalid value: "yes": must be true or false',
            id="no-truth-value",
        ),
        pytest.param(
            "leaderElection: {leaseDuration: 15}",
            "leaderElection.leaseDuration: Invalid value: 15: "
            "must be a duration with its unit: 15s if seconds are meant",
            id="duration-without-unit",
        ),
        pytest.param(
            "leaderElection: {leaseDuration: 0s}",
            'leaderElection.leaseDuration: Invalid value: "0s": must be at least 1s',
            id="lease-of-no-time",
        ),
        pytest.param(
            "leaderElection: {leaseDuration: 15500ms}",
            'leaderElection.leaseDuration: Invalid value: "15500ms": '
            "must be whole seconds: a Lease cannot hold fractions",
            id="lease-of-half-a-second",
        ),
        pytest.param(
            "leaderElection: {leaseDuration: 2147483648s}",
            'leaderElection.leaseDuration: Invalid value: "2147483648s": must be at most 596523h14m7s',
            id="lease-too-long",
        ),
        pytest.param(
            "leaderElection: {renewDeadline: 0s}",
            'leaderElection.renewDeadline: Invalid value: "0s": must be greater than 0s',
            id="no-time-to-renew",
        ),
        pytest.param(
            "leaderElection: {retryPeriod: 0s}",
            'leaderElection.retryPeriod: Invalid value: "0s": must be greater than 0s',
            id="no-pause",
        ),
        pytest.param(
            "leaderElection: {renewDeadline: 15s}",
            'leaderElection.renewDeadline: Invalid value: "15s": must be less than leaseDuration (15s)',
            id="renew-deadline",
        ),
        pytest.param(
            "leaderElection: {retryPeriod: 9s}",
            'leaderElection.retryPeriod: Invalid value: "9s": must be less than renewDeadline (10s) divided by 1.2',
            id="retry-period",
        ),
        pytest.param(
            "leaderElection: {leaseDuration: 5s}",
            'leaderElection.renewDeadline: Invalid value: "10s": must be less than leaseDuration (5s)',
            id="default-that-does-not-fit",
        ),
        pytest.param(
            "leaderElection: {resourceLock: configmaps}",
            'leaderElection.resourceLock: Unsupported value: "configmaps": supported values: "leases", ""',
            id="lock",
        ),
        pytest.param("webhook: {port: 0}", "webhook.port: Invalid value: 0: must be at least 1", id="port"),
        pytest.param(
            "webhook: {clientNames: [kube-apiserver]}",
            "webhook.clientNames: Forbidden: clients show no certificate without clientCAFile: set it",
            id="client-names-alone",
        ),
        pytest.param(
            "metrics: {bindAddress: 0}",
            "metrics.bindAddress: Invalid value: 0: must be a string; put it in quotes",
            id="number-as-address",
        ),
        pytest.param(
            "metrics: {bindAddress: localhost}",
            'metrics.bindAddress: Invalid value: "localhost": must be host:port, or "0" for no server',
            id="address",
        ),
        pytest.param(
            "metrics: {bindAddress: ':65536'}",
            'metrics.bindAddress: Invalid value: ":65536": must be host:port, or "0" for no server',
            id="address-with-port-too-large",
        ),
        pytest.param(
            "health: {healthProbeBindAddress: '::1:1'}",
            'health.healthProbeBindAddress: Invalid value: "::1:1": must be host:port, or "0" for no server',
            id="ipv6-without-brackets",
        ),
        pytest.param(
            "metrics: {secureServing: false}",
            "metrics.auth.enabled: Invalid value: true: needs secureServing, or tokens would be sent unencrypted: "
            "set secureServing, or set this to false",
            id="tokens-in-the-clear",
        ),
        pytest.param(
            "health: {readinessEndpointName: ready}",
            'health.readinessEndpointName: Unsupported value: "ready": supported values: "readyz"',
            id="probe",
        ),
        pytest.param(
            "controller: {groupKindConcurrency: {TrainJob.trainer.kubeflow.org: 0}}",
            "controller.groupKindConcurrency[TrainJob.trainer.kubeflow.org]: Invalid value: 0: must be at least 1",
            id="no-concurrency",
        ),
        pytest.param(
            "controller: {groupKindConcurrency: {Job.batch: 1}}",
            'controller.groupKindConcurrency: Unsupported value: "Job.batch": supported values: '
            '"TrainJob.trainer.kubeflow.org", "ClusterTrainingRuntime.trainer.kubeflow.org", '
            '"TrainingRuntime.trainer.kubeflow.org"',
            id="kind-of-another",
        ),
        pytest.param(
            "controller: {cacheSyncTimeout: 0s}",
            'controller.cacheSyncTimeout: Invalid value: "0s": must be greater than 0s',
            id="no-time-to-list",
        ),
        pytest.param(
            "controller: {clusterDomain: .local}",
            'controller.clusterDomain: Invalid value: ".local": must consist of lower-case letters, digits, - and ., '
            "and start and end with a letter or digit",
            id="domain",
        ),
        pytest.param(
            "certManagement: {webhookSecretName: ''}",
            'certManagement.webhookSecretName: Invalid value: "": must not be empty',
            id="no-secret-name",
        ),
        pytest.param(
            "clientConnection: {qps: -1}", "clientConnection.qps: Invalid value: -1: must be at least 0", id="qps"
        ),
        pytest.param(
            "clientConnection: {burst: 5}",
            "clientConnection.burst: Invalid value: 5: has no effect without qps: set qps too, or leave burst out",
            id="burst-alone",
        ),
        pytest.param(
            "gangScheduling: kueue",
            'gangScheduling: Unsupported value: "kueue": supported values: "none", "auto", "workload", "coscheduling", '
            '"volcano"',
            id="gang-scheduler",
        ),
        pytest.param(
            "gangSchedulerName: volcano",
            'gangSchedulerName: Invalid value: "volcano": has no effect where gangScheduling is none; set that too, or '
            "leave this out",
            id="gang-scheduler-name-alone",
        ),
        pytest.param(
            "gangScheduling: volcano\ngangSchedulerName: My Volcano",
            'gangSchedulerName: Invalid value: "My Volcano": must consist of lower-case letters, digits, - and ., '
            "and start and end with a letter or digit",
            id="gang-scheduler-name",
        ),
        pytest.param(
            "tls: {minVersion: '1.0'}",
            'tls.minVersion: Unsupported value: "1.0": supported values: "1.2", "1.3"',
            id="tls",
        ),
        pytest.param(
            "tls: {nextProtos: [h2]}",
            'tls.nextProtos[0]: Unsupported value: "h2": supported values: "http/1.1"',
            id="protocol",
        ),
        pytest.param(
            "progress: {statusInterval: 2h}",
            'progress.statusInterval: Invalid value: "2h": must be at most 1h',
            id="seldom",
        ),
        pytest.param(
            "progress: {readInterval: -1s}",
            'progress.readInterval: Invalid value: "-1s": must be at least 0s',
            id="past",
        ),
        pytest.param(
            "progress: {stallTimeout: 0s}",
            'progress.stallTimeout: Invalid value: "0s": must be greater than 0s',
            id="stall",
        ),
        pytest.param("plugins: {enable: []}", "plugins.enable: Unknown field: did you mean enabled?", id="plugins"),
        pytest.param(
            "devices: [{seenByTorchrun: false}]",
            "devices[0].resourceName: Required value: name a resource or, with deviceClassName, a DeviceClass",
            id="device-without-name",
        ),
        pytest.param(
            "devices: [{resourceName: example.com/a}, {resourceName: cpu}]",
            'devices[1].resourceName: Invalid value: "cpu": must be a name such as example.com/accelerator, with one * '
            "at most",
            id="device-without-domain",
        ),
        pytest.param(
            "devices: [{deviceClassName: 'a*b*c'}]",
            'devices[0].deviceClassName: Invalid value: "a*b*c": must be a name such as accelerator.example.com, with '
            "one * at most",
            id="device-class-with-two-stars",
        ),
        pytest.param(
            "devices: [{deviceClassName: a.example.com, unit: hundredth}]",
            "devices[0].unit: Forbidden: is for amounts of resources; claims count devices: remove it",
            id="unit-of-a-class",
        ),
        pytest.param(
            "devices: [{resourceName: example.com/a, unit: dozen}]",
            'devices[0].unit: Unsupported value: "dozen": supported values: "device", "hundredth", "share"',
            id="unit",
        ),
        pytest.param(
            "logging: {level: trace}",
            'logging.level: Unsupported value: "trace": supported values: "debug", "info", "warning", "error"',
            id="level",
        ),
        pytest.param(
            "statusServer: {url: 'http://trainer:10443'}",
            'statusServer.url: Invalid value: "http://trainer:10443": must match ^(https://[^/?#\\s]+)?$',
            id="status-url",
        ),
        pytest.param(
            "statusServer: {port: 9443}\nfeatureGates: {TrainJobStatus: true}",
            "statusServer.port: Invalid value: 9443: is where the server of webhook.port listens: choose another port",
            id="status-and-webhooks",
        ),
        pytest.param(
            "health: {healthProbeBindAddress: ':8443'}",
            'health.healthProbeBindAddress: Invalid value: ":8443": '
            "is where the server of metrics.bindAddress listens: choose another port",
            id="one-port-for-two",
        ),
        pytest.param(
            "webhook: {host: '::1', port: 8443}\nmetrics: {bindAddress: '[::1]:8443'}",
            'metrics.bindAddress: Invalid value: "[::1]:8443": is where the server of webhook.port listens: '
            "choose another port",
            id="one-address-for-two",
        ),
        pytest.param(
            "tls: {cipherSuites: [TLS_RSA_WITH_RC4_128_SHA]}",
            'tls.cipherSuites[0]: Unsupported value: "TLS_RSA_WITH_RC4_128_SHA": supported values: '
            + ", ".join(f'"{name}"' for name in (*CIPHER_SUITES, *TLS_1_3)),
            id="cipher-suite",
        ),
        pytest.param(
            "tls: {cipherSuites: [TLS_AES_128_GCM_SHA256]}",
            'tls.cipherSuites: Invalid value: ["TLS_AES_128_GCM_SHA256"]: names none of TLS 1.2: add some, '
            "or set minVersion to 1.3",
            id="no-cipher-suite-for-1.2",
        ),
        pytest.param(
            "webhook: {port: 0}\nhealth: {host: x}",
            "webhook.port: Invalid value: 0: must be at least 1; health.host: Unknown field: known here: "
            "healthProbeBindAddress, readinessEndpointName, livenessEndpointName",
            id="two",
        ),
    ],
)
def test_wrong_settings(tmp_path: Path, text: str, message: str) -> None:
    """One line names the file, every wrong setting, and the remedy."""
    file = write(tmp_path / "manager.yaml", text)

    with pytest.raises(ConfigurationError) as caught:
        load_configuration(file)

    assert str(caught.value) == f"{file}: {message}"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        pytest.param(
            b"",
            ": apiVersion: Required value: add apiVersion: config.trainer.kubeflow.org/v1alpha1; "
            "kind: Required value: add kind: Configuration",
            id="empty",
        ),
        pytest.param(
            b"apiVersion: v1\nkind: ConfigMap\ndata: {}",
            ': apiVersion: Unsupported value: "v1": supported values: "config.trainer.kubeflow.org/v1alpha1"; '
            'kind: Unsupported value: "ConfigMap": supported values: "Configuration"',
            id="another-kind",
        ),
        pytest.param(b"- a", ": must be a mapping of settings, not list", id="list"),
        pytest.param(b"a: [", ", line 1, column 5: not valid YAML: ", id="not-yaml"),
        pytest.param(f"{HEAD}health: {{}}\nhealth: {{}}".encode(), "the key 'health' is defined twice", id="twice"),
        pytest.param(f"{HEAD}---\n{HEAD}".encode(), ": must be one document, not 2", id="two-documents"),
        pytest.param(b"\xff\xfe\x00", "cannot read", id="not-text"),
        pytest.param(None, "No such file or directory", id="absent"),
    ],
)
def test_no_configuration(tmp_path: Path, content: bytes | None, message: str) -> None:
    """A file that is something else gives one line as well."""
    file = tmp_path / "manager.yaml"
    if content is not None:
        file.write_bytes(content)

    with pytest.raises(ConfigurationError) as caught:
        load_configuration(file)

    assert str(file) in str(caught.value)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("webhook: {host: 127.0.0.1, port: 8443}\nmetrics: {bindAddress: '127.0.0.2:8443'}", id="hosts"),
        pytest.param("metrics: {bindAddress: '0'}\nhealth: {healthProbeBindAddress: ':8443'}", id="no-server"),
        pytest.param("webhook: {enabled: false}\nhealth: {healthProbeBindAddress: ':9443'}", id="no-webhooks"),
        pytest.param("metrics: {bindAddress: ':0'}\nhealth: {healthProbeBindAddress: ':0'}", id="any-ports"),
        pytest.param(
            f"tls: {{cipherSuites: [TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256, {TLS_1_3[0]}]}}", id="cipher-suites"
        ),
        pytest.param("metrics: {secureServing: false, auth: {enabled: false}}", id="metrics-in-the-clear"),
        pytest.param("controller: {gracefulShutdownTimeout: -1s}", id="without-limit"),
        pytest.param("progress: {stallTimeout: null}", id="null-is-absent"),
    ],
)
def test_right_settings(tmp_path: Path, text: str) -> None:
    """What looks alike and is not wrong is accepted."""
    load_configuration(write(tmp_path / "manager.yaml", text))


def test_the_command_line_goes_before_the_file(tmp_path: Path) -> None:
    """Of a gate that both name the command line counts."""
    file = write(tmp_path / "manager.yaml", "featureGates: {TrainJobProgress: false, TrainJobStatus: true}")

    gates = load_configuration(file, {"TrainJobProgress": True}).gates
    assert gates.enabled(TRAIN_JOB_PROGRESS)
    assert gates.enabled(TRAIN_JOB_STATUS)
    with pytest.raises(ConfigurationError, match=r"^--feature-gates: Unsupported value: \"X\""):
        load_configuration(file, {"X": True})


def test_a_wrong_file_is_reported_though_the_command_line_names_gates(tmp_path: Path) -> None:
    """Gates of the command line hide no mistake of the file."""
    file = write(tmp_path / "manager.yaml", "featureGates: [TrainJobProgress]")

    with pytest.raises(ConfigurationError, match=r"featureGates: Invalid value: .* must be a mapping of fields"):
        load_configuration(file, {"TrainJobProgress": True})


@given(sections(), st.dictionaries(st.sampled_from(["AllAlpha", "TrainJobProgress"]), st.booleans()))
def test_what_is_written_means_the_same(settings: Object, gates: dict[str, bool]) -> None:
    """The effective configuration is as right or wrong as the file was, and the same when it is read as a file."""
    file = {**settings, "featureGates": gates}
    configuration = Configuration.from_object(file).effective()

    [document] = parse(render_configuration(configuration))

    assert isinstance(document, dict)
    assert Configuration.from_object(document) == configuration
    assert complaints(document) == complaints(file)
    assert {"apiVersion": "config.trainer.kubeflow.org/v1alpha1", "kind": "Configuration"}.items() <= document.items()


def complaints(document: Object) -> list[str]:
    """What strict reading has against a document."""
    try:
        Configuration.from_object(document, strict=True)
    except InvalidObjectError as error:
        return [str(each) for each in error.errors]
    return []


def test_every_field_says_its_default() -> None:
    """People read the docstrings as the reference."""
    silent = [
        f"{section}.{name}"
        for section, model in _models(Configuration)
        for name, field in model.model_fields.items()
        if "Defaults to" not in " ".join((field.description or "").split()) and not _is_section(field.annotation)
    ]
    assert silent == ["Configuration.api_version", "Configuration.kind"]


def _models(model: type[BaseModel]) -> list[tuple[str, type[BaseModel]]]:
    inner = [
        found
        for field in model.model_fields.values()
        if _is_section(field.annotation)
        for found in _models(field.annotation)
    ]
    return [(model.__name__, model), *inner]


def _is_section(annotation: object) -> TypeGuard[type[BaseModel]]:
    return isinstance(annotation, type) and issubclass(annotation, BaseModel)
