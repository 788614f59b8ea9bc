"""The composition root, and the manifests that install it."""

from __future__ import annotations

import functools
import json
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio
import pytest
import yaml

from tests.framework.samples import replicated_job, runtime_object, train_job_object
from tests.framework.static_reader import StaticReader
from trainer.api.crds import crds
from trainer.api.trainingruntime import CLUSTER_TRAINING_RUNTIMES, TRAINING_RUNTIMES, ClusterTrainingRuntime
from trainer.api.trainjob import TRAIN_JOBS, TrainJob
from trainer.bind_address import host_and_port
from trainer.framework.pipeline import Pipeline
from trainer.framework.registry import Registry
from trainer.kube.clock import timestamp
from trainer.kube.errors import ConfigurationError, InvalidError, ServiceUnavailableError
from trainer.kube.objects import name_of
from trainer.kube.resource import JOBSETS, LEASES
from trainer.kube.testing import FakeClient, ManualClock, settle
from trainer.manager import ManagerConfiguration, build_manager, built_in_plugins, run_manager
from trainer.plugins import coscheduling, volcano
from trainer.webhooks.configuration import WebhookConfiguration

if TYPE_CHECKING:
    from trainer.kube.objects import Object

ROOT = Path(__file__).parents[1]
_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
KUBECTL = Path(sys.executable).parent / "kubectl"
RESOURCES = (TRAIN_JOBS, TRAINING_RUNTIMES, CLUSTER_TRAINING_RUNTIMES)

ELASTIC_POLICY = {"elasticPolicy": {"minNodes": 1, "maxNodes": 3, "maxRestarts": 3, "metrics": [{"type": "Resource"}]}}
MPI_JOBS = (replicated_job("node"), replicated_job("launcher"))
POD_GROUPS = {"coscheduling": coscheduling.POD_GROUPS, "volcano": volcano.POD_GROUPS}


@functools.cache
def _kustomized(folder: str) -> str:
    command: list[str | Path] = [KUBECTL, "kustomize", ROOT / "config" / folder]
    rendered = subprocess.run(command, capture_output=True, text=True, check=True)
    return json.dumps(list(yaml.load_all(rendered.stdout, Loader=_LOADER)))


def kustomized(folder: str) -> list[Object]:
    """What `kubectl apply -k` would apply."""
    objects: list[Object] = json.loads(_kustomized(folder))
    return objects


def of_kind(objects: list[Object], kind: str, name: str | None = None) -> Object:
    """The only object of a kind, or that of this name."""
    (found,) = [obj for obj in objects if obj["kind"] == kind and name in {None, name_of(obj)}]
    return found


