"""Progress reporter: puts a reporter beside trainings that report no progress by themselves (KEP-2779).

Where the annotation `trainer.kubeflow.org/trainer-status-reporter` of the TrainJob, or else of the runtime, is "true",
an init container copies the reporter into a volume, and two variables make each Python of the training container import
it; what it does there is in `trainer.progress.injection`. Nothing is fetched, and neither image nor command is changed.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Final

from pydantic import Field

from trainer.api.model import ApiModel
from trainer.api.progress import PRIMARY_POD, REPORTER, REPORTER_CONTAINER
from trainer.api.trainjob import TrainJob
from trainer.framework import (
    AdmissionWarning,
    Container,
    Finding,
    PluginContext,
    PodSet,
    RuntimeInfo,
    Watch,
    add_init_container,
    by_name,
    pod_spec_of,
    upsert,
)
from trainer.kube.objects import Object, ObjectKey
from trainer.workloads import JOBSETS

NAME: Final = REPORTER_CONTAINER
"""Name of the init container and of the volume."""
DIRECTORY: Final = "/opt/trainer-reporter"
FILTER: Final = "ignore::trainer_reporter.Never"
"""The warning filter that makes Python import the reporter."""
_PATH, _WARNINGS = "PYTHONPATH", "PYTHONWARNINGS"
_NO_REPORTER: Final = (
    f'so no reporter of progress is put beside the training: annotate the TrainJob with {REPORTER}="true" to have it, '
    'or with "false" if the training reports by itself'
)
_SEPARATORS: Final = {_PATH: ":", _WARNINGS: ","}


class ReporterSettings(ApiModel):
    """Settings of the plugin progress-reporter."""

    image: Annotated[str, Field(max_length=1024)] = ""
    """The image that has the reporter: one of the manager, which every node of a training pulls once. Defaults to that
    of the pod in which the manager runs, unless pulling it takes Secrets. With "", nothing is injected."""


class ProgressReporter:
    """Injects the reporter into the container that trains, unless a launcher starts the training from elsewhere."""

    name = "progress-reporter"

    def __init__(self, context: PluginContext) -> None:
        self._reader = context.reader
        self._image = context.settings(ReporterSettings).image

    def watches(self) -> Iterator[Watch]:
        """The JobSets, whose pods cannot change."""
        yield Watch(JOBSETS, triggers=False)

    def validate(self, info: RuntimeInfo, old: TrainJob | None, new: TrainJob) -> Iterator[Finding]:
        """Warn where the reporter is asked for and cannot be had."""
        stated = _stated(info, new)
        if old is not None or stated not in {None, "true"}:
            return
        if stated is None:
            hindrance = _hindrance(info, new) if self._image and info.launcher is None else None
            if hindrance is not None:
                yield hindrance
            return
        field = f"metadata.annotations[{REPORTER}]"
        if not self._image:
            rule = "has no effect: plugins.configuration.progress-reporter.image of the manager names no image"
            yield AdmissionWarning(field, rule)
        elif any(each.name == NAME for each in _reporting(info).init_containers):
            yield AdmissionWarning(field, f"has no effect: the pods have an init container named {NAME}")
        elif info.launcher is not None:
            yield AdmissionWarning(field, "has no effect: the launcher of MPI starts processes without its environment")

    def identify_pod_network(self, info: RuntimeInfo, train_job: TrainJob) -> None:
        """Add the init container, the volume and the variables; in this phase, those of the TrainJob are there."""
        image = self._image_of(info, train_job)
        if not image:
            return
        pods = _reporting(info)
        main = pods.main_container
        if any(each.name == NAME for each in pods.init_containers):
            return
        values = {name: _value(main, name) for name in _SEPARATORS}
        if any(value is None for value in values.values()):
            return
        upsert(pods.volumes, [{"name": NAME, "emptyDir": {}}], by_name)
        command = ["python", "-m", "trainer.progress.injection.install", DIRECTORY]
        mount: Object = {"name": NAME, "mountPath": DIRECTORY}
        init = Container(NAME, image, command, volume_mounts=[mount])
        # The default of imagePullPolicy for :latest fails where nodes were given the image.
        add_init_container(info, pods, init, imagePullPolicy="IfNotPresent")
        main.mount([mount | {"readOnly": True}])
        main.set_env(
            [
                {"name": _PATH, "value": _joined(values[_PATH], DIRECTORY, _PATH)},
                {"name": _WARNINGS, "value": _joined(FILTER, values[_WARNINGS], _WARNINGS)},
            ]
        )

    def _image_of(self, info: RuntimeInfo, train_job: TrainJob) -> str:
        """The image of the init container, "" for none; pods that exist keep theirs, as after an upgrade."""
        if not self._image or not info.trains or info.launcher is not None:
            return ""
        key = ObjectKey(train_job.metadata.namespace or "", train_job.metadata.name)
        jobset = self._reader.get(JOBSETS, key)
        if jobset is None:
            return self._image if _is_wanted(info, train_job) else ""
        present = (
            str(container["image"])
            for job in jobset["spec"].get("replicatedJobs") or []
            for container in job["template"]["spec"]["template"]["spec"].get("initContainers") or []
            if container["name"] == NAME
        )
        return next(present, "")


def _is_wanted(info: RuntimeInfo, train_job: TrainJob) -> bool:
    """Whether TrainJob or runtime ask for the reporter; the runtime may not where a PYTHONPATH would be hidden."""
    stated = _stated(info, train_job)
    if stated is not None:
        return stated == "true"
    if info.annotations.get(REPORTER) != "true":
        return False
    main = _reporting(info).main_container
    return bool(_value(main, _PATH)) or (_has_image_of_runtime(info) and not main.env_from)


def _hindrance(info: RuntimeInfo, train_job: TrainJob) -> AdmissionWarning | None:
    """What the TrainJob has that keeps away the reporter for which its runtime asks; None where nothing does."""
    if not info.trains or info.annotations.get(REPORTER) != "true":
        return None
    main = _reporting(info).main_container
    trainer = train_job.spec.trainer
    stated = next((each for each in (trainer and trainer.env) or () if each.name == _PATH), None)
    path = _value(main, _PATH) if stated is None else None if stated.value_from else stated.value or ""
    if path is None:
        return AdmissionWarning(f"spec.trainer.env[{_PATH}]", f"is known to the cluster only, {_NO_REPORTER}")
    if path:
        return None
    if not _has_image_of_runtime(info):
        rule = f"is not the image of the runtime and may have a {_PATH} of its own, {_NO_REPORTER}"
        return AdmissionWarning("spec.trainer.image", rule)
    if main.env_from and not _of_runtime(info).get("envFrom"):
        rule = f"may have a {_PATH} in the variables of its ConfigMaps and Secrets, {_NO_REPORTER}"
        return AdmissionWarning(f"container {main.name}", rule)
    return None


def _stated(info: RuntimeInfo, train_job: TrainJob) -> str | None:
    """The annotation of the TrainJob, or of what it says about its JobSet."""
    stated = (train_job.metadata.annotations or {}, info.train_job_annotations)
    return next((each[REPORTER] for each in stated if REPORTER in each), None)


def _has_image_of_runtime(info: RuntimeInfo) -> bool:
    return _of_runtime(info).get("image") == _reporting(info).main_container.image


def _of_runtime(info: RuntimeInfo) -> Object:
    """The container that trains as the runtime has it; empty without one of its name."""
    pods = _reporting(info)
    template = pod_spec_of(info.job_of(pods)).get("containers") or []
    return next((each for each in template if each["name"] == pods.main_container.name), {})


def _reporting(info: RuntimeInfo) -> PodSet:
    """The pod set with the pod that reports: the nodes, unless a peer such as a chief is the primary pod."""
    return next((peer for peer in info.peers if peer.annotations.get(PRIMARY_POD) == "true"), info.trainer)


def _value(container: Container, name: str) -> str | None:
    """The value of a variable, "" without it; None where only the cluster knows it."""
    variable = next((each for each in container.env if each["name"] == name), {})
    return None if "valueFrom" in variable else str(variable.get("value") or "")


def _joined(first: str | None, second: str | None, name: str) -> str:
    return _SEPARATORS[name].join(each for each in (first, second) if each)
