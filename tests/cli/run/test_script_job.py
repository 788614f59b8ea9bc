"""The TrainJobs of scripts, built into JobSets by the real pipeline."""

from __future__ import annotations

from typing import Any

import pytest

from tests.cli.run.test_frameworks import shipped
from trainer.api.kueue import QUEUE_LABEL
from trainer.cli.documents import Document, checked
from trainer.cli.errors import BadInputError
from trainer.cli.manifests import runtimes
from trainer.cli.offline.render import render_documents
from trainer.cli.run.code_source import GitCode
from trainer.cli.run.frameworks import ChosenRuntime
from trainer.cli.run.imports import Imports
from trainer.cli.run.options import ScriptOptions
from trainer.cli.run.package import CodePackage
from trainer.cli.run.script_job import Code, as_served, job_name, train_job
from trainer.kube.objects import Object, name_of
from trainer.v1alpha1.discovery import Version
from trainer.workloads import JOBSETS

START = ["python3", "/mnt/trainer/source/start.py", "--"]
TORCH = [*START, "torchrun", "train.py"]
PADDLE = [*START, "python3", "-m", "paddle.distributed.launch", "train.py"]
PYTHON = [*START, "python3", "train.py"]
OPEN_MPI = ["mpirun", "-x", "PATH", "-x", "A", *PYTHON]
WORDS = ("command", "args")
MOUNTS = {"/mnt/trainer/source": "trainer-source", "/mnt/trainer/work": "trainer-work"}


def runtime_named(name: str, version: Version = "v2alpha1") -> ChosenRuntime:
    return next(each for each in shipped(version) if each.name == name)


PACKAGE = CodePackage({}, {}, "")
NAME = "train-x"


def job_of(
    runtime: str,
    version: Version = "v2alpha1",
    *,
    script: str = "train.py",
    imports: Imports | None = None,
    git: GitCode | None = None,
    revision: str = "",
    resources: Object | None = None,
    **changed: Any,
) -> Object:
    """The TrainJob of a script, as a cluster that serves the version takes it."""
    given: dict[str, Any] = {"arguments": ("--epochs", "3"), "nodes": 2}
    options = ScriptOptions(**(given | changed))
    code = Code(PACKAGE, script, imports, git=git, revision=revision)
    environment: list[Object] = [{"name": "A", "value": "1"}]
    chosen = runtime_named(runtime, version)
    job = train_job(options, code, chosen, NAME, "team", resources=resources or {}, environment=environment)
    return as_served(job, version)


def built(job: Object) -> Object:
    """The JobSet that the manager builds from the TrainJob."""
    document = checked(job, "train.py")
    assert isinstance(document, Document), document
    (rendered,) = render_documents([document])
    assert rendered.warnings == ()
    (job_set,) = [component.object for component in rendered.components if component.resource == JOBSETS]
    return job_set


def container_of(pods: dict[str, Object], job: str) -> Object:
    """Its main container."""
    found: list[Object] = [each for each in pods[job]["containers"] if each["name"] in {"trainer", "node"}]
    return found[0]