def test_configuration(tmp_path: Path) -> None:
    """Settings are read from YAML; what is absent has its default."""
    path = tmp_path / "manager.yaml"
    path.write_text("namespace: team\nhttpBindAddress: ':8081'\n")
    configuration = ManagerConfiguration.load(path)
    assert configuration == ManagerConfiguration(namespace="team", http_bind_address=":8081")
    assert configuration.max_concurrent_reconciles == 5
    assert configuration.options().http_bind == ("", 8081)
    path.write_text("")
    assert ManagerConfiguration.load(path) == ManagerConfiguration()
    assert ManagerConfiguration().options().http_bind is None
    path.write_text("httpBindAddress: '[::1]:8081'\n")
    assert ManagerConfiguration.load(path).options().http_bind == ("::1", 8081)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        pytest.param("nameSpace: x", "nameSpace: Unknown field: did you mean namespace?", id="unknown"),
        pytest.param("namespace: ''", 'namespace: Invalid value: "": must not be empty', id="empty"),
        pytest.param(
            "clusterDomain: .local",
            'clusterDomain: Invalid value: ".local": must consist of lower-case letters, digits, - and ., '
            "and start and end with a letter or digit",
            id="domain",
        ),
        pytest.param("clusterDomain: ''", 'clusterDomain: Invalid value: "": must not be empty', id="empty-domain"),
        pytest.param(
            "maxConcurrentReconciles: 0", "maxConcurrentReconciles: Invalid value: 0: must be at least 1", id="range"
        ),
        pytest.param(
            "maxConcurrentReconciles: '5'", 'maxConcurrentReconciles: Invalid value: "5": must be an integer', id="type"
        ),
        pytest.param(
            "httpBindAddress: localhost", 'httpBindAddress: Invalid value: "localhost": must be host:port', id="address"
        ),
        pytest.param(
            "cacheSyncTimeoutSeconds: 0",
            "cacheSyncTimeoutSeconds: Invalid value: 0: must be greater than 0",
            id="timeout",
        ),
        pytest.param(
            "leaderElection: {leaderElect: 'yes'}",
            'leaderElection.leaderElect: Invalid value: "yes": must be true or false',
            id="nested-type",
        ),
        pytest.param(
            "leaderElection: {leaderElected: true}",
            "leaderElection.leaderElected: Unknown field: did you mean leaderElect?",
            id="nested-unknown",
        ),
        pytest.param(
            "leaderElection: {renewDeadlineSeconds: 15}",
            "leaderElection.renewDeadlineSeconds: Invalid value: 15: must be less than leaseDurationSeconds (15)",
            id="renew-deadline",
        ),
        pytest.param(
            "leaderElection: {retryPeriodSeconds: 9}",
            "leaderElection.retryPeriodSeconds: Invalid value: 9: "
            "must be less than renewDeadlineSeconds (10.0) divided by 1.2",
            id="retry-period",
        ),
        pytest.param(
            "leaderElection: {leaseDurationSeconds: 2147483648}",
            "leaderElection.leaseDurationSeconds: Invalid value: 2147483648: must be at most 2147483647",
            id="lease-duration",
        ),
        pytest.param(
            "gracefulShutdownTimeoutSeconds: .nan",
            "gracefulShutdownTimeoutSeconds: Invalid value: NaN: must be a number",
            id="not-a-number",
        ),
        pytest.param(
            "httpBindAddress: 'a b:1'", 'httpBindAddress: Invalid value: "a b:1": must be host:port', id="host"
        ),
        pytest.param(
            "httpBindAddress: '::1:1'", 'httpBindAddress: Invalid value: "::1:1": must be host:port', id="ipv6"
        ),
        pytest.param("- a", "must be a mapping of settings, not list", id="list"),
        pytest.param("plugins: {enable: []}", "plugins.enable: Unknown field: did you mean enabled?", id="plugins"),
        pytest.param(
            "plugins: {configuration: {torch: 5}}",
            "plugins.configuration[torch]: Invalid value: 5: must be a mapping of fields",
            id="plugin-configuration",
        ),
    ],
)
def test_wrong_configuration(tmp_path: Path, text: str, message: str) -> None:
    """One line names the file, the setting and the remedy."""
    path = tmp_path / "manager.yaml"
    path.write_text(text)
    with pytest.raises(ConfigurationError) as caught:
        ManagerConfiguration.load(path)
    assert str(caught.value) == f"{path}: {message}"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        pytest.param(None, "No such file or directory", id="absent"),
        pytest.param(b"a: [", "expected the node content", id="not-yaml"),
        pytest.param(b"\xff\xfe\x00", "cannot read", id="not-text"),
    ],
)
def test_unreadable_configuration(tmp_path: Path, content: bytes | None, message: str) -> None:
    """A file that is absent or no YAML gives one line as well."""
    path = tmp_path / "manager.yaml"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(ConfigurationError, match=message) as caught:
        ManagerConfiguration.load(path)
    assert "\n" not in str(caught.value)


async def test_the_manager_trains() -> None:
    """The wired manager turns a TrainJob into a JobSet until it is cancelled."""
    client = FakeClient(runtime_object(), train_job_object(), resources=RESOURCES)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(run_manager, client, ManagerConfiguration())
        with anyio.fail_after(5):
            while not client.objects(JOBSETS):
                await settle()
        tasks.cancel_scope.cancel()
    assert [name_of(jobset) for jobset in client.objects(JOBSETS)] == ["demo"]


@pytest.mark.parametrize("case", ["torch", "jax", "llm-fine-tuning"])
def test_the_order_of_plugins_does_not_matter(case: str) -> None:
    """The built-in plugins build the same objects however they are registered."""
    text = (ROOT / "tests" / "plugins" / "golden" / f"{case}.yaml").read_text()
    blueprint, job, jobset = yaml.safe_load_all(text)
    train_job, runtime = TrainJob.from_object(job), ClusterTrainingRuntime.from_object(blueprint)
    plugins = list(built_in_plugins(StaticReader()))
    for first in range(len(plugins)):
        order = plugins[first:] + plugins[:first]
        built = Pipeline(Registry(order if first % 2 else reversed(order))).build(train_job, runtime)
        assert [component.object for component in built] == [jobset]


def test_default_manifests() -> None:
    """`kubectl apply -k config/default` installs the CRDs and a manager with its account and settings."""
    objects = kustomized("default")
    assert [obj for obj in objects if obj["kind"] == "CustomResourceDefinition"] == sorted(crds(), key=name_of)
    deployment, account = of_kind(objects, "Deployment"), of_kind(objects, "ServiceAccount")
    namespaced = [obj for obj in objects if obj["kind"] in _NAMESPACED]
    assert {obj["metadata"]["namespace"] for obj in namespaced} == {name_of(of_kind(objects, "Namespace"))}
    namespace = account["metadata"]["namespace"]
    bindings = [obj for obj in objects if obj["kind"].endswith("RoleBinding")]
    assert len(bindings) == 4
    for binding in bindings:
        assert binding["subjects"] == [{"kind": "ServiceAccount", "name": name_of(account), "namespace": namespace}]
    pod = deployment["spec"]["template"]["spec"]
    assert pod["serviceAccountName"] == name_of(account)
    assert pod["volumes"][0]["configMap"]["name"] == name_of(of_kind(objects, "ConfigMap"))


