"""config/history: what it runs is restricted, starts, and may do what it does and nothing else."""

from __future__ import annotations

from pathlib import Path

import anyio
import pytest
from anyio.to_thread import run_sync

import trainer
from hack.reference.command_line import commands
from packages.dashboard.tests.history.conftest import (
    Cluster,
    FailingDatabase,
    gang,
    node_pod,
    recorded_cluster,
    train_job,
)
from tests.config.kustomized import rendered
from tests.config.pod_security import violations
from tests.config.test_references import only, ports
from tests.config.test_roles import VERBS, as_texts, grants
from trainer.api.optimization import OPTIMIZATION_JOBS
from trainer.kube.objects import Object, labels_of, name_of
from trainer.plugins import coscheduling, volcano
from trainer.workloads.scheduling_groups import POD_GROUPS
from trainer_dashboard.commands.history_database import VARIABLE, database_of
from trainer_kube_testing import ManualClock, StreamingLists

both = pytest.mark.parametrize("overlay", ["history", "history-postgresql"])


def container_of(overlay: str) -> Object:
    """The recorder's."""
    (container,) = only(rendered(overlay), "Deployment")["spec"]["template"]["spec"]["containers"]
    found: Object = container
    return found


@both
def test_pod(overlay: str) -> None:
    """Its namespace, which is restricted, takes the pod; it writes nowhere but where something is mounted."""
    objects = rendered(overlay)
    deployment = only(objects, "Deployment")["spec"]
    pod, container = deployment["template"]["spec"], container_of(overlay)
    assert violations(pod) == []
    assert container["securityContext"]["readOnlyRootFilesystem"] is True
    assert container["image"] == f"trainer-operator:{trainer.__version__}"
    assert pod["serviceAccountName"] == name_of(only(objects, "ServiceAccount"))
    assert set(container["resources"]["limits"]) == {"memory"}
    assert {mount["name"] for mount in container["volumeMounts"]} == {volume["name"] for volume in pod["volumes"]}
    assert ports(deployment["template"]) == {"health": 8081}


@both
def test_one_at_a_time(overlay: str) -> None:
    """The old pod is gone before the new one starts: the volume is of one node, and one process records a cluster."""
    deployment = only(rendered(overlay), "Deployment")["spec"]
    assert (deployment["replicas"], deployment["strategy"]) == (1, {"type": "Recreate"})


@both
def test_nobody_reaches_it(overlay: str) -> None:
    """The policy selects the pod, and lets nobody in."""
    objects = rendered(overlay)
    policy = only(objects, "NetworkPolicy")["spec"]
    labels = labels_of(only(objects, "Deployment")["spec"]["template"])
    assert policy["podSelector"]["matchLabels"].items() <= labels.items()
    assert (policy["policyTypes"], policy.get("ingress", [])) == (["Ingress"], [])


@both
def test_command(overlay: str) -> None:
    """The command line is one of the command, with the port of the probes, and has no URL in it."""
    container = container_of(overlay)
    arguments: list[str] = container["command"]
    assert arguments.pop(0) == "trainer"
    context = commands()[" ".join(arguments[:2])].make_context("record", arguments[2:])
    assert context.params["health_port"] == container["ports"][0]["containerPort"]
    assert not [argument for argument in arguments if "://" in argument]


def test_database(monkeypatch: pytest.MonkeyPatch) -> None:
    """SQLite is on the volume, where the user of the pod may write; the URL of PostgreSQL comes from a Secret."""
    container = container_of("history")
    variables = {each["name"]: each for each in container["env"]}
    monkeypatch.delenv("HOME")
    monkeypatch.setenv(VARIABLE, variables[VARIABLE]["value"])
    database = database_of(None)
    assert str(database.file) in {f"{mount['mountPath']}/history.db" for mount in container["volumeMounts"]}
    pod = only(rendered("history"), "Deployment")["spec"]["template"]["spec"]
    assert pod["securityContext"]["fsGroup"] == pod["securityContext"]["runAsUser"]
    claims = [v["persistentVolumeClaim"]["claimName"] for v in pod["volumes"] if "persistentVolumeClaim" in v]
    assert claims == [name_of(only(rendered("history"), "PersistentVolumeClaim"))]

    other = {each["name"]: each for each in container_of("history-postgresql")["env"]}
    assert other[VARIABLE]["valueFrom"] == {"secretKeyRef": {"name": "trainer-history-database", "key": "url"}}
    assert "value" not in other[VARIABLE]
    assert not [obj for obj in rendered("history-postgresql") if obj["kind"] == "PersistentVolumeClaim"]
    database.close()


def test_binding() -> None:
    """The role is for the account of the recorder alone, and only reads."""
    objects = rendered("history")
    binding = only(objects, "ClusterRoleBinding")
    assert binding["roleRef"]["name"] == name_of(only(objects, "ClusterRole"))
    assert [(each["namespace"], each["name"]) for each in binding["subjects"]] == [
        ("trainer-system", "trainer-history")
    ]
    assert {verb for _, _, verb in grants(only(objects, "ClusterRole"))} == {"get", "list", "watch"}
    assert "secrets" not in {resource for _, resource, _ in grants(only(objects, "ClusterRole"))}


async def test_the_role_allows_what_the_recorder_does(tmp_path: Path) -> None:
    """With a training from its beginning to its end, it asks for what its role allows and nothing else."""
    used = set()
    for streaming in (StreamingLists.SERVED, StreamingLists.REFUSED):
        used |= await requests_of_a_training(tmp_path / streaming.name, streaming)
    role = only(rendered("history"), "ClusterRole")
    allowed = grants(role)
    assert as_texts(used - allowed) == set()
    assert as_texts(allowed - used) == set()
    (namespaces,) = [rule for rule in role["rules"] if "namespaces" in rule["resources"]]
    assert namespaces["resourceNames"] == ["kube-system"]


async def requests_of_a_training(directory: Path, streaming: StreamingLists) -> set[tuple[str, str, str]]:
    """Group, resource and verb of all requests of the recorder."""
    clock = ManualClock()
    database = await run_sync(FailingDatabase, f"sqlite:///{directory}/history.db")
    await run_sync(database.migrate)
    groups = (coscheduling.POD_GROUPS, volcano.POD_GROUPS, *POD_GROUPS)
    cluster = recorded_cluster(clock, database, *groups, OPTIMIZATION_JOBS)
    cluster.client.faults.streaming_lists = streaming
    await _train(cluster)
    await run_sync(database.close)
    return {
        (request.resource.group, f"{request.resource.plural}{request.subresource and f'/{request.subresource}'}", verb)
        for request in cluster.client.requests
        for verb in VERBS.get(request.verb, {request.verb})
    }


async def _train(cluster: Cluster) -> None:
    job = train_job("demo")
    async with cluster.recorder():
        cluster.client.add(job)
        own, rest = gang(job)
        for obj in (*rest, own):
            cluster.client.add(obj)
        pod = cluster.client.add(node_pod(job))
        log = cluster.client.log(name_of(pod), "default", "node")
        log.write(b"hello\n")
        await cluster.until(lambda history: history.trainings())
        with anyio.fail_after(20):
            while not cluster.client.requests_of("log"):
                await cluster.clock.advance(0.5)
        log.end()
        cluster.client.add(node_pod(job, ended=True))
        cluster.end("demo")
        await cluster.until(lambda history: history.log_tails("uid-of-demo"))