@pytest.mark.parametrize(
    ("version", "name", "command"),
    [
        *(
            pytest.param(version, name, command, id=f"{name}, {version}")
            for name, command, versions in (
                ("torch-distributed", TORCH, ("v2alpha1", "v1alpha1")),
                ("torch-distributed-elastic", TORCH, ("v2alpha1",)),
                ("torch-single-node", TORCH, ("v2alpha1",)),
                ("jax-distributed", PYTHON, ("v2alpha1", "v1alpha1")),
                ("paddle-distributed", PADDLE, ("v2alpha1",)),
                ("tensorflow-distributed", PYTHON, ("v2alpha1",)),
                ("tensorflow-parameter-server", PYTHON, ("v2alpha1",)),
                ("xgboost-distributed", PYTHON, ("v2alpha1", "v1alpha1")),
                ("plain", PYTHON, ("v2alpha1",)),
                ("mpi-openmpi", OPEN_MPI, ("v2alpha1",)),
                ("mpi-intel", ["mpirun", *PYTHON], ("v2alpha1",)),
                ("mpi-mpich", ["mpirun", *PYTHON], ("v2alpha1",)),
                ("deepspeed-distributed", OPEN_MPI, ("v2alpha1", "v1alpha1")),
                ("mlx-distributed", OPEN_MPI, ("v2alpha1", "v1alpha1")),
            )
            for version in versions
        ),
    ],
)
def test_job_set(version: Version, name: str, command: list[str]) -> None:
    """Whatever the runtime, the code is on each node, and what starts the training starts it there."""
    job_set = built(job_of(name, version, nodes=1 if name in {"plain", "torch-single-node"} else 2))
    pods = {each["name"]: each["template"]["spec"]["template"]["spec"] for each in job_set["spec"]["replicatedJobs"]}

    starter = "launcher" if command[0] == "mpirun" else "node"
    container = container_of(pods, starter)
    assert [container[field] for field in WORDS] == [command, ["--epochs", "3"]]
    roles = {"chief", "ps"} & pods.keys()
    for job in {starter, "node", *roles}:
        if job in roles:
            assert [container_of(pods, job)[field] for field in WORDS] == [container[field] for field in WORDS]
        mounts = {each["mountPath"]: each["name"] for each in container_of(pods, job)["volumeMounts"]}
        assert mounts.items() >= MOUNTS.items()
        assert {"name": "trainer-source", "configMap": {"name": PACKAGE.config_map_name(NAME)}} in pods[job]["volumes"]
        assert {"name": "trainer-work", "emptyDir": {}} in pods[job]["volumes"]
    assert {"name": "A", "value": "1"} in container["env"]


@pytest.mark.parametrize("version", ["v2alpha1", "v1alpha1"])
def test_flux(version: Version) -> None:
    """The arguments of the script stand behind it in the one line that Flux is given."""
    (job,) = built(job_of("flux-distributed", version))["spec"]["replicatedJobs"]
    container = container_of({"node": job["template"]["spec"]["template"]["spec"]}, "node")
    assert (container["command"][-1], container.get("args") or []) == (" ".join([*PYTHON, "--epochs", "3"]), [])


def test_each_runtime_is_covered() -> None:
    """Runtimes that fine-tune by recipes take a script by the same rules as the others."""
    for version in ("v2alpha1", "v1alpha1"):
        for runtime in runtimes(version):
            name = name_of(runtime)
            assert job_of(name, version, nodes=1)["spec"]["runtimeRef"]["name"] == name


@pytest.mark.parametrize("version", ["v2alpha1", "v1alpha1"])
def test_settings(version: Version) -> None:
    """Each setting is where the API has it, and references to variables stay texts."""
    amounts = {"limits": {"nvidia.com/gpu": "8"}, "requests": {"nvidia.com/gpu": "8"}}
    job = job_of(
        "torch-distributed",
        version,
        arguments=("$(A)", "$$", "$$(A)"),
        image="mine:1",
        nodes=4,
        processes=2,
        resources=amounts,
        queue="team-queue",
        suspend=True,
    )

    trainer = job["spec"]["trainer"]
    assert job["apiVersion"] == f"trainer.kubeflow.org/{version}"
    assert (job["metadata"]["name"], job["metadata"]["namespace"]) == ("train-x", "team")
    assert (job["spec"]["suspend"], trainer["image"], trainer["numNodes"]) == (True, "mine:1", 4)
    assert (trainer["numProcPerNode"], trainer["resourcesPerNode"]) == (2, amounts)
    assert (trainer["command"][-1], trainer["args"]) == ("train.py", ["$$(A)", "$$$$", "$$$$(A)"])


def test_mpi4py() -> None:
    """A rank that fails ends the others where mpi4py starts the script; without MPI nobody waits for it."""
    imports = Imports(modules={"mpi4py"})
    words = {name: job_of(name, imports=imports)["spec"]["trainer"]["command"] for name in ("mpi-openmpi", "plain")}
    assert words["mpi-openmpi"][-4:] == ["python3", "-m", "mpi4py", "train.py"]
    assert "mpi4py" not in words["plain"]