@pytest.fixture
def shipped(tmp_path: Path) -> ManagerConfiguration:
    """The settings in the ConfigMap of the default manifests."""
    path = tmp_path / "configuration.yaml"
    path.write_text(of_kind(kustomized("default"), "ConfigMap")["data"]["configuration.yaml"])
    return ManagerConfiguration.load(path)


@pytest.fixture
def lease_role() -> Object:
    """The Role of the default manifests that is for the lease."""
    return of_kind(kustomized("default"), "Role", "trainer-controller-manager-leader-election")


def test_shipped_configuration(shipped: ManagerConfiguration) -> None:
    """The settings are accepted, probes ask where the manager listens, and it has the time to stop that it may take."""
    options = shipped.options()
    template = of_kind(kustomized("default"), "Deployment")["spec"]["template"]
    pod, labels = template["spec"], template["metadata"]["labels"]
    ports = pod["containers"][0]["ports"]
    assert options.http_bind is not None
    assert options.http_bind[1] == ports[0]["containerPort"]
    service = of_kind(kustomized("default"), "Service")
    assert service["spec"]["selector"].items() <= labels.items()
    numbers = {port["name"]: port["containerPort"] for port in ports}
    assert host_and_port(shipped.webhook.bind_address)[1] == numbers[service["spec"]["ports"][0]["targetPort"]]
    assert shipped.webhook.enabled
    assert options.graceful_shutdown_timeout is not None
    # API servers go on sending reviews for a moment after the pod has been told to stop.
    farewell = pod["containers"][0]["lifecycle"]["preStop"]["sleep"]["seconds"]
    assert farewell >= 5
    assert pod["terminationGracePeriodSeconds"] >= farewell + options.graceful_shutdown_timeout + 15


def test_a_manager_on_a_laptop_waits_for_no_lease() -> None:
    """Without a configuration there is no leader election, so that a new manager works at once."""
    assert ManagerConfiguration().options().leader_election is None


async def test_leader_election_needs_one_lease(shipped: ManagerConfiguration, lease_role: Object) -> None:
    """Acquiring, renewing and releasing as shipped is allowed on one Lease in the manager's namespace, nothing more."""
    clock = ManualClock()
    client = FakeClient(resources=RESOURCES, clock=clock)
    configuration = shipped.model_copy(update={"http_bind_address": None, "webhook": WebhookConfiguration()})
    namespace = lease_role["metadata"]["namespace"]
    manager = build_manager(client, configuration, namespace=namespace, clock=clock)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(manager.run)
        await clock.advance(5)
        assert manager.is_leader
        tasks.cancel_scope.cancel()
    requests = {
        (request.verb, request.namespace, request.name) for request in client.requests if request.resource == LEASES
    }
    allowed = {
        (verb, namespace, name)
        for rule in lease_role["rules"]
        for verb in rule["verbs"]
        for name in rule.get("resourceNames", [configuration.leader_election.resource_name])
    }
    assert {rule["resources"][0] for rule in lease_role["rules"]} == {"leases"}
    assert requests == allowed


