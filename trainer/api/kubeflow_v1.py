"""Names of the jobs of the Training Operator, `kubeflow.org/v1`, and of the MPI Operator, `kubeflow.org/v2beta1`.

And of Experiments of Katib, `kubeflow.org/v1beta1`. The distribution `trainer-v1-jobs` reads, converts and serves them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from trainer.kube.resource import Resource

GROUP: Final = "kubeflow.org"


def _resource(plural: str, kind: str, version: str = "v1") -> Resource:
    return Resource(GROUP, version, plural, kind)


PYTORCH_JOBS: Final = _resource("pytorchjobs", "PyTorchJob")
JAX_JOBS: Final = _resource("jaxjobs", "JAXJob")
TF_JOBS: Final = _resource("tfjobs", "TFJob")
XGBOOST_JOBS: Final = _resource("xgboostjobs", "XGBoostJob")
PADDLE_JOBS: Final = _resource("paddlejobs", "PaddleJob")
MPI_JOBS: Final = _resource("mpijobs", "MPIJob")
MPI_JOBS_V2BETA1: Final = _resource("mpijobs", "MPIJob", "v2beta1")

JOBS: Final = (PYTORCH_JOBS, JAX_JOBS, TF_JOBS, XGBOOST_JOBS, PADDLE_JOBS, MPI_JOBS, MPI_JOBS_V2BETA1)
SERVED_JOBS: Final[Mapping[tuple[str, str], Resource]] = {
    (each.api_version, each.kind): each for each in (PYTORCH_JOBS, JAX_JOBS)
}
"""Kinds that a manager can serve, since they become TrainJobs without a person, by apiVersion and kind."""

EXPERIMENTS: Final = _resource("experiments", "Experiment", "v1beta1")
"""Of Katib."""

_BECOME: Final[Mapping[tuple[str, str], str]] = {(each.api_version, each.kind): "TrainJob" for each in JOBS} | {
    (EXPERIMENTS.api_version, EXPERIMENTS.kind): "OptimizationJob"
}


def becomes(obj: Any) -> str:
    """The kind that `trainer convert` makes of an object of these kinds; "" for one of another kind."""
    if not isinstance(obj, dict):
        return ""
    api_version, kind = obj.get("apiVersion"), obj.get("kind")
    return _BECOME.get((api_version, kind), "") if isinstance(api_version, str) and isinstance(kind, str) else ""