@pytest.mark.parametrize("version", ["v2alpha1", "v1alpha1"])
def test_queue(version: Version) -> None:
    """Kueue finds the label on what it queues: the TrainJob, or, where it knows no TrainJobs, the JobSet alone."""
    job = job_of("torch-distributed", version, queue="a")

    queued = [obj["metadata"].get("labels", {}).get(QUEUE_LABEL) == "a" for obj in (job, built(job))]
    assert queued == [version == "v1alpha1", version == "v2alpha1"]


@pytest.mark.parametrize("version", ["v2alpha1", "v1alpha1"])
def test_stall_after(version: Version) -> None:
    """The time without progress is that of the annotation, in seconds."""
    annotations = job_of("torch-distributed", version, stall_after="1m30s")["metadata"]["annotations"]
    assert annotations["trainer.kubeflow.org/trainer-status-stall-seconds"] == "90"


def test_max_restarts() -> None:
    """All nodes start again so often; 0 is a number as well, and v1alpha1 has no field for it."""
    jobset = built(job_of("torch-distributed", max_restarts=0))
    assert jobset["spec"]["failurePolicy"]["maxRestarts"] == 0
    job = job_of("torch-distributed", max_restarts=3)
    assert job["spec"]["maxRestarts"] == 3
    assert "maxRestarts" not in job_of("torch-distributed")["spec"]
    with pytest.raises(BadInputError, match=r"spec\.maxRestarts: has no counterpart: name a runtime with"):
        job_of("torch-distributed", "v1alpha1", max_restarts=3)


@pytest.mark.parametrize("version", ["v2alpha1", "v1alpha1"])
def test_checkpoints(version: Version) -> None:
    """The claim is that of the annotation, and Open MPI takes the variable along to the other nodes."""
    job = job_of("mpi-openmpi" if version == "v2alpha1" else "torch-distributed", version, checkpoints="data/a")
    assert job["metadata"]["annotations"] == {"trainer.kubeflow.org/checkpoints": "data/a"}
    command = job["spec"]["trainer"]["command"]
    assert ("TRAINER_CHECKPOINT_DIR" in command) is (command[0] == "mpirun")
    assert job_of("torch-distributed", version, checkpoints="")["metadata"]["annotations"] == {
        "trainer.kubeflow.org/checkpoints": ""
    }
    with pytest.raises(BadInputError, match=r"--checkpoints: a/\.\.: must be CLAIM or CLAIM/PATH"):
        job_of("torch-distributed", version, checkpoints="a/..")


@pytest.mark.parametrize("version", ["v2alpha1", "v1alpha1"])
def test_revision(version: Version) -> None:
    """The commit of the code is an annotation; code of no commit has none."""
    annotations = job_of("torch-distributed", version, revision="abc-dirty")["metadata"]["annotations"]
    assert annotations == {"trainer.kubeflow.org/git-revision": "abc-dirty"}
    assert "annotations" not in job_of("torch-distributed", version)["metadata"]


def test_script_that_looks_like_an_option() -> None:
    """Python reads the file `-c.py` as a script, and not as its option -c."""
    job = job_of("plain", script="-c.py", arguments=())
    assert job["spec"]["trainer"]["command"][-1] == "./-c.py"


def test_code_of_git() -> None:
    """Nodes fetch the commit before they start."""
    git = GitCode("https://example.com/a", "0" * 40)
    job = job_of("plain", arguments=(), git=git)
    assert job["spec"]["trainer"]["command"] == [
        *START[:-1], "--git", git.url, git.commit, "--", "python3", "train.py",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("script", "stem"),
    [
        pytest.param("src/My_Train.py", "my-train", id="letters"),
        pytest.param("__.py", "train", id="nothing left"),
        pytest.param(f"{'a' * 80}.py", "a" * 40, id="long"),
    ],
)
def test_made_name(script: str, stem: str) -> None:
    """A name follows from that of the script, and no two are the same."""
    first, second = job_name(None, script), job_name(None, script)
    assert (first[:-6], second[:-6], first[-6]) == (stem, stem, "-")
    assert first != second


@pytest.mark.parametrize("name", ["", "Demo", "1st", "a.b", "-a", "a-", "a" * 64])
def test_wrong_name(name: str) -> None:
    """A name that no version of the API takes is refused."""
    with pytest.raises(BadInputError, match="--name: "):
        job_name(name, "train.py")
