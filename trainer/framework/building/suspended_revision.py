"""TrainJobs at rest: no pod goes by what has been built for them, so that it may still be built otherwise."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trainer.framework.plugin_api.component import Revision
from trainer.kube.objects import ObjectKey
from trainer.kube.resource import JOBSETS

if TYPE_CHECKING:
    from collections.abc import Callable

    from trainer.api.trainjob import TrainJob
    from trainer.framework.plugin_api.reader import Reader
    from trainer.kube.objects import Object


def revise_while_suspended(reader: Reader, train_job: TrainJob, desired: Object) -> Callable[[Object], Revision | None]:
    """`Component.revise` for what pods go by: it follows the TrainJob until they run, and is then left alone.

    They do not run as long as the JobSet, which has the name of the TrainJob, does not exist or is suspended.

    Args:
        reader: for JobSets, which the plugin must watch.
        train_job: whose object it is.
        desired: the object as it is to be.
    """
    key = ObjectKey(train_job.metadata.namespace or "", train_job.metadata.name)

    def revise(_existing: Object) -> Revision | None:
        jobset = None if train_job.spec.suspend else reader.get(JOBSETS, key)
        at_rest = jobset is None or bool(jobset["spec"].get("suspend"))
        return Revision(desired) if at_rest else None

    return revise
