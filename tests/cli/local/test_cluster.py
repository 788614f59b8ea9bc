"""The command line of the dev cluster."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from typing import Any

import pytest

from trainer.cli.errors import BadInputError
from trainer.cli.local.cluster import ClusterFeature, GangScheduler, PodNetworkMode, cluster_command
from trainer_devcluster.feature_gates import FeatureGates
from trainer_devcluster.scheduler import parse_gang_schedulers


def test_defaults() -> None:
    """By default the dev cluster takes a free port and keeps everything in a directory of its own."""
    assert cluster_command() == [
        sys.executable, "-m", "trainer_devcluster", "--port", "0", "--pod-network", "auto"
    ]  # fmt: skip


def test_all_options(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Paths are absolute, so that it does not matter where the cluster runs."""
    monkeypatch.chdir(tmp_path)
    command = cluster_command(
        port=6443, data_dir=Path("data"), kubeconfig=Path("kc"), kubelet=False, pod_network=PodNetworkMode.PLAIN,
        feature_gates="ElasticJobSet=true",
    )  # fmt: skip

    assert command[3:] == [
        "--port", "6443", "--pod-network", "plain", "--data-dir", str(tmp_path / "data"),
        "--kubeconfig", str(tmp_path / "kc"), "--no-kubelet", "--feature-gates", "ElasticJobSet=true",
    ]  # fmt: skip


def test_paths_that_cannot_be_used(tmp_path: Path) -> None:
    """A path that cannot work is refused before anything starts."""
    (tmp_path / "file").touch()

    with pytest.raises(BadInputError, match=r"--data-dir: .*file is not a directory"):
        cluster_command(data_dir=tmp_path / "file")
    with pytest.raises(BadInputError, match=r"--kubeconfig: .* is a directory"):
        cluster_command(kubeconfig=tmp_path)
    with pytest.raises(BadInputError, match="--kubeconfig: there is no directory"):
        cluster_command(kubeconfig=tmp_path / "missing" / "kc")


def test_missing_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the extra `cluster` the error says what to install."""
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)

    with pytest.raises(BadInputError, match=r"is not installed: pip install .*, or in a checkout pip install \./pack"):
        cluster_command()


@pytest.mark.parametrize("text", ["Elastic=true", "ElasticJobSet", "ElasticJobSet=1", "ElasticJobSet=true,"])
def test_feature_gates_that_do_not_exist(text: str) -> None:
    """They are refused before anything starts, with the valid ones."""
    with pytest.raises(BadInputError, match=r"--feature-gates: .* is not NAME=true or NAME=false .*: ElasticJobSet"):
        cluster_command(feature_gates=text)


def test_feature_gates_are_those_of_the_cluster() -> None:
    """The command line knows every gate that the dev cluster understands, and no other."""
    with pytest.raises(ValueError, match="known are: ") as caught:
        FeatureGates.parse("Unknown=true")
    assert str(caught.value).partition("known are: ")[2].split(", ") == list(ClusterFeature)


def test_audit_log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its file is made by the cluster, in a directory that is there."""
    monkeypatch.chdir(tmp_path)
    assert cluster_command(audit_log_path=Path("log"))[-2:] == ["--audit-log-path", str(tmp_path / "log")]
    with pytest.raises(BadInputError, match=r"--audit-log-path: .* is a directory: name the file"):
        cluster_command(audit_log_path=tmp_path)
    with pytest.raises(BadInputError, match="--audit-log-path: there is no directory missing"):
        cluster_command(audit_log_path=Path("missing/log"))


def test_options_of_the_node() -> None:
    """What the node has and who schedules gangs goes to the cluster as it is given."""
    command = cluster_command(fake_pods=True, node_resources="nvidia.com/gpu=8,cpu=4", gang_schedulers="volcano")
    assert command[-5:] == [
        "--fake-pods", "--node-resources", "nvidia.com/gpu=8,cpu=4", "--gang-schedulers", "volcano"
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        pytest.param({"node_resources": "gpu"}, "--node-resources: 'gpu' is not NAME=QUANTITY", id="resources"),
        pytest.param({"gang_schedulers": "kueue"}, "--gang-schedulers: 'kueue' is not one of: cosch", id="gangs"),
        pytest.param({"fake_pods": True, "kubelet": False}, "--fake-pods needs the kubelet", id="no-kubelet"),
    ],
)
def test_options_that_make_no_sense(options: dict[str, Any], complaint: str) -> None:
    """They are refused before anything starts."""
    with pytest.raises(BadInputError, match=complaint):
        cluster_command(**options)


def test_gang_schedulers_are_those_of_the_cluster() -> None:
    """Every name that the command line knows is one that the dev cluster stands in for."""
    assert len(parse_gang_schedulers(",".join(GangScheduler))) == len(GangScheduler)
