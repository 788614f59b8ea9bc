"""Builds the objects that the dashboard shows of a TrainJob, as `trainer render --explain` does."""

from __future__ import annotations

from trainer.api.trainjob import TRAIN_JOBS
from trainer.cli.documents import Document
from trainer.cli.errors import BadInputError
from trainer.cli.offline.render import render_documents
from trainer.kube.field_errors import FieldError
from trainer.kube.objects import Object
from trainer.kube.resource import Resource
from trainer_dashboard.built_objects import BuiltObjects
from trainer_dashboard.rejected import RejectedError


def build_objects(train_job: Object, resource: Resource, runtime: Object) -> BuiltObjects:
    """See `Renderer`; with all plugins that are installed here."""
    try:
        (rendered,) = render_documents([Document(TRAIN_JOBS, train_job), Document(resource, runtime)])
    except BadInputError as error:
        raise RejectedError(FieldError("", str(error))) from None
    return BuiltObjects(rendered.to_yaml(explain=True), rendered.notes)
