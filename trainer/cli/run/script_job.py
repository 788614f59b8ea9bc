"""The TrainJob and the ConfigMap that `trainer run SCRIPT` makes."""

from __future__ import annotations

import math
import re
import secrets
from dataclasses import dataclass
from typing import Final

from trainer.api import patterns
from trainer.api.checkpoints import DIRECTORY_VARIABLE
from trainer.api.kueue import QUEUE_LABEL
from trainer.api.progress import STALL_SECONDS
from trainer.api.trainjob import CODE_VOLUME, GIT_REVISION, TRAIN_JOBS
from trainer.cli.errors import BadInputError
from trainer.cli.logs.logs import parse_duration
from trainer.cli.run.checkpoint_claim import claim_annotation
from trainer.cli.run.code_source import GitCode
from trainer.cli.run.frameworks import ChosenRuntime
from trainer.cli.run.imports import Imports
from trainer.cli.run.options import ScriptOptions
from trainer.cli.run.package import START, CodePackage
from trainer.cli.run.requirements import NOTHING_REQUIRED, Requirements
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
class Code:
    """The code of a script, and what it was found to import."""

    package: CodePackage
    script: str
    """Relative to the code."""
    imports: Imports | None
    """None for a script that is not here."""
    requirements: Requirements = NOTHING_REQUIRED
    """What is installed before the start."""
    git: GitCode | None = None
    revision: str = ""
    """The commit, see `GIT_REVISION`; empty where it is of none."""


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
    options: ScriptOptions,
    code: Code,
    runtime: ChosenRuntime,
    name: str,
    namespace: str,
    *,
    resources: Object,
    environment: list[Object],
) -> Object:
    """The TrainJob of v2alpha1.

    Args:
        options: what its user asks for.
        code: what it runs.
        runtime: of the code.
        name: of the TrainJob.
        namespace: of the TrainJob.
        resources: `spec.trainer.resourcesPerNode`.
        environment: `spec.trainer.env`.
    """
    trainer: Object = {
        "image": options.image,
        "numNodes": options.nodes,
        "numProcPerNode": options.processes,
        "resourcesPerNode": resources,
        "command": _command(code, runtime, _names(options, runtime, environment)),
        "args": [literal(word) for word in options.arguments],
        "env": environment,
    }
    jobs = runtime.training_containers()
    containers = dict.fromkeys(container for _, container in jobs)  # one override is for all Jobs with the same
    config_map = code.package.config_map_name(name)
    annotations = _annotations(options, code)
    return {
        "apiVersion": TRAIN_JOBS.api_version,
        "kind": TRAIN_JOBS.kind,
        "metadata": {
            "name": name,
            "namespace": namespace,
            **({"labels": dict(options.labels)} if options.labels else {}),
            **({"annotations": annotations} if annotations else {}),
        },
        "spec": {
            "runtimeRef": {"name": runtime.name, "kind": runtime.kind},
            **({"labels": {QUEUE_LABEL: options.queue}} if options.queue else {}),
            **({"suspend": True} if options.suspend else {}),
            **({} if options.max_restarts is None else {"maxRestarts": options.max_restarts}),
            "trainer": {field: value for field, value in trainer.items() if value not in (None, [], {})},
            "podSpecOverrides": [_override(jobs, container, config_map) for container in containers],
        },
    }


def _annotations(options: ScriptOptions, code: Code) -> dict[str, str]:
    stall = {STALL_SECONDS: _seconds(options.stall_after)} if options.stall_after else {}
    claim = {} if options.checkpoints is None else claim_annotation(options.checkpoints)
    return stall | claim | ({GIT_REVISION: code.revision} if code.revision else {})


def _seconds(duration: str) -> str:
    return str(math.ceil(parse_duration(duration, "--stall-after").total_seconds()))


def _names(options: ScriptOptions, runtime: ChosenRuntime, environment: list[Object]) -> list[str]:
    """The variables of a node that its training is meant to have."""
    names = [*(str(variable["name"]) for variable in environment), *options.further_env]
    has_claim = bool(runtime.checkpoints if options.checkpoints is None else options.checkpoints)
    return [*names, DIRECTORY_VARIABLE] if has_claim and DIRECTORY_VARIABLE not in names else names


def _command(code: Code, runtime: ChosenRuntime, variables: list[str]) -> list[str]:
    """What a node runs, or with MPI the launcher: the program that prepares the node, and behind it the script.

    The arguments of the script are those of the container, so that a copy of the TrainJob replaces them alone.
    """
    source = ["--git", literal(code.git.url), code.git.commit] if code.git else []
    start = ["python3", f"{SOURCE}/{START}", *source, "--"]
    path = f"./{code.script}" if code.script.startswith("-") else code.script  # no option of python3
    script = literal(path)
    if not runtime.mpi:
        return [*start, *runtime.launcher, script]
    # What Open MPI starts has the environment of sshd; Hydra, of the others, takes that of mpirun along.
    names = ["PATH", *variables] if runtime.mpi == "OpenMPI" else []
    # Without this, a rank that has raised an exception waits forever for the others to finish MPI, and they for it.
    uses_mpi4py = code.imports is not None and "mpi4py" in code.imports.modules
    python = ["python3", "-m", "mpi4py"] if uses_mpi4py else ["python3"]
    return ["mpirun", *(word for name in names for word in ("-x", name)), *start, *python, script]


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
