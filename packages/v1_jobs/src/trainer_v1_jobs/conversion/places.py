"""Where the pods of a role are: the replicated Job that has them, their DNS names and their indexes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from trainer.api.jobset_labels import COMPLETION_INDEX, JOB_INDEX, JOBSET_NAME
from trainer.kube.objects import Object

NODE: Final = "node"
"""Name of the replicated Job whose pods are the nodes."""
TRAINJOB_NAME: Final = "TRAINJOB_NAME"
"""Variable with the name of the TrainJob, which names of hosts are made of."""


def node_rank() -> Object:
    """`valueFrom` of the index of a pod in its Job."""
    return {"fieldRef": {"fieldPath": f"metadata.annotations['{COMPLETION_INDEX}']"}}


def label_value(label: str) -> Object:
    """`valueFrom` of a label of the pod."""
    return {"fieldRef": {"fieldPath": f"metadata.labels['{label}']"}}


def name_variable() -> Object:
    """The variable TRAINJOB_NAME."""
    return {"name": TRAINJOB_NAME, "valueFrom": label_value(JOBSET_NAME)}


@dataclass(frozen=True, slots=True)
class Place:
    """Where the pods of a role are."""

    job: str
    """Name of the replicated Job."""
    first: int = 0
    """Number of the first of them among the pods of the Job. Defaults to 0."""
    is_indexed: bool = True
    """Whether one Job has them all. Defaults to true; else each pod is a Job of its own."""
    is_shared: bool = False
    """Whether the Job has pods of another role, too. Defaults to false."""

    def host(self, index: int | str, train_job: str = f"$({TRAINJOB_NAME})") -> str:
        """DNS name of a pod, by its index in the role, which may be a reference to a variable."""
        number = self.first + index if isinstance(index, int) else index
        return f"{train_job}-{self.job}-{f'0-{number}' if self.is_indexed else f'{number}-0'}.{train_job}"

    @property
    def index_label(self) -> str:
        """Label with the index of a pod in the role, where the Job has no others."""
        return COMPLETION_INDEX if self.is_indexed else JOB_INDEX

    @property
    def index(self) -> Object:
        """`valueFrom` of the same; of the annotation, which is older than the label of that name."""
        return node_rank() if self.is_indexed else label_value(JOB_INDEX)
