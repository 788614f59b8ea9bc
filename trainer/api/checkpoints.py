"""Where a training keeps its checkpoints: the seam between the manager, the commands and what runs in a pod.

A claim is named by the annotation `CHECKPOINTS` of a TrainJob, or else of a runtime. Below its path each TrainJob has a
directory of its own, which outlives pods, JobSets and the TrainJob.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

from trainer.api import patterns
from trainer.kube.field_errors import FieldError, invalid
from trainer.kube.objects import Object, annotations_of, mapping_at, objects_in

CHECKPOINTS = "trainer.kubeflow.org/checkpoints"
"""On a TrainJob, or on the JobSet by a runtime: `CLAIM` or `CLAIM/PATH`, the PersistentVolumeClaim that keeps the
checkpoints, and where in it; empty for none."""

DIRECTORY_VARIABLE: Final = "TRAINER_CHECKPOINT_DIR"
"""Environment variable of the containers that train: the directory of this TrainJob."""
MOUNT_PATH: Final = "/checkpoints"
"""Value of `DIRECTORY_VARIABLE`, where the directory is mounted."""
VOLUME: Final = "trainer-checkpoints"
"""Name of the volume."""

_NO_UID: Final = "00000000-0000-0000-0000-000000000000"
"""Stands for the uid of a TrainJob that is not created yet."""
_LONGEST_CLAIM: Final = 253
_LONGEST_PATH: Final = 1024
_LONGEST_NAME: Final = 255
_PATH_NAME: Final = re.compile(r"[A-Za-z0-9._=@+-]+", re.ASCII)
_RULE: Final = "must be CLAIM or CLAIM/PATH, such as checkpoints/team-a"


class Claim(NamedTuple):
    """A PersistentVolumeClaim, and a directory in it."""

    name: str
    path: str
    """Relative; empty for the root of the volume."""

    def __str__(self) -> str:
        """As in the annotation."""
        return f"{self.name}/{self.path}" if self.path else self.name

    def directory_of(self, name: str, uid: str | None) -> Claim:
        """The directory of a TrainJob, which no other one has, before or after it."""
        return Claim(self.name, posixpath.join(self.path, directory_name(name, uid)))


def directory_name(name: str, uid: str | None) -> str:
    """How the directory of a TrainJob is called in its claim."""
    return f"{name}-{uid or _NO_UID}"


def parse_claim(text: str) -> Claim:
    """The claim that an annotation or option names.

    Raises:
        ValueError: it names none; the text says what is expected.
    """
    name, separator, path = text.partition("/")
    if not name or len(name) > _LONGEST_CLAIM or not patterns.compiled(patterns.OBJECT_NAME).search(name):
        words = patterns.WORDS[patterns.OBJECT_NAME].removeprefix("must ")
        raise ValueError(f"{_RULE}; the name of a claim must {words}, and have at most {_LONGEST_CLAIM} characters")
    if len(path) > _LONGEST_PATH:
        raise ValueError(f"{_RULE}; the path must have at most {_LONGEST_PATH} characters")
    names = path.split("/") if separator else []
    for each in names:
        if each in {"", ".", ".."}:
            raise ValueError(f"{_RULE}; the path must be relative, without empty parts, . and ..")
        if len(each) > _LONGEST_NAME or not _PATH_NAME.fullmatch(each):
            rule = f"the parts of the path must consist of letters, digits and ._=@+-, at most {_LONGEST_NAME} of them"
            raise ValueError(f"{_RULE}; {rule}")
    return Claim(name, path)


def check_checkpoints_annotation(annotations: Mapping[str, str] | None, path: str) -> Iterator[FieldError]:
    """Refuse what names no claim; the field is `path` with the key in brackets."""
    value = (annotations or {}).get(CHECKPOINTS)
    if not value:
        return
    try:
        parse_claim(value)
    except ValueError as error:
        yield invalid(f"{path}[{CHECKPOINTS}]", value, str(error))


def stated_claim(train_job: Object) -> Claim | None:
    """The claim that the annotation of a TrainJob names; None where there is none, or it is no claim."""
    try:
        return parse_claim(annotations_of(train_job).get(CHECKPOINTS, ""))
    except ValueError:
        return None


def pods_with_directory(jobset: Object) -> Iterator[tuple[Object, Object]]:
    """The pod specs of a JobSet with a directory for checkpoints, each with a container that has it."""
    for job in objects_in(mapping_at(jobset, "spec").get("replicatedJobs")):
        pod = mapping_at(job, "template", "spec", "template", "spec")
        for container in objects_in(pod.get("containers")):
            if _named(container.get("volumeMounts")):
                yield pod, container


def mounted_directory(jobset: Object) -> Claim | None:
    """The directory that the pods of a JobSet have for their checkpoints; None where they were given none."""
    for pod, container in pods_with_directory(jobset):
        name = mapping_at(_named(pod.get("volumes")), "persistentVolumeClaim").get("claimName") or ""
        try:
            return parse_claim(f"{name}/{_named(container.get('volumeMounts')).get('subPath') or ''}")
        except ValueError:
            continue  # not ours
    return None


def _named(volumes: object) -> Object:
    """Of volumes or mounts, that of the directory; empty without one."""
    return next((each for each in objects_in(volumes) if each.get("name") == VOLUME), {})
