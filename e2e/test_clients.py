"""Clients that people use work as they come: each makes, reads, changes, watches and deletes objects."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import kubernetes
import lightkube
import pytest
from kubernetes.stream import stream
from lightkube.generic_resource import create_namespaced_resource
from lightkube.models.meta_v1 import ObjectMeta
from lightkube.resources.core_v1 import ConfigMap, Pod
from lightkube.types import PatchType

from e2e.cluster import Cluster, train_job
from e2e.processes import Process
from e2e.waiting import until

GROUP, VERSION, PLURAL = "trainer.kubeflow.org", "v2alpha1", "trainjobs"
SCRIPT = "print('trained')"
LOG = "trained\n"
LABEL = "jobset.sigs.k8s.io/jobset-name=job"
IN_CLUSTER = """
import asyncio
from pathlib import Path
from kubernetes_asyncio import client, config

async def main():
    config.load_incluster_config()
    namespace = Path("/var/run/secrets/kubernetes.io/serviceaccount/namespace").read_text()
    async with client.ApiClient() as api:
        maps = await client.CoreV1Api(api).list_namespaced_config_map(namespace)
    print("config maps:", *sorted(entry.metadata.name for entry in maps.items))

asyncio.run(main())
"""


def config_map(namespace: str, name: str = "settings") -> dict[str, Any]:
    metadata = {"name": name, "namespace": namespace, "labels": {"app": "demo"}}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"step": "1"}}


@pytest.fixture
def synchronous(cluster: Cluster) -> Iterator[kubernetes.client.ApiClient]:
    with kubernetes.config.new_client_from_config(str(cluster.kubeconfig)) as client:
        yield client


def test_kubernetes(cluster: Cluster, synchronous: kubernetes.client.ApiClient) -> None:
    """The official client: objects and their errors, patches of each kind, watches, and the log of a training."""
    core = kubernetes.client.CoreV1Api(synchronous)
    core.create_namespaced_config_map(cluster.namespace, config_map(cluster.namespace))
    with pytest.raises(kubernetes.client.ApiException) as caught:
        core.create_namespaced_config_map(cluster.namespace, config_map(cluster.namespace))
    assert (caught.value.status, caught.value.reason) == (409, "Conflict")
    assert '"reason":"AlreadyExists"' in caught.value.body

    read = core.read_namespaced_config_map("settings", cluster.namespace)
    read.data = {"step": "2"}
    replaced = core.replace_namespaced_config_map("settings", cluster.namespace, read)
    patched = core.patch_namespaced_config_map("settings", cluster.namespace, {"data": {"more": "yes"}})
    assert patched.data == {"step": "2", "more": "yes"}

    watch = kubernetes.watch.Watch()
    core.delete_namespaced_config_map("settings", cluster.namespace)
    events = watch.stream(
        core.list_namespaced_config_map,
        cluster.namespace,
        label_selector="app=demo",
        resource_version=replaced.metadata.resource_version,
        timeout_seconds=30,
    )
    seen = []
    with closing(events):
        for event in events:
            seen.append((event["type"], event["object"].data))
            if event["type"] == "DELETED":
                watch.stop()
    assert [kind for kind, _ in seen] == ["MODIFIED", "DELETED"]

    custom = kubernetes.client.CustomObjectsApi(synchronous)
    custom.create_namespaced_custom_object(GROUP, VERSION, cluster.namespace, PLURAL, train_job("job", SCRIPT))
    cluster.wait_for_state("job", "Complete")
    (pod,) = core.list_namespaced_pod(cluster.namespace, label_selector=LABEL).items
    assert core.read_namespaced_pod_log(pod.metadata.name, cluster.namespace) == LOG
    custom.delete_namespaced_custom_object(GROUP, VERSION, cluster.namespace, PLURAL, "job")
    until(lambda: not core.list_namespaced_pod(cluster.namespace).items, "the pods of the deleted job are gone")


def test_command_of_kubernetes(cluster: Cluster, synchronous: kubernetes.client.ApiClient) -> None:
    """The official client speaks the older protocol of commands, and gets output, errors and exit code."""
    cluster.apply(train_job("busy", "import time; time.sleep(600)"))
    cluster.wait_for_state("busy", "Running")
    core = kubernetes.client.CoreV1Api(synchronous)
    pod = cluster.list("pod")[0]["metadata"]["name"]
    command = stream(
        core.connect_get_namespaced_pod_exec,
        pod,
        cluster.namespace,
        command=["sh", "-c", "read line; echo $line; echo err >&2; exit 3"],
        stdin=True,
        stdout=True,
        stderr=True,
        tty=False,
        _preload_content=False,
    )
    command.write_stdin("typed\n")
    command.run_forever(timeout=60)
    command.sock.shutdown()  # it leaves that to the collector
    assert command.returncode == 3
    assert (command.read_stdout(), command.read_stderr()) == ("typed\n", "err\n")


def test_kubernetes_asyncio(cluster: Cluster) -> None:
    """The asynchronous client in a pod finds the API server and its token, and may do what a role allows."""
    if cluster.pod_network.startswith("plain"):
        pytest.skip("this machine allows no mount namespaces")
    cluster.kubectl("create", "configmap", "settings", "--from-literal=a=1")
    cluster.kubectl("create", "role", "reader", "--verb=list", "--resource=configmaps")
    account = f"--serviceaccount={cluster.namespace}:default"
    cluster.kubectl("create", "rolebinding", "reader", "--role=reader", account)
    cluster.apply(train_job("job", IN_CLUSTER))
    cluster.complete("job")
    assert cluster.log("job") == "config maps: job-runtime-snapshot kube-root-ca.crt settings\n"


def test_lightkube(cluster: Cluster) -> None:
    """lightkube, which applies on the server's side and has no code generated for our kinds."""
    configuration = lightkube.KubeConfig.from_file(cluster.kubeconfig).get()
    with closing(lightkube.Client(config=configuration, namespace=cluster.namespace, field_manager="test")) as client:
        _lightkube(cluster, client)


