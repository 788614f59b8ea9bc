"""How the controllers work."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Annotated, Final

from pydantic import AfterValidator, Field

from trainer.api import patterns
from trainer.api.model import ApiModel, text
from trainer.api.trainingruntime import CLUSTER_TRAINING_RUNTIMES, TRAINING_RUNTIMES
from trainer.api.trainjob import TRAIN_JOBS
from trainer.configuration.duration import Duration, PositiveDuration
from trainer.configuration.names import Namespace
from trainer.kube.field_errors import not_supported

if TYPE_CHECKING:
    from collections.abc import Iterator

    from trainer.kube.field_errors import FieldError

_TRAIN_JOB: Final = f"{TRAIN_JOBS.kind}.{TRAIN_JOBS.group}"
_WITHOUT_CONTROLLER: Final = tuple(
    f"{each.kind}.{each.group}" for each in (CLUSTER_TRAINING_RUNTIMES, TRAINING_RUNTIMES)
)
_DEFAULTS: Final = {_TRAIN_JOB: 10}


def _with_defaults(value: dict[str, int]) -> dict[str, int]:
    return _DEFAULTS | value


class ControllerConfiguration(ApiModel):
    """How the controllers work."""

    group_kind_concurrency: Annotated[
        dict[str, Annotated[int, Field(ge=1, le=1000)]], AfterValidator(_with_defaults)
    ] = Field(default_factory=dict, validate_default=True)
    """How many objects of a kind are worked on at the same time, by `<Kind>.<group>`. Defaults to 10 for
    TrainJob.trainer.kubeflow.org: they wait for the API server most of the time, and with more this process has no more
    to do. TrainingRuntime and ClusterTrainingRuntime may be named, as in files of the released manager, and have no
    effect: no controller works on them here, since TrainJobs watch them."""
    namespace: Namespace = ""
    """The only namespace whose TrainJobs are looked after. Defaults to "", all namespaces."""
    cluster_domain: Annotated[str, Field(json_schema_extra=text(pattern=patterns.OBJECT_NAME, longest=100))] = ""
    """Domain of the cluster, such as cluster.local: pods are told each other's DNS names in full. Defaults to "":
    short names resolve in any cluster, except for pods whose dnsPolicy gives them no search domains."""
    cache_sync_timeout: PositiveDuration = timedelta(minutes=2)
    """How long the first lists of all watched resources may take before the manager gives up. Defaults to 2m, as in
    controller-runtime."""
    graceful_shutdown_timeout: Duration = timedelta(seconds=30)
    """How long reconciles that run may take to end when the manager is stopped; 0s: no time, less: without limit.
    Defaults to 30s, as in controller-runtime; terminationGracePeriodSeconds of the pod must be longer."""

    @property
    def train_job_concurrency(self) -> int:
        """How many TrainJobs are worked on at the same time."""
        return self.group_kind_concurrency[_TRAIN_JOB]

    @property
    def without_controller(self) -> list[str]:
        """Kinds that are told how many, and have no controller that could be."""
        return sorted(set(self.group_kind_concurrency).intersection(_WITHOUT_CONTROLLER))

    def errors(self, path: str) -> Iterator[FieldError]:
        """Kinds that nobody here knows."""
        known = (_TRAIN_JOB, *_WITHOUT_CONTROLLER)
        for name in self.group_kind_concurrency:
            if name not in known:
                yield not_supported(f"{path}.groupKindConcurrency", name, known)
