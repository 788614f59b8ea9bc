"""Names of pods in hosts files."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.devcluster.kubelet.fakes import make_pod
from trainer.devcluster.kubelet.pod_names import HostsFiles, PodNames, host_aliases, hosts_file, rewrite_in_place

if TYPE_CHECKING:
    from pathlib import Path

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
