"""Frameworks of scripts and the runtimes for them."""

from __future__ import annotations

import pytest

from trainer.cli.errors import BadInputError
from trainer.cli.manifests import runtimes
from trainer.cli.run.frameworks import ChosenRuntime, choose_runtime, framework_of
from trainer.kube.objects import labels_of
from trainer.v1alpha1.client import decoded
from trainer.v1alpha1.discovery import Version


def shipped(version: Version = "v2alpha1") -> list[ChosenRuntime]:
    """The runtimes that we ship, as a cluster of the version shows them."""
    return [
        ChosenRuntime(decoded(obj), obj["kind"], labels_of(obj)["trainer.kubeflow.org/framework"])
        for obj in runtimes(version)
    ]


@pytest.mark.parametrize(
    ("modules", "framework"),
    [
        pytest.param({"torch", "os"}, "torch", id="torch"),
        pytest.param({"timm"}, "torch", id="a library on torch"),
        pytest.param({"transformers", "peft", "torch"}, "transformers", id="transformers has torch"),
        pytest.param({"deepspeed", "transformers"}, "deepspeed", id="deepspeed has transformers"),
        pytest.param({"deepspeed", "torch", "mpi4py"}, "deepspeed", id="deepspeed has torch"),
        pytest.param({"keras", "jax"}, "jax", id="keras on jax"),
        pytest.param({"keras"}, "tensorflow", id="keras alone"),
        pytest.param({"mpi4py", "numpy"}, "mpi", id="MPI alone"),
        pytest.param({"sklearn"}, "plain", id="none"),
        pytest.param(set(), "plain", id="nothing"),
    ],
)
def test_framework(modules: set[str], framework: str) -> None:
    """Imports decide about the framework; libraries that others build on decide only alone."""
    assert framework_of(modules, "train.py") == framework


def test_installed_library() -> None:
    """Where requirements bring transformers, an image with torch is enough."""
    assert framework_of({"transformers", "torch"}, "train.py", {"transformers"}) == "torch"
    assert framework_of({"transformers"}, "train.py", {"peft"}) == "transformers"


def test_several_frameworks() -> None:
    """Nobody guesses between two frameworks."""
    with pytest.raises(BadInputError) as caught:
        framework_of({"torch", "jax"}, "train.py")

    assert str(caught.value) == (
        "train.py imports jax (runtimes of jax) and torch (runtimes of torch): choose with --runtime NAME "
        "(see: trainer runtimes)"
    )


@pytest.mark.parametrize(
    ("version", "framework", "name"),
    [
        pytest.param("v2alpha1", "torch", "torch-distributed", id="torch"),
        pytest.param("v2alpha1", "jax", "jax-distributed", id="jax"),
        pytest.param("v2alpha1", "mpi", "mpi-openmpi", id="MPI"),
        pytest.param("v2alpha1", "plain", "plain", id="plain"),
        pytest.param("v2alpha1", "deepspeed", "deepspeed-distributed", id="deepspeed"),
        pytest.param("v2alpha1", "transformers", "transformers-distributed", id="transformers"),
        pytest.param("v1alpha1", "torch", "torch-distributed", id="torch, v1alpha1"),
        pytest.param("v1alpha1", "transformers", "torch-distributed", id="transformers on torch"),
        pytest.param("v1alpha1", "xgboost", "xgboost-distributed", id="xgboost, v1alpha1"),
    ],
)
def test_usual_runtime(version: Version, framework: str, name: str) -> None:
    """Of several runtimes for a framework the usual one is meant."""
    chosen = choose_runtime(shipped(version), "team", name=None, framework=framework, script="train.py")
    assert (chosen.name, chosen.kind) == (name, "ClusterTrainingRuntime")


def test_runtime_by_name() -> None:
    """A runtime is taken by its name, whatever the framework."""
    chosen = choose_runtime(shipped(), "team", name="torch-single-node", framework="jax", script="train.py")
    assert chosen.name == "torch-single-node"


@pytest.mark.parametrize(
    ("version", "name", "framework", "problem"),
    [
        pytest.param(
            "v2alpha1", "torhc", "torch", "--runtime: namespace team has no runtime torhc: deepspeed-", id="name"
        ),
        pytest.param("v1alpha1", None, "paddle", "no runtime for paddle: choose with --runtime: deep", id="framework"),
    ],
)
def test_no_runtime(version: Version, name: str | None, framework: str, problem: str) -> None:
    """Without a fitting runtime the choices are listed, each with its framework."""
    with pytest.raises(BadInputError) as caught:
        choose_runtime(shipped(version), "team", name=name, framework=framework, script="train.py")

    assert problem in str(caught.value)
    assert "torch-distributed (torch)" in str(caught.value)


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        pytest.param("jax-distribted", "jax-distributed", id="typing error"),
        pytest.param("torch", "torch-distributed or torch-distributed-elastic or torch-single-node", id="framework"),
    ],
)
def test_runtime_that_is_meant(name: str, meant: str) -> None:
    """A name with a mistake, or that of a framework, leads to the runtimes that are meant, and not to a list of all."""
    with pytest.raises(BadInputError, match=f"no runtime {name}: did you mean {meant}\\? trainer runtimes lists all$"):
        choose_runtime(shipped(), "team", name=name, framework="torch", script="train.py")


def test_ambiguous_and_missing_runtimes() -> None:
    """Several unusual names are not chosen from, and without any the remedy is to install some."""
    mine = [ChosenRuntime({"metadata": {"name": name}}, "TrainingRuntime", "torch") for name in ("a", "b")]
    for known, problem in ((mine, r"several runtimes .*: a \(torch\), b \(torch\)"), ([], "trainer install-runtimes")):
        with pytest.raises(BadInputError, match=problem):
            choose_runtime(known, "team", name=None, framework="torch", script="train.py")


def test_runtime_without_training() -> None:
    """A runtime that only fetches data cannot take a script."""
    jobs = [{"name": "dataset-initializer", "template": {}}]
    obj = {"metadata": {"name": "odd"}, "spec": {"template": {"spec": {"replicatedJobs": jobs}}}}
    with pytest.raises(BadInputError, match="odd has no Job that trains"):
        ChosenRuntime(obj, "TrainingRuntime", "").training_containers()
