"""The cluster of kind: what it is made of, and what is said where something is missing."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml

from hack import kind_cluster
from hack.kind_cluster import KIND, NODES, KindError, cluster_config, gateway, main
from tests.hack.programs import Programs, programs

__all__ = ["programs"]

IPV6 = {"Subnet": "fc00:f853:ccd:e793::/64", "Gateway": "fc00:f853:ccd:e793::1"}
IPV4 = {"Subnet": "172.18.0.0/16", "Gateway": "172.18.0.1"}


@pytest.fixture
def directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Files of the cluster go here, and kubectl is the one on PATH."""
    monkeypatch.setattr(kind_cluster, "ROOT", tmp_path)
    monkeypatch.setattr(kind_cluster, "DIRECTORY", tmp_path / "kind")
    monkeypatch.setattr("sys.executable", str(tmp_path / "bin" / "python"))
    return tmp_path / "kind"


@pytest.mark.parametrize("version", NODES)
def test_nodes(version: str) -> None:
    """Each image is named by its digest, is of its version, and kind reads gates and served versions beside it."""
    node = NODES[version]
    config = cluster_config(node)
    (only,) = config["nodes"]
    assert only["image"].startswith(f"kindest/node:v{version}.")
    assert len(only["image"].partition("@sha256:")[2]) == 64
    assert set(config["featureGates"]) == set(node.gates)
    assert bool(config["runtimeConfig"]) == ("GenericWorkload" in node.gates)


def test_create(directory: Path, programs: Programs) -> None:
    """The cluster has JobSet and Kueue before anything is tested, and the kubeconfig of the user is left alone."""
    programs.reply("kind", "version", f"kind {KIND} go1.27 linux/amd64\n")
    programs.add("docker", "kind", "kubectl")
    assert main(["create", "--kubernetes", "1.36"]) == 0
    assert [call[1] for call in programs.calls if call[0] == "kind"] == ["version", "create"]
    said = [" ".join(call) for call in programs.calls if call[0] == "kubectl"]
    assert [("jobset" in each, "kueue" in each) for each in said] == [(True, False), (False, True)] * 2
    assert [" apply --server-side " in each for each in said] == [True, True, False, False]
    assert all("kubeconfig" in " ".join(call) for call in programs.calls[1:])
    written = yaml.safe_load((directory / "cluster.yaml").read_text())
    assert written == cluster_config(NODES["1.36"])


def test_another_release_of_kind(directory: Path, programs: Programs, capsys: pytest.CaptureFixture[str]) -> None:
    """It may work all the same, so that there is a warning with both versions."""
    programs.reply("kind", "version", "kind v0.20.0 go1.20 linux/amd64\n")
    programs.add("docker", "kind", "kubectl")
    assert main(["create"]) == 0
    said = capsys.readouterr().err
    assert KIND in said
    assert "v0.20.0" in said


@pytest.mark.parametrize(
    ("present", "said"),
    [
        pytest.param((), "docker is not on PATH", id="docker"),
        pytest.param(("docker",), f"install kind {KIND}", id="kind"),
    ],
)
def test_what_is_missing(
    present: tuple[str, ...], said: str, directory: Path, programs: Programs, capsys: pytest.CaptureFixture[str]
) -> None:
    """A missing program is named before anything is started."""
    programs.add(*present)
    assert main(["create"]) == 2
    assert said in capsys.readouterr().err
    assert programs.calls == []


def test_end_to_end_tests(directory: Path, programs: Programs, capfd: pytest.CaptureFixture[str]) -> None:
    """They run on the cluster's kubeconfig; before there is a cluster, the target that makes it is named."""
    programs.reply("docker", "network inspect kind", json.dumps([{"IPAM": {"Config": [IPV6, IPV4]}}]))
    programs.add("docker", "make")
    assert main(["e2e"]) == 2
    assert "make kind-cluster" in capfd.readouterr().err
    directory.mkdir()
    (directory / "kubeconfig").touch()
    assert main(["e2e"]) == 0
    assert programs.calls[-1] == ["make", "e2e", f"KUBECONFIG={directory / 'kubeconfig'}"]


@pytest.mark.parametrize(
    ("pools", "address"),
    [
        pytest.param([IPV4], "172.18.0.1", id="ipv4"),
        pytest.param([IPV6, IPV4], "172.18.0.1", id="both"),
        pytest.param([IPV6], "", id="ipv6"),
        pytest.param(None, "", id="none"),
    ],
)
def test_gateway(pools: list[dict[str, str]] | None, address: str) -> None:
    """The manager listens on IPv4; a network without it is refused."""
    networks = [{"IPAM": {"Config": pools}}]
    if address:
        assert gateway(networks) == address
        return
    with pytest.raises(KindError, match="no IPv4 gateway"):
        gateway(networks)
