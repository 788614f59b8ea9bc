"""The TrainJob and the ConfigMap that `trainer run SCRIPT` makes."""

from __future__ import annotations

import re
import secrets
from dataclasses import dataclass, field
from typing import Final

from trainer.api import patterns
from trainer.api.kueue import QUEUE_LABEL
from trainer.api.trainjob import CODE_VOLUME, TRAIN_JOBS
from trainer.cli.errors import BadInputError
from trainer.cli.run.code_source import GitCode
from trainer.cli.run.frameworks import ChosenRuntime
from trainer.cli.run.package import START
from trainer.cli.run.variables import literal
from trainer.kube.objects import Object
from trainer.v1alpha1.discovery import Version
from trainer.v1alpha1.encode import encode

SOURCE, WORK = "/mnt/trainer/source", "/mnt/trainer/work"
"""Where the ConfigMap and the unpacked code are in a container."""
_WORK_VOLUME = "trainer-work"
_AUTHOR: Final = f"{TRAIN_JOBS.group}/run"
"""Manager of the changes to pods in `podSpecOverrides` and `runtimePatches`."""
_LONGEST_STEM = 40
_LONGEST_NAME = 63
_SUFFIX_LETTERS: Final = "bcdfghjklmnpqrstvwxz2456789"
"""The letters of names that a server generates."""


@dataclass(frozen=True, slots=True)
class JobSettings:
    """What the user asks for beside the code."""

    name: str
    script: str
    """Relative to the code."""
    arguments: tuple[str, ...] = ()
    nodes: int | None = None
    processes: int | None = None
    """On each node."""
    image: str | None = None
    resources: Object = field(default_factory=dict)
    """`spec.trainer.resourcesPerNode`."""
    environment: tuple[Object, ...] = ()
    """`spec.trainer.env`."""
    queue: str | None = None
    suspend: bool = False
    uses_mpi4py: bool = False
    """Whether the script imports mpi4py, by which a rank that fails can end the others."""


def job_name(name: str | None, script: str) -> str:
    """The name of the TrainJob: the one given, else one that follows from the script and is used by nobody.

    Raises:
        BadInputError: the name given cannot be one.
    """
    if name is None:
        stem = re.sub("[^a-z0-9]+", "-", script.lower().rpartition("/")[2].removesuffix(".py"))
        stem = re.sub("^[^a-z]+", "", stem)[:_LONGEST_STEM].strip("-") or "train"
        return f"{stem}-{''.join(secrets.choice(_SUFFIX_LETTERS) for _ in range(5))}"
    if len(name) > _LONGEST_NAME or not patterns.compiled(patterns.HOST_LABEL).search(name):
        rule = patterns.WORDS[patterns.HOST_LABEL]
        raise BadInputError(f"--name: {name[:80]}: {rule}, and have at most {_LONGEST_NAME} characters")
    return name


def train_job(
    settings: JobSettings,
    runtime: ChosenRuntime,
    config_map: str,
    namespace: str,
    *,
    git: GitCode | None = None,
) -> Object:
    """The TrainJob in the shape of v2alpha1."""
    trainer: Object = {
        "image": settings.image,
        "numNodes": settings.nodes,
        "numProcPerNode": settings.processes,
        "resourcesPerNode": settings.resources,
        "command": command(settings, runtime, git),
        "env": list(settings.environment),
    }
    jobs = runtime.training_containers()
    containers = dict.fromkeys(container for _, container in jobs)  # one override is for all Jobs with the same
    return {
        "apiVersion": TRAIN_JOBS.api_version,
        "kind": TRAIN_JOBS.kind,
        "metadata": {"name": settings.name, "namespace": namespace},
        "spec": {
            "runtimeRef": {"name": runtime.name, "kind": runtime.kind},
            **({"labels": {QUEUE_LABEL: settings.queue}} if settings.queue else {}),
            **({"suspend": True} if settings.suspend else {}),
            "trainer": {name: value for name, value in trainer.items() if value not in (None, [], {})},
            "podSpecOverrides": [_override(jobs, container, config_map) for container in containers],
        },
    }


def command(settings: JobSettings, runtime: ChosenRuntime, git: GitCode | None) -> list[str]:
    """What a node runs, or with MPI the launcher: the program that prepares the node, and behind it the training."""
    source = ["--git", literal(git.url), git.commit] if git else []
    start = ["python3", f"{SOURCE}/{START}", *source, "--"]
    path = f"./{settings.script}" if settings.script.startswith("-") else settings.script  # no option of python3
    script = [literal(word) for word in (path, *settings.arguments)]
    if not runtime.mpi:
        return [*start, *runtime.launcher, *script]
    # What Open MPI starts has the environment of sshd; Hydra, of the others, takes that of mpirun along.
    names = ["PATH", *(variable["name"] for variable in settings.environment)] if runtime.mpi == "OpenMPI" else []
    # Without this, a rank that has raised an exception waits forever for the others to finish MPI, and they for it.
    python = ["python3", "-m", "mpi4py"] if settings.uses_mpi4py else ["python3"]
    return ["mpirun", *(word for name in names for word in ("-x", name)), *start, *python, *script]


def as_served(job: Object, version: Version) -> Object:
    """The TrainJob in the version that a cluster serves.

    Raises:
        BadInputError: it says something that the version cannot.
    """
    if version == "v2alpha1":
        return job
    encoded = encode(job)
    if encoded.losses:
        raise BadInputError(f"the cluster serves v1alpha1: {'; '.join(map(str, encoded.losses))}")
    return encoded.object


def _override(jobs: list[tuple[str, str]], container: str, config_map: str) -> Object:
    return {
        "manager": _AUTHOR,
        "targetJobs": [{"name": name} for name, own in jobs if own == container],
        "containers": [
            {
                "name": container,
                "volumeMounts": [
                    {"name": CODE_VOLUME, "mountPath": SOURCE, "readOnly": True},
                    {"name": _WORK_VOLUME, "mountPath": WORK},
                ],
            }
        ],
        "volumes": [
            {"name": CODE_VOLUME, "configMap": {"name": config_map}},
            {"name": _WORK_VOLUME, "emptyDir": {}},
        ],
    }
