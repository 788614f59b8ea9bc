"""Names of pods in hosts files."""

from __future__ import annotations

from pathlib import Path

import pytest

from packages.devcluster.tests.kubelet.fakes import make_pod
from trainer.kube.objects import Object
from trainer_devcluster.kubelet.pod_names import (
    HostsFiles,
    PodNames,
    ServiceAddress,
    headless_addresses,
    host_aliases,
    hosts_file,
    rewrite_in_place,
)

NODE = PodNames("team", "job-node-0-0", "job", "10.88.0.2")


def names_in(text: str, address: str) -> set[str]:
    """All names of an address."""
    lines = [line.split() for line in text.splitlines() if not line.startswith("#")]
    return {name for found, *names in lines if found == address for name in names}


def test_same_namespace() -> None:
    """In its own namespace a pod and its service have all forms of their names."""
    text = hosts_file(NODE, [NODE], "127.0.0.1\tlocalhost\n")
    zones = ["", ".team", ".team.svc", ".team.svc.cluster.local"]
    expected = {f"job-node-0-0.job{zone}" for zone in zones} | {f"job{zone}" for zone in zones} | {"job-node-0-0"}
    assert names_in(text, "10.88.0.2") == expected
    assert names_in(text, "127.0.0.1") == {"localhost"}


def test_address_has_the_full_name_first() -> None:
    """A lookup by address yields the fully qualified name."""
    assert NODE.line_for("team").split()[1] == "job-node-0-0.job.team.svc.cluster.local"


def test_other_namespace() -> None:
    """In other namespaces only qualified names exist."""
    other = PodNames("other", "pod", "", "10.88.0.3")
    text = hosts_file(other, [NODE, other], "")
    assert "job-node-0-0.job.team" in names_in(text, "10.88.0.2")
    assert not {"job-node-0-0", "job-node-0-0.job", "job"} & names_in(text, "10.88.0.2")
    assert names_in(text, "10.88.0.3") == {"pod"}


def test_names_of_a_pod() -> None:
    """Others find a pod only if it has both hostname and subdomain; a long host name is cut."""
    assert PodNames.of(make_pod("pod", subdomain="job"), "a").subdomain == ""
    assert PodNames.of(make_pod("pod", hostname="host", subdomain="job"), "a").subdomain == "job"
    assert PodNames.of(make_pod("x" * 62 + "-tail"), "a").hostname == "x" * 62


def test_host_aliases() -> None:
    """The pod's own aliases are added."""
    pod = make_pod("pod", hostAliases=[{"ip": "10.0.0.1", "hostnames": ["a", "b"]}])
    text = hosts_file(NODE, [NODE], "", host_aliases(pod))
    assert names_in(text, "10.0.0.1") == {"a", "b"}


def test_rewrite_in_place(tmp_path: Path) -> None:
    """A rewritten file stays the same file, whether it grows or shrinks."""
    file = tmp_path / "hosts"
    rewrite_in_place(file, "a long content\n")
    inode = file.stat().st_ino
    for text in ("short\n", "longer than before\n" * 3, ""):
        rewrite_in_place(file, text)
        assert (file.read_text(), file.stat().st_ino) == (text, inode)


async def test_pods_come_and_go(tmp_path: Path) -> None:
    """All files follow when a pod is added or removed."""
    files = HostsFiles("")
    other = PodNames("team", "job-node-0-1", "job", "10.88.0.3")
    await files.add("one", NODE, tmp_path / "one")
    await files.add("two", other, tmp_path / "two")
    assert "job-node-0-1" in names_in((tmp_path / "one").read_text(), "10.88.0.3")
    assert "job-node-0-0" in names_in((tmp_path / "two").read_text(), "10.88.0.2")
    await files.remove("two")
    assert names_in((tmp_path / "one").read_text(), "10.88.0.3") == set()


def service(name: str, cluster_ip: str = "None", namespace: str = "team", **selector: str) -> Object:
    return {"metadata": {"name": name, "namespace": namespace}, "spec": {"clusterIP": cluster_ip, "selector": selector}}


@pytest.mark.parametrize(
    ("described", "addresses"),
    [
        pytest.param(service("ring", a="b"), ["10.88.0.2", "10.88.0.3"], id="headless"),
        pytest.param(service("ring", a="b", c="d"), ["10.88.0.3"], id="two labels"),
        pytest.param(service("job", a="b"), ["10.88.0.3"], id="a pod that has it as its subdomain"),
        pytest.param(service("ring", namespace="other", a="b"), [], id="other namespace"),
        pytest.param(service("ring", "10.96.0.10", a="b"), [], id="cluster IP"),
        pytest.param(service("ring"), [], id="without a selector"),
    ],
)
def test_headless_services(described: Object, addresses: list[str]) -> None:
    """The name of a headless Service stands for all pods that it selects."""
    second = PodNames("team", "pod", "", "10.88.0.3")
    found = headless_addresses([described], [(NODE, {"a": "b"}), (second, {"a": "b", "c": "d"})])
    assert [entry.address for entry in found] == addresses


def test_names_of_a_service() -> None:
    """Other namespaces need the namespace in the name."""
    address = ServiceAddress("default", "kubernetes", "10.96.0.1")
    text = hosts_file(NODE, [], "", services=[address])
    qualified = {"kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc.cluster.local"}
    assert names_in(text, "10.96.0.1") == qualified
    own = hosts_file(PodNames("default", "pod", "", "10.88.0.3"), [], "", services=[address])
    assert names_in(own, "10.96.0.1") == qualified | {"kubernetes"}


async def test_services_come_and_go(tmp_path: Path) -> None:
    """Files name the API server always, and other Services as they are at the last refresh."""
    services = [service("ring", a="b")]
    files = HostsFiles("", "10.96.0.1", lambda: services)
    await files.add("one", NODE, tmp_path / "one", labels={"a": "b"})
    assert "ring" in names_in((tmp_path / "one").read_text(), "10.88.0.2")
    services.clear()
    await files.refresh()
    assert "ring" not in names_in((tmp_path / "one").read_text(), "10.88.0.2")
    assert "kubernetes.default.svc" in names_in((tmp_path / "one").read_text(), "10.96.0.1")
