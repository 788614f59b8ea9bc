"""Reviews: objects that are answered and not kept, such as a TokenReview."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trainer.kube.api_semantics import field_managers, statuses
from trainer_devcluster.apiserver.definitions.routing import Target
from trainer_devcluster.apiserver.handlers.call import answer
from trainer_devcluster.apiserver.objects.built_in_types import empty_object

if TYPE_CHECKING:
    from aiohttp import web

    from trainer.kube.errors import ApiError
    from trainer.kube.field_errors import FieldError
    from trainer.kube.objects import Object
    from trainer_devcluster.apiserver.definitions.resource_definition import ResourceDefinition
    from trainer_devcluster.apiserver.handlers.call import Call
    from trainer_devcluster.apiserver.writes.write import Write


class Review:
    """One request for an answer: the object that came, and the object that goes back."""

    def __init__(self, call: Call, write: Write, obj: Object) -> None:
        self._call = call
        self._write = write
        self.object = obj
        """As it came; `spec` is always an object."""

    @classmethod
    async def of(cls, call: Call, definition: ResourceDefinition | None = None) -> Review:
        """Read the body of a request.

        Args:
            call: the request.
            definition: what the body is, when it is not an object of the target's kind.

        Raises:
            ApiError: 400, 413 or 415, it cannot be read or is something else.
        """
        write = call.write_of(_target(call, definition or call.target.definition))
        body, write.duplicates = await call.decoded()
        obj = write.accept(body)
        obj.pop("status", None)
        obj["spec"] = obj.get("spec") or {}
        return cls(call, write, obj)

    def note_manager(self, subresource: str | None = None) -> None:
        """Say in the answer who has set which fields, as the real server does; call it before the answer is put in."""
        definition = self._write.target.definition
        entries = field_managers.update(
            None,
            self.object,
            manager=self._write.parameters.field_manager,
            schema=definition.typing,
            subresource=subresource,
            now=self._call.backend.now(),
            empty=empty_object(self.object),
        )
        self.object["metadata"].pop("managedFields", None)
        if entries:
            self.object["metadata"]["managedFields"] = entries

    def refused(self, *causes: FieldError) -> ApiError:
        """A 422 that names what is wrong with it."""
        resource = self._write.target.definition.resource
        return statuses.invalid(resource.kind, resource.group, self.object["metadata"].get("name", ""), list(causes))

    def answered(self, outcome: Object) -> web.Response:
        """The answer, with the outcome as its status."""
        body = {**self.object, "status": outcome}
        return answer(body, 201, warnings=self._write.warnings.texts)


def _target(call: Call, definition: ResourceDefinition) -> Target:
    return Target(definition, "create", call.target.namespace)
