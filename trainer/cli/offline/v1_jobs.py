"""Jobs of the Training and MPI Operator, as commands ask for them; a distribution beside this one knows them."""

from __future__ import annotations

from importlib.metadata import entry_points
from typing import Final, Protocol

from trainer.cli.errors import CommandError
from trainer.cli.offline.converted import Converted
from trainer.distributions import OtherReleaseError, check_entry_point
from trainer.framework.pipeline import Pipeline
from trainer.framework.plugin_api.errors import Review
from trainer.kube.objects import Object
from trainer.v1alpha1.discovery import Version

_GROUP: Final = "trainer.v1_jobs"
"""The entry point group; its value is called without arguments and returns `V1Jobs`."""


class V1Jobs(Protocol):
    """Reads, reviews and converts objects of the kinds of `trainer.api.kubeflow_v1`."""

    def definitions(self) -> list[Object]:
        """The CustomResourceDefinitions of the kinds that a manager can serve."""

    def review(self, job: Object, pipeline: Pipeline, version: Version) -> Review:
        """The admission review of the creation of a job, where it is served."""

    def converted(self, job: Object, place: str, version: Version) -> Converted:
        """A job, or an Experiment of Katib, for a cluster that serves TrainJobs of a version.

        Raises:
            DocumentError: the operator, or Katib, would have refused it, or it cannot be converted.
        """


def installed_v1_jobs() -> V1Jobs:
    """What knows the jobs.

    Raises:
        CommandError: it is not installed, or does not fit.
    """
    for point in entry_points(group=_GROUP):
        try:
            check_entry_point(point)
            jobs: V1Jobs = point.load()()
        except (OtherReleaseError, ImportError, AttributeError) as error:
            raise CommandError(f"jobs of kubeflow.org are not known here: {error}") from error
        return jobs
    raise CommandError("jobs of kubeflow.org are not known here: pip install 'trainer-operator[v1-jobs]'")
