"""The roles of the manager: what it does is allowed, what it does not do is not, and some things never are.

The end-to-end tests compare the same roles with the requests of whole clusters.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import chain, product
from typing import Any

import anyio
import pytest

from tests.config.kustomized import CONFIG, INSTALLED, of_kind, rendered
from tests.configurations import bare
from tests.framework.samples import replicated_job, runtime_object, train_job_object
from tests.scales import ScalableClient
from trainer.api.trainingruntime import CLUSTER_TRAINING_RUNTIMES, TRAINING_RUNTIMES
from trainer.api.trainjob import TRAIN_JOBS
from trainer.configuration.configuration import load_configuration
from trainer.framework.plugin_api.devices import RESOURCE_CLAIM_TEMPLATES
from trainer.kube.clock import timestamp
from trainer.kube.errors import InvalidError, ServiceUnavailableError
from trainer.kube.objects import Object, name_of
from trainer.kube.resource import LEASES
from trainer.manager import build_manager
from trainer.plugins import coscheduling, volcano, workload
from trainer.workloads import JOBSETS
from trainer_kube_testing import FakeClient, ManualClock, StreamingLists, settle

ACCOUNT = "trainer-controller-manager"
SWEEPS = f"{ACCOUNT}-sweeps"
RESOURCES = (TRAIN_JOBS, TRAINING_RUNTIMES, CLUSTER_TRAINING_RUNTIMES, JOBSETS)
ELASTIC_POLICY = {"elasticPolicy": {"minNodes": 1, "maxNodes": 3, "maxRestarts": 3, "metrics": [{"type": "Resource"}]}}
MPI_JOBS = (replicated_job("node"), replicated_job("launcher"))
GANGS = {
    "coscheduling": [coscheduling.POD_GROUPS],
    "volcano": [volcano.POD_GROUPS],
    "workload": [workload.VERSIONS[0].pod_groups, workload.VERSIONS[0].workloads],
}
"""The kinds of each gang scheduler."""

VERBS = {"apply": {"patch"}, "log": {"get"}}
"""What roles call the verbs of the client, where they have other names."""
OF_SERVERS = {
    "get trainingruntimes.trainer.kubeflow.org",
    "get clustertrainingruntimes.trainer.kubeflow.org",
    "create tokenreviews.authentication.k8s.io",
    "create subjectaccessreviews.authorization.k8s.io",
}
"""Asked for in admission, and when somebody asks for metrics."""
OF_THE_API_SERVER = {"update trainjobs/finalizers.trainer.kubeflow.org"}
"""Asked for by nobody: it has to be allowed where owner references block deletions."""


def roles(*directories: str) -> list[Object]:
    """All roles in directories of config/."""
    return of_kind((obj for each in directories for obj in rendered(each)), "Role", "ClusterRole")


def role(directory: str, kind: str, name: str = ACCOUNT) -> Object:
    """One of them."""
    (found,) = [obj for obj in roles(directory) if (obj["kind"], name_of(obj)) == (kind, name)]
    return found


def grants(*of: Object) -> set[tuple[str, str, str]]:
    """Group, resource and verb of everything that roles allow."""
    rules = [rule for each in of for rule in each["rules"] if "resources" in rule]
    return {each for rule in rules for each in product(rule["apiGroups"], rule["resources"], rule["verbs"])}


def as_texts(found: Iterable[tuple[str, str, str]]) -> set[str]:
    """In words."""
    return {f"{verb} {resource}{group and f'.{group}'}" for group, resource, verb in found}


INSTALLED_ROLES = [pytest.param(obj, id=f"{obj['kind']}-{name_of(obj)}") for obj in roles(*INSTALLED)]


@pytest.mark.parametrize("found", INSTALLED_ROLES)
def test_wildcards(found: Object) -> None:
    """No role allows what it does not name."""
    for rule in found["rules"]:
        for field in ("apiGroups", "resources", "verbs"):
            assert not [each for each in rule.get(field) or () if "*" in each], rule
        assert "*" not in rule.get("nonResourceURLs", [])


@pytest.mark.parametrize("found", INSTALLED_ROLES)
@pytest.mark.parametrize(
    ("groups", "resources", "verbs"),
    [
        pytest.param(None, None, {"escalate", "bind", "impersonate"}, id="become somebody else"),
        pytest.param(None, None, {"deletecollection"}, id="delete everything at once"),
        pytest.param({"rbac.authorization.k8s.io"}, None, None, id="give rights"),
        pytest.param({"certificates.k8s.io"}, None, None, id="make credentials"),
        pytest.param({""}, {"serviceaccounts", "serviceaccounts/token"}, None, id="take tokens"),
        pytest.param({""}, {"secrets"}, {"list", "watch", "patch", "delete"}, id="look through Secrets"),
        pytest.param({""}, {"pods"}, {"get", "create", "update", "patch", "delete"}, id="run or change pods"),
        pytest.param(
            {""}, {"pods/exec", "pods/attach", "pods/portforward", "pods/ephemeralcontainers"}, None, id="get into pods"
        ),
        pytest.param({""}, {"nodes", "nodes/proxy", "persistentvolumes"}, None, id="reach nodes"),
        pytest.param({""}, {"namespaces"}, {"create", "update", "patch", "delete"}, id="change namespaces"),
        pytest.param(
            {"apps", "batch"}, None, {"create", "update", "patch", "delete"}, id="run anything beside JobSets"
        ),
        pytest.param({"apiextensions.k8s.io"}, None, {"create", "update", "patch", "delete"}, id="change definitions"),
        pytest.param(
            {"admissionregistration.k8s.io"}, None, {"create", "update", "delete", "get"}, id="make or delete webhooks"
        ),
        pytest.param({"trainer.kubeflow.org"}, {"trainjobs"}, {"update"}, id="replace what people want"),
        pytest.param({"trainer.kubeflow.org"}, {"optimizationjobs"}, {"create", "update", "patch"}, id="change sweeps"),
    ],
)
def test_what_no_role_allows(
    found: Object, groups: set[str] | None, resources: set[str] | None, verbs: set[str] | None
) -> None:
    """Who has the account of the manager cannot do any of this."""
    assert not [
        (group, resource, verb)
        for group, resource, verb in grants(found)
        if (groups is None or group in groups)
        and (resources is None or resource in resources)
        and (verbs is None or verb in verbs)
    ]


def test_who_makes_train_jobs() -> None:
    """The manager does for sweeps, and nobody else."""
    made = ("trainer.kubeflow.org", "trainjobs", "create")
    assert [name_of(each) for each in roles(*INSTALLED) if made in grants(each)] == [SWEEPS]


def test_the_role_for_sweeps() -> None:
    """It grants what OptimizationJobs need besides, and is for the account of the manager."""
    assert as_texts(grants(role("rbac", "ClusterRole", SWEEPS))) == {
        *(f"{verb} optimizationjobs.trainer.kubeflow.org" for verb in ("get", "list", "watch", "delete")),
        "patch optimizationjobs/status.trainer.kubeflow.org",
        "update optimizationjobs/finalizers.trainer.kubeflow.org",
        *(f"{verb} trainjobs.trainer.kubeflow.org" for verb in ("create", "patch")),
        "get jobsets.jobset.x-k8s.io",
        *(f"{verb} workloads.kueue.x-k8s.io" for verb in ("list", "patch")),
    }
    bindings = {name_of(each): each for each in of_kind(rendered("default"), "ClusterRoleBinding")}
    assert bindings[SWEEPS]["subjects"] == bindings[ACCOUNT]["subjects"]


def test_secrets() -> None:
    """Anywhere the manager may make a Secret, and none but its own, in its own namespace, may it read or change."""
    rules = {
        (each["kind"], name_of(each)): [rule for rule in each["rules"] if "secrets" in rule.get("resources", ())]
        for each in roles("default")
    }
    secrets = {"apiGroups": [""], "resources": ["secrets"]}
    assert {key: found for key, found in rules.items() if found} == {
        ("ClusterRole", ACCOUNT): [secrets | {"verbs": ["create"]}],
        ("Role", f"{ACCOUNT}-webhook"): [
            secrets | {"resourceNames": ["trainer-webhook-certificates"], "verbs": ["get", "update"]}
        ],
    }


def test_webhook_configurations() -> None:
    """The manager changes its own two, and sees no others."""
    webhook_role = role("webhook", "ClusterRole", f"{ACCOUNT}-webhook")
    assert {(*rule["resources"], *rule["resourceNames"]) for rule in webhook_role["rules"]} == {
        ("validatingwebhookconfigurations", "validator.trainer.kubeflow.org"),
        ("mutatingwebhookconfigurations", "defaulter.trainer.kubeflow.org"),
    }


async def test_leader_election_needs_one_lease() -> None:
    """Acquiring, renewing and releasing as shipped is allowed on one Lease in the manager's namespace, nothing more."""
    lease_role = role("default", "Role", f"{ACCOUNT}-leader-election")
    clock = ManualClock()
    client = FakeClient(resources=RESOURCES, clock=clock)
    configuration = load_configuration(CONFIG / "manager" / "configuration.yaml").without_servers()
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
    """What it does from the submission of TrainJobs to their end is allowed, and nothing is that it does not do."""
    used: set[tuple[str, str, str]] = set()
    for streaming in (StreamingLists.SERVED, StreamingLists.REFUSED):
        used |= await requests_of_lives(streaming)
    allowed = grants(role("rbac", "ClusterRole"))
    assert as_texts(used - allowed) == set()
    assert as_texts(allowed - used) == OF_SERVERS | OF_THE_API_SERVER


