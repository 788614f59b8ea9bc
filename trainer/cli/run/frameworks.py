"""Which framework a script trains with, and which runtime of the cluster is for it."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Final

from trainer.api.checkpoints import CHECKPOINTS
from trainer.api.labels import ANCESTOR_LABEL
from trainer.api.trainingruntime import (
    FRAMEWORK_LABEL,
    SUPPORT_LABEL,
    TENSORFLOW_ROLES,
)
from trainer.cli.console import printable
from trainer.cli.errors import BadInputError, CommandError
from trainer.cli.jobs.find import list_runtimes
from trainer.framework.building.trainer_step import TRAINER_JOBS
from trainer.framework.plugin_api.devices import USUAL_DEVICES
from trainer.framework.plugin_api.runtime_info import LAUNCHER, Ancestor
from trainer.framework.runtimes.alternatives import alternatives
from trainer.kube.client import Client
from trainer.kube.errors import ForbiddenError
from trainer.kube.objects import Object, labels_of, mapping_at, name_of, objects_in
from trainer.workloads.containers import main_container

PLAIN: Final = "plain"
"""The framework of a script that imports none."""
_OF_MODULE: Final = {
    **dict.fromkeys(("torch", "torchvision", "torchaudio", "torchdata", "lightning", "pytorch_lightning"), "torch"),
    **dict.fromkeys(("diffusers", "peft", "trl", "timm", "fastai"), "torch"),
    **dict.fromkeys(("transformers", "accelerate"), "transformers"),
    **dict.fromkeys(("jax", "flax", "optax", "haiku", "equinox", "orbax"), "jax"),
    "deepspeed": "deepspeed",
    "mlx": "mlx",
    "paddle": "paddle",
    "tensorflow": "tensorflow",
    "xgboost": "xgboost",
}
"""The label of runtimes that a module asks for."""
_OF_LONE_MODULE: Final = {"keras": "tensorflow", "mpi4py": "mpi"}
"""Modules that others build on: they decide only where no other framework is imported."""
_INCLUDED: Final = {"deepspeed": {"torch", "transformers"}, "transformers": {"torch"}}
"""Frameworks whose runtimes take the scripts of others as well."""
_GENERAL: Final = {"transformers": "torch"}
"""The framework that a library builds on: its runtimes train as well, where its package is installed."""
_LAUNCHERS: Final = {"torch": ["torchrun"], "paddle": ["python3", "-m", "paddle.distributed.launch"]}
"""The words before a script for policies whose frameworks do not start it as it is."""
_USUAL: Final = ("{}-distributed", "{}-openmpi", "{}")
"""Names of the runtime that is meant where a framework has several, the best one first."""
_MOST_MEANT: Final = 4
"""Runtimes that are proposed in place of the name of their framework."""


@dataclass(frozen=True, slots=True)
class ChosenRuntime:
    """A runtime of the cluster, converted to v2alpha1."""

    obj: Object
    kind: str
    framework: str
    """The framework that its label names; empty without one."""

    @property
    def name(self) -> str:
        """Its name."""
        return name_of(self.obj)

    @property
    def checkpoints(self) -> str:
        """The claim for the checkpoints of its TrainJobs; empty without one."""
        annotations = mapping_at(self.obj, "spec", "template", "metadata", "annotations")
        return str(annotations.get(CHECKPOINTS) or "")

    @property
    def launcher(self) -> list[str]:
        """What starts the processes of a script on a node, but for MPI."""
        return next((words for name, words in _LAUNCHERS.items() if name in self._policy), ["python3"])

    @property
    def mpi(self) -> str:
        """The implementation of MPI whose mpirun starts the processes; empty without one."""
        return (
            str(mapping_at(self._policy, "mpi").get("mpiImplementation") or "OpenMPI") if "mpi" in self._policy else ""
        )

    def training_containers(self) -> list[tuple[str, str]]:
        """Replicated Jobs that run code of the user, each with its container.

        Raises:
            BadInputError: there is none.
        """
        found = [
            (str(job.get("name")), container)
            for job in objects_in(mapping_at(self.obj, "spec", "template", "spec").get("replicatedJobs"))
            if self._trains(job) and (container := _main_container(job))
        ]
        if not found:
            raise BadInputError(
                f"--runtime: {self.name} has no Job that trains: take another one (see: trainer runtimes)"
            )
        return found

    def devices(self) -> list[str]:
        """The resources whose amounts count devices of the containers that train, by name."""
        wanted = set(self.training_containers())
        found: set[str] = set()
        for job in objects_in(mapping_at(self.obj, "spec", "template", "spec").get("replicatedJobs")):
            pod = mapping_at(job, "template", "spec", "template", "spec")
            for container in objects_in(pod.get("containers")):
                if (str(job.get("name")), str(container.get("name"))) in wanted:
                    for kind in ("limits", "requests"):
                        found |= mapping_at(container, "resources", kind).keys()
        return sorted(filter(USUAL_DEVICES.is_device, found))

    @property
    def _policy(self) -> Object:
        return mapping_at(self.obj, "spec", "mlPolicy")

    def _trains(self, job: Object) -> bool:
        """Whether a replicated Job is a node of the training, launches it, or is a peer such as a parameter server."""
        job_labels = mapping_at(job, "template", "metadata", "labels")
        pod_labels = mapping_at(job, "template", "spec", "template", "metadata", "labels")
        step = job_labels.get(ANCESTOR_LABEL) or pod_labels.get(ANCESTOR_LABEL)
        peers = TENSORFLOW_ROLES if "tensorflow" in self._policy else ()
        return step == Ancestor.TRAINER or (step is None and job.get("name") in {*TRAINER_JOBS, LAUNCHER, *peers})


def framework_of(modules: Iterable[str], script: str, required: Collection[str] = ()) -> str:
    """The framework that modules belong to: `plain` for none.

    Args:
        modules: what the script imports.
        script: names it in errors.
        required: packages that are installed before the start, so that the image need not have them. Default: none.

    Raises:
        BadInputError: they belong to several.
    """
    names = sorted(modules)
    found: dict[str, str] = {}
    for name in names:
        if name in _OF_MODULE:
            framework = _OF_MODULE[name]
            found.setdefault(_GENERAL.get(framework, framework) if framework in required else framework, name)
    for framework in list(found):
        for other in _INCLUDED.get(framework, set()) & found.keys():
            del found[other]
    if len(found) > 1:
        each = " and ".join(f"{module} (runtimes of {framework})" for framework, module in found.items())
        raise BadInputError(f"{script} imports {each}: choose with --runtime NAME (see: trainer runtimes)")
    if found:
        return next(iter(found))
    return next((_OF_LONE_MODULE[name] for name in names if name in _OF_LONE_MODULE), PLAIN)


async def runtimes_of_cluster(client: Client, namespace: str) -> list[ChosenRuntime]:
    """The runtimes that a TrainJob of the namespace may refer to; those of the cluster first."""
    try:
        found = await list_runtimes(client, namespace)
    except ForbiddenError as error:
        raise CommandError(f"the runtimes cannot be listed: {error}") from None
    return [ChosenRuntime(obj, kind, labels_of(obj).get(FRAMEWORK_LABEL, "")) for obj, kind in found]


def choose_runtime(
    runtimes: Sequence[ChosenRuntime], namespace: str, *, name: str | None, framework: str, script: str
) -> ChosenRuntime:
    """The runtime of a name, else the usual one of a framework.

    Raises:
        BadInputError: there is none, or nothing tells which one is meant; lists the choices.
    """
    if name is not None:
        named = next((each for each in runtimes if each.name == name), None)
        if named is None:
            meant = _meant(name, runtimes)
            choice = f"did you mean {meant}? trainer runtimes lists all" if meant else _choices(runtimes)
            raise BadInputError(f"--runtime: namespace {namespace} has no runtime {printable(name)}: {choice}")
        return named
    wanted = (framework, _GENERAL.get(framework))
    fitting = next((found for name in wanted if (found := [each for each in runtimes if each.framework == name])), [])
    framework = fitting[0].framework if fitting else framework
    current = [each for each in fitting if not labels_of(each.obj).get(SUPPORT_LABEL)] or fitting
    if len(current) == 1:
        return current[0]
    for pattern in _USUAL:
        for each in current:
            if each.name == pattern.format(framework):
                return each
    why = "imports no framework" if framework == PLAIN else f"trains with {framework}"
    if current:
        raise BadInputError(
            f"{script} {why}, and several runtimes are for that: choose with --runtime: {_choices(current)}"
        )
    what = "without a framework" if framework == PLAIN else f"for {framework}"
    raise BadInputError(
        f"{script} {why}, and namespace {namespace} has no runtime {what}: choose with --runtime: {_choices(runtimes)}"
    )


def _meant(name: str, runtimes: Sequence[ChosenRuntime]) -> str:
    """The runtimes for a framework of this name, else the one whose name is most like it; "" without any."""
    fitting = [each.name for each in runtimes if each.framework == name]
    return " or ".join(fitting[:_MOST_MEANT]) or alternatives(name, map(attrgetter("name"), runtimes)).similar


def _choices(runtimes: Sequence[ChosenRuntime]) -> str:
    each = (f"{runtime.name} ({printable(runtime.framework) or 'no framework'})" for runtime in runtimes)
    return ", ".join(each) or "there are no runtimes (trainer install-runtimes installs ours)"


def _main_container(job: Object) -> str:
    return main_container(mapping_at(job, "template", "spec", "template"))
