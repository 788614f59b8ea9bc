"""Write requests: one create, update, patch or apply, and the checks that the body alone decides."""

from __future__ import annotations

from dataclasses import dataclass, field

from trainer.kube.errors import ApiError
from trainer.kube.field_errors import FieldError
from trainer.kube.objects import Object, name_of, namespace_of
from trainer.kube.resource import NAMESPACES, Resource
from trainer_devcluster.apiserver.admission.attributes import Attributes, Operation, RuleTarget
from trainer_devcluster.apiserver.authentication.user import User
from trainer_devcluster.apiserver.authorization.writes import WriteGuard
from trainer_devcluster.apiserver.definitions.routing import Target
from trainer_devcluster.apiserver.objects.built_in_types import definition_name, object_meta
from trainer_devcluster.apiserver.objects.decoding import WrongTypeError, json_name, normalize
from trainer_devcluster.apiserver.storage.storage import Partition
from trainer_devcluster.apiserver.wire.headers import Warnings
from trainer_devcluster.apiserver.wire.params import META_GROUP, FieldValidation, WriteParameters
from trainer_kube_testing.api_semantics import statuses

LARGE_BYTES = 64 * 1024
"""Bodies from this size on are decoded, merged and validated beside the event loop."""
_ENVELOPE = frozenset({"apiVersion", "kind", "metadata"})
_SCHEME = "pkg/api/legacyscheme/scheme.go:30"
"""How the real server names its collection of built-in kinds."""
_NAMESPACES = Partition.of(NAMESPACES)


