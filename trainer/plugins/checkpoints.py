"""Checkpoints: gives each training a directory that outlives its pods.

Where the annotation `trainer.kubeflow.org/checkpoints` of the TrainJob, or else of the runtime, names a claim, every
container that trains has a directory of it, which is that of this TrainJob alone, and a variable with its path. What is
written there is the training's own business: `trainer/checkpoints` reads the variable in the pods. An exporter whose
`TRANSFER_PATH` is the path has the directory read-only, and exports the last complete checkpoint.
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterator
from typing import NamedTuple

from trainer.api.checkpoints import (
    CHECKPOINTS,
    DIRECTORY_VARIABLE,
    MOUNT_PATH,
    VOLUME,
    Claim,
    mounted_directory,
    parse_claim,
)
from trainer.api.trainjob import TrainJob
from trainer.api.trainjob_status import ConditionType
from trainer.framework import (
    MODEL_EXPORTER,
    AdmissionWarning,
    BuildError,
    Container,
    FieldError,
    Finding,
    PodSet,
    Reader,
    RuntimeInfo,
    Watch,
    by_name,
    container_overrides,
    forbidden,
    invalid,
    trainer_env,
    upsert,
)
from trainer.kube.objects import Object, ObjectKey, controller_of
from trainer.workloads import JOBSETS

_OF_TRAIN_JOB = f"metadata.annotations[{CHECKPOINTS}]"


class _Stated(NamedTuple):
    """The annotation that counts."""

    field: str
    value: str


class Checkpoints:
    """Mounts the directory in all containers that train, unless they have the variable of their own."""

    name = "checkpoints"

    def __init__(self, reader: Reader) -> None:
        self._reader = reader

    def watches(self) -> Iterator[Watch]:
        """The JobSets, whose pods keep the directory that they have."""
        yield Watch(JOBSETS, triggers=False)

    def validate(self, info: RuntimeInfo, old: TrainJob | None, new: TrainJob) -> Iterator[Finding]:
        """Refuse what leaves no place for the directory, and another one than Jobs have; warn of what has no effect."""
        yield from _changed(old, new)
        stated = _stated(info, new)
        if not stated.value:
            return
        try:
            _claim(stated)
        except BuildError as error:
            yield from error.errors
            return
        pod_sets = [*_without_own(info, new, stated)]
        for pods in pod_sets:
            yield from _taken(info, pods)
        if not pod_sets and stated.field == _OF_TRAIN_JOB and old is None:
            trains = any(pods.main is not None for pods in info.pod_sets)
            reason = f"{DIRECTORY_VARIABLE} is set already" if trains else f"{info.runtime} has nothing that trains"
            yield AdmissionWarning(stated.field, f"has no effect: {reason}")

    def identify_pod_network(self, info: RuntimeInfo, train_job: TrainJob) -> None:
        """Add volume, mounts and variables; in this phase, the variables of the TrainJob are there."""
        stated = _stated(info, train_job)
        directory = self._directory(stated, train_job)
        if directory is None:
            return
        for pods in _without_own(info, train_job, stated):
            if errors := [*_taken(info, pods)]:
                raise BuildError(*errors)
            _mount(pods, pods.main_container, directory)
        for pods in info.pod_sets:
            for container in filter(_exports_checkpoint, pods.containers):
                _mount(pods, container, directory, readOnly=True)

    def _directory(self, stated: _Stated, train_job: TrainJob) -> Claim | None:
        """That of the JobSet that exists, also where it is made again; else the one that the annotation names."""
        metadata = train_job.metadata
        jobset = self._reader.get(JOBSETS, ObjectKey(metadata.namespace or "", metadata.name))
        if jobset is not None and (controller_of(jobset) or {}).get("uid") == metadata.uid:
            return mounted_directory(jobset)
        return _claim(stated).directory_of(metadata.name, metadata.uid) if stated.value else None


def _exports_checkpoint(container: Container) -> bool:
    """Whether it is an exporter of what is at the path of the directory, without one of its own."""
    names = {str(variable["name"]) for variable in container.env}
    is_taken = any(posixpath.normpath(str(mount.get("mountPath"))) == MOUNT_PATH for mount in container.volume_mounts)
    exports = {"name": "TRANSFER_PATH", "value": MOUNT_PATH} in container.env
    return container.name == MODEL_EXPORTER and exports and DIRECTORY_VARIABLE not in names and not is_taken


def _mount(pods: PodSet, container: Container, directory: Claim, **options: bool) -> None:
    upsert(pods.volumes, [_volume(directory)], by_name)
    container.mount([{"name": VOLUME, "mountPath": MOUNT_PATH, "subPath": directory.path, **options}])
    container.set_env([{"name": DIRECTORY_VARIABLE, "value": MOUNT_PATH}])


def _stated(info: RuntimeInfo, train_job: TrainJob) -> _Stated:
    """The annotation of the TrainJob, of what it says about its JobSet, or of the runtime; empty for none."""
    for field, stated in (
        (_OF_TRAIN_JOB, train_job.metadata.annotations or {}),
        (f"spec.annotations[{CHECKPOINTS}]", info.train_job_annotations),
        (f"{info.runtime} spec.template.metadata.annotations[{CHECKPOINTS}]", info.annotations),
    ):
        if CHECKPOINTS in stated:
            return _Stated(field, stated[CHECKPOINTS])
    return _Stated("", "")


def _claim(stated: _Stated) -> Claim:
    try:
        return parse_claim(stated.value)
    except ValueError as error:
        raise BuildError(invalid(stated.field, stated.value, str(error))) from None


def _without_own(info: RuntimeInfo, train_job: TrainJob, stated: _Stated) -> Iterator[PodSet]:
    """Nodes, their peers, and an MPI launcher, without those that have a directory of their own.

    That is one whose path the runtime or the TrainJob has put into the variable, or what the TrainJob mounts in the
    place of that of a runtime.
    """
    if any(map(_is_variable, trainer_env(train_job))):
        return
    for pods in info.pod_sets:
        if pods.main is None or any(map(_is_variable, pods.main.env)):
            continue
        if not (stated.field.startswith(info.runtime) and _mounts(train_job, pods, pods.main)):
            yield pods


def _mounts(train_job: TrainJob, pods: PodSet, container: Container) -> bool:
    overrides = container_overrides(train_job, pods, container)
    mounts = [mount for _, override in overrides for mount in override.volume_mounts or []]
    return any(posixpath.normpath(mount.mount_path) == MOUNT_PATH for mount in mounts)


def _changed(old: TrainJob | None, new: TrainJob) -> Iterator[FieldError]:
    """Another claim would hold for none of the pods, nor would it have what they have saved."""
    if old is None or not _is_created(old):
        return
    before, after = ((each.metadata.annotations or {}).get(CHECKPOINTS) for each in (old, new))
    if before != after:
        yield forbidden(_OF_TRAIN_JOB, "cannot be changed once the Jobs exist; submit the TrainJob again")


def _is_created(train_job: TrainJob) -> bool:
    conditions = (train_job.status and train_job.status.conditions) or []
    return any(each.type == ConditionType.CREATED and each.status == "True" for each in conditions)


def _taken(info: RuntimeInfo, pods: PodSet) -> Iterator[FieldError]:
    """What else has the name of the volume, or is mounted where the directory belongs."""
    field = f"{info.runtime} spec.template.spec.replicatedJobs[{pods.name}].template.spec.template.spec"
    if any(volume.get("name") == VOLUME for volume in pods.volumes):
        yield invalid(f"{field}.volumes", VOLUME, f"is the name of the volume of {CHECKPOINTS}; give it another name")
    container = pods.main_container
    for mount in container.volume_mounts:
        if posixpath.normpath(str(mount.get("mountPath"))) == MOUNT_PATH:
            rule = (
                f"is where the claim of {CHECKPOINTS} is mounted; mount {mount.get('name')} elsewhere, or set "
                f"{DIRECTORY_VARIABLE} if the checkpoints belong in it"
            )
            yield invalid(f"{field}.containers[{container.name}].volumeMounts", MOUNT_PATH, rule)


def _is_variable(variable: Object) -> bool:
    return variable.get("name") == DIRECTORY_VARIABLE


def _volume(directory: Claim) -> Object:
    return {"name": VOLUME, "persistentVolumeClaim": {"claimName": directory.name}}