async def test_the_role_allows_what_the_manager_does() -> None:
    """Whatever it does from the submission of TrainJobs to their end is allowed, and no rule is idle."""
    clock = ManualClock()
    client = FakeClient(runtime_object(), resources=(*RESOURCES, *POD_GROUPS.values()), clock=clock)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(build_manager(client, ManagerConfiguration(), clock=clock).run)
        for suspend in (True, False):
            client.add(train_job_object(suspend=suspend))
            await settle()
            client.add(client.objects(TRAIN_JOBS)[0] | {"spec": train_job_object(suspend=suspend)["spec"]})
            await settle()
        limited = train_job_object("limited", activeDeadlineSeconds=1, ttlSecondsAfterFinished=1)
        limited["metadata"]["creationTimestamp"] = timestamp(clock.now())
        client.add(limited)
        await clock.advance(5)
        client.add(failed_pod())
        for name in ("with-log", "without-pods"):
            client.add(train_job_object(name))
            await settle()
            client.add((client.find(JOBSETS, name, "default") or {}) | {"status": {"terminalState": "Failed"}})
            await settle()
        for scheduler in POD_GROUPS:
            client.add(runtime_object(podGroupPolicy={scheduler: {}}) | {"metadata": {"name": scheduler}})
            client.add(train_job_object(scheduler, runtimeRef={"name": scheduler}))
            await settle()
            client.add((client.find(JOBSETS, scheduler, "default") or {}) | {"status": {"terminalState": "Failed"}})
            await settle()
        client.add(runtime_object(*MPI_JOBS, policy={"mpi": {}}) | {"metadata": {"name": "mpi"}})
        client.fail_next(ServiceUnavailableError(503, "try again"), verb="apply", resource=JOBSETS)
        client.add(train_job_object("mpi", runtimeRef={"name": "mpi"}))
        await settle()
        await clock.advance(1)
        client.add(runtime_object(policy={"torch": ELASTIC_POLICY}) | {"metadata": {"name": "elastic"}})
        client.add(train_job_object("elastic", runtimeRef={"name": "elastic"}, trainer={"numNodes": 2}))
        await settle()
        client.add((client.find(JOBSETS, "elastic", "default") or {}) | {"status": {"terminalState": "Failed"}})
        await settle()
        client.fail_next(InvalidError(422, "a field is wrong"), verb="apply", resource=JOBSETS)
        client.add(train_job_object("refused"))
        await settle()
        client.add(runtime_object(replicated_job("node", {"name": "trainer", "image": "better"})))
        await settle()
        tasks.cancel_scope.cancel()
    used = {
        (request.resource.group, request.resource.plural + (request.subresource and f"/{request.subresource}"), verb)
        for request in client.requests
        for verb in _VERBS[request.verb]
    }
    rules = of_kind(kustomized("rbac"), "ClusterRole")["rules"]
    allowed = {
        (group, resource, verb)
        for rule in rules
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }
    assert used <= allowed
    idle = {rule[:2] for rule in allowed} - {request[:2] for request in used}
    assert idle == {("trainer.kubeflow.org", "trainjobs/finalizers")}
    assert {request for request in used if request[2] == "delete"} == {
        request for request in allowed if request[2] == "delete"
    }


def failed_pod() -> Object:
    """A pod of the TrainJob with-log whose log may be read."""
    ended = {"name": "trainer", "state": {"terminated": {"exitCode": 3, "finishedAt": "2026-01-01T00:00:00Z"}}}
    labels = {"jobset.sigs.k8s.io/jobset-name": "with-log"}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "with-log-node-0-0-x", "namespace": "default", "labels": labels},
        "status": {"phase": "Failed", "containerStatuses": [ended]},
    }


_NAMESPACED = {"Deployment", "ServiceAccount", "ConfigMap", "Secret", "Service", "Role", "RoleBinding"}

_VERBS: dict[str, list[str]] = {
    "get": ["get"],
    "list": ["list"],
    "watch": ["watch"],
    "create": ["create"],
    "update": ["update"],
    "patch": ["patch"],
    "apply": ["patch"],
    "log": ["get"],
    "delete": ["delete"],
}


def test_shipped_runtimes_build() -> None:
    """Every blueprint is accepted as written, and a TrainJob of two nodes becomes a JobSet with it."""
    runtimes = [ClusterTrainingRuntime.from_object(obj, strict=True) for obj in kustomized("runtimes")]
    files = {path.stem.replace("_", "-") for path in (ROOT / "config" / "runtimes").glob("*.yaml")} - {"kustomization"}
    assert {runtime.metadata.name for runtime in runtimes} == files
    pipeline = Pipeline(built_in_plugins(StaticReader()))
    for runtime in runtimes:
        job = train_job_object(trainer={"numNodes": 2, "command": ["python train.py"]})
        components = pipeline.build(TrainJob.from_object(job), runtime)
        (jobset,) = [component.object for component in components if component.resource == JOBSETS]
        mpi = runtime.spec.ml_policy and runtime.spec.ml_policy.mpi
        trains = {"node", "launcher"} if mpi and mpi.run_launcher_as_node else {"node"}
        specs = [entry["template"]["spec"] for entry in jobset["spec"]["replicatedJobs"] if entry["name"] in trains]
        assert sum(spec["completions"] for spec in specs) == 2


@pytest.mark.parametrize("path", sorted((ROOT / "examples").glob("*/trainjob.yaml")), ids=lambda path: path.parent.name)
def test_examples_fit_the_shipped_runtimes(path: Path) -> None:
    """The TrainJobs in examples are accepted and build with the runtimes that they name."""
    runtimes = {name_of(obj): ClusterTrainingRuntime.from_object(obj) for obj in kustomized("runtimes")}
    documents: list[Any] = list(yaml.safe_load_all(path.read_text()))
    jobs = [TrainJob.from_object(obj, strict=True) for obj in documents if obj["kind"] == "TrainJob"]
    assert jobs
    for job in jobs:
        built = Pipeline(built_in_plugins(StaticReader())).build(job, runtimes[job.spec.runtime_ref.name])
        assert job.metadata.name in [name_of(each.object) for each in built if each.resource == JOBSETS]