def _lightkube(cluster: Cluster, client: lightkube.Client) -> None:
    applied = client.apply(ConfigMap(metadata=ObjectMeta(name="settings", labels={"app": "demo"}), data={"step": "1"}))
    assert applied.metadata is not None
    with pytest.raises(lightkube.ApiError) as caught:
        client.apply(ConfigMap(metadata=ObjectMeta(name="settings"), data={"step": "2"}), field_manager="other")
    assert caught.value.status.code == 409
    assert caught.value.status.to_dict()["details"]["causes"][0]["field"] == ".data.step"
    client.apply(ConfigMap(metadata=ObjectMeta(name="settings"), data={"step": "2"}), field_manager="other", force=True)
    version = applied.metadata.resourceVersion
    with closing(client.watch(ConfigMap, fields={"metadata.name": "settings"}, resource_version=version)) as events:
        kind, obj = next(events)
    assert (kind, obj.data) == ("MODIFIED", {"step": "2"})

    train_jobs = create_namespaced_resource(GROUP, VERSION, "TrainJob", PLURAL)
    client.create(train_jobs.from_dict(train_job("job", SCRIPT)))
    cluster.wait_for_state("job", "Complete")
    client.patch(train_jobs, "job", {"metadata": {"annotations": {"seen": "yes"}}}, patch_type=PatchType.MERGE)
    assert client.get(train_jobs, "job").to_dict()["metadata"]["annotations"] == {"seen": "yes"}
    (pod,) = client.list(Pod, labels={"jobset.sigs.k8s.io/jobset-name": "job"})
    assert pod.metadata is not None
    assert pod.metadata.name is not None
    assert list(client.log(pod.metadata.name)) == [LOG]
    client.delete(train_jobs, "job")
    client.deletecollection(ConfigMap)
    assert "settings" not in {item.metadata.name for item in client.list(ConfigMap) if item.metadata}


def test_kopf(cluster: Cluster, tmp_path: Path) -> None:
    """An operator written with kopf sees objects come and go, holds them with a finalizer, and writes events."""
    script = Path(__file__).with_name("kopf_operator.py")
    command = [sys.executable, "-m", "kopf", "run", "--namespace", cluster.namespace, str(script)]
    operator = Process(command, tmp_path / "kopf.log", {"KUBECONFIG": str(cluster.kubeconfig)})
    operator.start(ready="Initial authentication has finished")
    try:
        question = config_map(cluster.namespace, "question") | {"data": {"question": "world"}}
        question["metadata"]["labels"] = {"ask": "yes"}
        cluster.apply(question)

        def answered() -> bool:
            answer: str = (cluster.get("configmap", "question") or {}).get("data", {}).get("answer", "")
            return answer == "hello world"

        until(answered, lambda: f"kopf has answered:\n{operator.output()}")
        assert (cluster.get("configmap", "question") or {})["metadata"]["finalizers"]
        cluster.kubectl("delete", "configmap", "question", "--timeout=30s")
        operator.wait_for_output("forgot question")
        assert any(event["reason"] == "Answered" for event in cluster.list("events"))
    finally:
        operator.stop()