async def requests_of_lives(streaming: StreamingLists) -> set[tuple[str, str, str]]:
    """Group, resource and verb of all requests for TrainJobs that meet whatever TrainJobs meet."""
    clock = ManualClock()
    client = ScalableClient(
        runtime_object(), resources=(*RESOURCES, *chain(*GANGS.values()), RESOURCE_CLAIM_TEMPLATES), clock=clock
    )
    client.faults.streaming_lists = streaming
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(build_manager(client, bare(), clock=clock).run)
        await settle()
        await _live(client, clock)
        tasks.cancel_scope.cancel()
    found = set()
    for request in client.requests:
        subresource = request.subresource and f"/{request.subresource}"
        # What is applied is made where it is not there.
        making = {"create"} if request.verb == "apply" and not subresource else set()
        for verb in VERBS.get(request.verb, {request.verb}) | making:
            found.add((request.resource.group, f"{request.resource.plural}{subresource}", verb))
    return found


async def _live(client: FakeClient, clock: ManualClock) -> None:
    for suspend in (True, False):
        client.add(train_job_object(suspend=suspend))
        await settle()
        client.add(client.objects(TRAIN_JOBS)[0] | {"spec": train_job_object(suspend=suspend)["spec"]})
        await settle()
    for generation in (1, 2):  # an event that is repeated is a patch of the first
        lost = train_job_object("lost", runtimeRef={"name": "none"})
        client.add(lost | {"metadata": lost["metadata"] | {"generation": generation}})
        await settle()
    limited = train_job_object("limited", activeDeadlineSeconds=1, ttlSecondsAfterFinished=1)
    limited["metadata"]["creationTimestamp"] = timestamp(clock.now())
    client.add(limited)
    await clock.advance(5)
    client.add(failed_pod())
    for name in ("with-log", "without-pods"):
        client.add(train_job_object(name))
        await settle()
        await _fail(client, name)
    for scheduler in GANGS:
        client.add(_named(runtime_object(podGroupPolicy={scheduler: {}}), scheduler))
        client.add(train_job_object(scheduler, runtimeRef={"name": scheduler}))
        await settle()
        await _fail(client, scheduler)
    client.add(_named(runtime_object(*MPI_JOBS, policy={"mpi": {}}), "mpi"))
    client.faults.fail(ServiceUnavailableError(503, "try again"), verb="apply", resource=JOBSETS)
    client.add(train_job_object("mpi", runtimeRef={"name": "mpi"}))
    await settle()
    await clock.advance(1)
    client.add(_named(runtime_object(policy={"torch": ELASTIC_POLICY}), "elastic"))
    client.add(train_job_object("elastic", runtimeRef={"name": "elastic"}, trainer={"numNodes": 2}))
    await settle()
    await _fail(client, "elastic")
    client.add(train_job_object("elastic-by-default", runtimeRef={"name": "elastic"}))
    await settle()
    client.faults.fail(InvalidError(422, "a field is wrong"), verb="apply", resource=JOBSETS)
    client.add(train_job_object("refused"))
    await settle()
    client.add(runtime_object(replicated_job("node", {"name": "trainer", "image": "better"})))
    await settle()


async def _fail(client: FakeClient, name: str) -> None:
    client.add((client.find(JOBSETS, name, "default") or {}) | {"status": {"terminalState": "Failed"}})
    await settle()


def _named(runtime: Object, name: str) -> Object:
    return runtime | {"metadata": {"name": name}}


def failed_pod() -> Object:
    """A pod of the TrainJob with-log whose log may be read."""
    ended: dict[str, Any] = {
        "name": "trainer",
        "state": {"terminated": {"exitCode": 3, "finishedAt": "2026-01-01T00:00:00Z"}},
    }
    parts = {"jobset-name": "with-log", "replicatedjob-name": "node", "job-index": "0"}
    job = {"apiVersion": "batch/v1", "kind": "Job", "name": "with-log-node-0", "uid": "job", "controller": True}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": "with-log-node-0-0-x",
            "namespace": "default",
            "labels": {f"jobset.sigs.k8s.io/{label}": value for label, value in parts.items()},
            "ownerReferences": [job],
        },
        "status": {"phase": "Failed", "containerStatuses": [ended]},
    }
