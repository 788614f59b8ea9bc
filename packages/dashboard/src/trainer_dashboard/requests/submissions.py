"""TrainJobs that users submit on the page: tried as they are typed, and created."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from trainer.api.submitted_object import identity_errors, object_errors, text_errors
from trainer.api.trainjob import TRAIN_JOBS, TrainJob
from trainer.kube.client import ObjectRequest, Verb
from trainer.kube.errors import ForbiddenError
from trainer.kube.field_errors import FieldError, required
from trainer.kube.objects import Object, ObjectKey, name_of, namespace_of
from trainer.kubernetes_yaml import YamlError, parse
from trainer.v1alpha1.discovery import Served
from trainer.v1alpha1.trainjob import TrainJob as V1Alpha1TrainJob
from trainer_dashboard.access.actions import FIELD_MANAGER
from trainer_dashboard.access.parties import Party
from trainer_dashboard.access.viewer import Viewer
from trainer_dashboard.requests.rejected import RejectedError

LONGEST_YAML: Final = 64 * 1024
"""Characters; a TrainJob of some thousand lines, which takes a tenth of a second to read."""
_NAMESPACE: Final = re.compile(
    r"""\bnamespace["']?[ \t]*:[ \t]*["']?([a-z0-9](?:[-a-z0-9]{0,61}[a-z0-9])?)""", re.ASCII
)
_MOST_NAMESPACES = 4
"""Namespaces that a text may mention before the rights of its user are asked for."""
_SHORT: Final = 4096
"""Characters of a text that is read though it mentions no namespace, to say what else it lacks."""
_NO_NAMESPACE: Final = required("metadata.namespace", "the namespace to create it in")


@dataclass(frozen=True, slots=True)
class Submissions:
    """Creates TrainJobs with the rights of a user, in the version that the cluster serves."""

    viewer: Viewer
    served: Served
    party: Party

    async def submit(self, text: str, *, dry_run: bool) -> Object:
        """Create the TrainJob of a text, or only try it: admission included, nothing stored.

        Returns:
            Its namespace and name.

        Raises:
            RejectedError: the text is no TrainJob.
            KubeError: the API server refuses it.
        """
        if len(text) > LONGEST_YAML:
            raise RejectedError(FieldError("", f"must have at most {LONGEST_YAML} characters"))
        await self._require_right(text)
        job = await self.party.compute(self._read, text)
        request = ObjectRequest(
            Verb.CREATE,
            self.served.resource(TRAIN_JOBS),
            name_of(job),
            namespace_of(job),
            job,
            field_manager=FIELD_MANAGER,
            dry_run=dry_run,
        )
        created = await self.viewer.client.send(request)
        assert created is not None
        return {"namespace": namespace_of(created), "name": name_of(created)}

    async def _require_right(self, text: str) -> None:
        """Refuse a text before it is read as YAML, of a user who may create TrainJobs in no namespace that it mentions.

        Raises:
            RejectedError: it mentions none.
            KubeError: they may not, or the API server does not say.
        """
        mentioned = list(dict.fromkeys(match[1] for match in _NAMESPACE.finditer(text)))[:_MOST_NAMESPACES]
        for namespace in mentioned:
            if await self.viewer.may("create", TRAIN_JOBS, ObjectKey(namespace, "")):
                return
        if mentioned:
            raise ForbiddenError(403, f"you may not create TrainJobs in the namespace {mentioned[0]}")
        if len(text) > _SHORT:
            raise RejectedError(_NO_NAMESPACE)

    def _read(self, text: str) -> Object:
        try:
            documents = [each for each in parse(text, aliases=False) if each is not None]
        except YamlError as error:
            raise RejectedError(FieldError(error.where, str(error))) from None
        if len(documents) != 1 or not isinstance(documents[0], dict):
            raise RejectedError(FieldError("", f"must be one TrainJob, found {len(documents)} documents"))
        job: Object = documents[0]
        errors = [*text_errors(job)] or [*self._type_errors(job)] or [*identity_errors(job)] or _place_errors(job)
        model = TrainJob if self.served.version == "v2alpha1" else V1Alpha1TrainJob
        if errors := errors or object_errors(job, model):
            raise RejectedError(*errors)
        return {name: value for name, value in job.items() if name != "status"}

    def _type_errors(self, job: Object) -> Iterable[FieldError]:
        resource = self.served.resource(TRAIN_JOBS)
        for field, wanted in (("apiVersion", resource.api_version), ("kind", resource.kind)):
            if job.get(field) != wanted:
                yield FieldError(field, f"must be {wanted}, as this cluster serves TrainJobs")


def _place_errors(job: Object) -> list[FieldError]:
    return [] if namespace_of(job) else [_NO_NAMESPACE]