@dataclass(slots=True)
class Write:
    """One write request on its way to the storage."""

    target: Target
    parameters: WriteParameters
    user: User
    """The user who writes."""
    warnings: Warnings = field(default_factory=Warnings)
    """Texts for Warning headers, collected on the way."""
    duplicates: list[str] = field(default_factory=list)
    """Paths of members that occurred twice in the body."""
    size: int = 0
    """Bytes of the body."""
    guard: WriteGuard | None = None
    """Refuses what the user may not make of the object; None for the server itself."""

    @property
    def is_large(self) -> bool:
        """Whether working on it would hold up other requests."""
        return self.size >= LARGE_BYTES or self.target.definition.heavy

    def endpoint(self, operation: Operation) -> RuleTarget:
        """The target of the write, as the rules of webhooks match it."""
        return RuleTarget(operation, self.target.definition.resource, self.target.subresource)

    def attributes(self, operation: Operation, obj: Object | None, old: Object | None) -> Attributes:
        """The admission attributes of the request.

        Args:
            operation: what it does.
            obj: the new object.
            old: the stored one.
        """
        target = self.target
        name = target.name or (name_of(obj) if obj is not None else "")
        namespace = name if Partition.of(target.definition.resource) == _NAMESPACES else target.namespace or ""
        return Attributes(
            endpoint=self.endpoint(operation),
            namespace=namespace,
            name=name,
            object=obj,
            old=old,
            user=self.user,
            options=self._options(operation),
            dry_run=self.parameters.dry_run,
        )

    def authorize(self, new: Object, live: Object | None) -> None:
        """Refuse what the user may not make of the object, whatever the verb of the request allows.

        Args:
            new: as it would be stored.
            live: as it is stored; None for a creation.

        Raises:
            ApiError: as `WriteGuard.check`.
        """
        if self.guard is not None:
            self.guard.check(new, live)

    def accept_mutated(self, obj: Object) -> None:
        """Take in, in place, what a webhook has made of an object; fields that the kind does not have are dropped.

        Raises:
            ApiError: 400 or 500, it is no longer an object of its kind.
        """
        self._check_kind(obj)
        if not isinstance(obj.get("metadata"), dict):
            raise statuses.internal_error("a webhook has left the object without metadata")
        try:
            self._prune(obj)
        except ApiError as error:
            raise statuses.internal_error(error.message) from error
        self._check_place(obj)

    def accept(self, obj: object) -> Object:
        """Check that a decoded body is of the target's kind and place; drop fields that the kind does not have.

        Args:
            obj: changed in place: pruned and normalized, its apiVersion and kind filled in.

        Raises:
            ApiError: 400 or 422, it belongs elsewhere, cannot be decoded, or has unknown fields in strict mode.
        """
        if not isinstance(obj, dict):
            raise self._unhandled("the body must be an object")
        self._check_kind(obj)
        if obj.get("metadata") is None:
            obj["metadata"] = {}
        if not isinstance(obj["metadata"], dict):
            found = json_name(obj["metadata"])
            raise self._unhandled(
                f"json: cannot unmarshal {found} into Go struct field {self._kind}.metadata of type v1.ObjectMeta"
            )
        forget_managers = obj["metadata"].get("managedFields") == []
        unknown = self._prune(obj)
        if forget_managers:
            obj["metadata"]["managedFields"] = []
        self._check_place(obj)
        complaints = [f'duplicate field "{path}"' for path in self.duplicates]
        self._complain(complaints + [f'unknown field "{path}"' for path in unknown])
        return obj

    @property
    def _kind(self) -> str:
        return self.target.definition.resource.kind

    @property
    def _version(self) -> str:
        return f'"{self.target.definition.resource.version}"'

    def _check_kind(self, obj: Object) -> None:
        resource = self.target.definition.resource
        custom = self.target.definition.is_custom
        api_version, kind = obj.get("apiVersion"), obj.get("kind")
        if not isinstance(api_version or "", str) or not isinstance(kind or "", str):
            raise statuses.bad_request("couldn't get version/kind; apiVersion and kind must be strings")
        if custom and not (kind and api_version):
            missing = "Kind" if not kind else "apiVersion"
            raise statuses.bad_request(f"Object '{missing}' is missing in the body")
        if api_version and api_version != resource.api_version:
            if not custom and (kind or resource.kind) != resource.kind:
                raise _unconvertible(api_version, kind or resource.kind, resource)
            message = (
                f"the API version in the data ({api_version}) does not match the expected API version "
                f"({resource.api_version})"
            )
            # A version without a schema knows no field at all, and the real server says so first.
            if custom:
                self.warnings.add(*(f'unknown field "{name}"' for name in sorted(obj) if name not in _ENVELOPE))
            raise statuses.bad_request(message)
        if kind and kind != resource.kind:
            if custom:
                cause = FieldError("kind", f'Invalid value: "{kind}": must be {resource.kind}')
                name = name_of(obj) if isinstance(obj.get("metadata"), dict) else ""
                raise statuses.invalid(kind, resource.group, name, [cause])
            raise _unconvertible(api_version or resource.api_version, kind, resource)
        obj["apiVersion"], obj["kind"] = resource.api_version, resource.kind

    def _check_place(self, obj: Object) -> None:
        name, namespace = name_of(obj), namespace_of(obj)
        if self.target.name and name and name != self.target.name:
            raise statuses.bad_request(
                f"the name of the object ({name}) does not match the name on the URL ({self.target.name})"
            )
        if self.target.name:
            obj["metadata"]["name"] = self.target.name
        if namespace and namespace != (self.target.namespace or ""):
            raise statuses.bad_request(
                "the namespace of the provided object does not match the namespace sent on the request"
            )

    def _prune(self, obj: Object) -> list[str]:
        definition = self.target.definition
        try:
            if definition.schema is None:
                unknown = definition.typing.prune(obj)
                normalize(obj, definition.typing)
            else:
                unknown = [f"metadata.{path}" for path in object_meta().prune(obj["metadata"])]
                normalize(obj["metadata"], object_meta())
                unknown = sorted({*unknown, *definition.schema.prune(obj)})
        except WrongTypeError as error:
            raise self._unhandled(str(error)) from error
        return unknown

    def _complain(self, complaints: list[str]) -> None:
        if not complaints or self.parameters.field_validation is FieldValidation.IGNORE:
            return
        if self.parameters.field_validation is FieldValidation.STRICT:
            raise self._unhandled(f"strict decoding error: {', '.join(complaints)}")
        self.warnings.add(*complaints)

    def _options(self, operation: Operation) -> Object:
        options: Object = {"kind": f"{operation.capitalize()}Options", "apiVersion": f"{META_GROUP}/v1"}
        if self.parameters.dry_run:
            options["dryRun"] = ["All"]
        if self.parameters.explicit_manager:
            options["fieldManager"] = self.parameters.field_manager
        if self.parameters.field_validation is not FieldValidation.WARN:
            options["fieldValidation"] = self.parameters.field_validation
        return options

    def _unhandled(self, problem: str) -> ApiError:
        return statuses.bad_request(
            f"{self._kind} in version {self._version} cannot be handled as a {self._kind}: {problem}"
        )


def _unconvertible(api_version: str, kind: str, resource: Resource) -> ApiError:
    """400: the body is of another kind than the resource."""
    version = api_version.rpartition("/")[2]
    if definition_name(api_version, kind) is None:
        problem = f'no kind "{kind}" is registered for version "{api_version}" in scheme "{_SCHEME}"'
    else:
        package = (resource.group or "core").partition(".")[0]
        problem = f"converting ({version}.{kind}) to ({package}.{resource.kind}): unknown conversion"
    return statuses.bad_request(f'{kind} in version "{version}" cannot be handled as a {resource.kind}: {problem}')
