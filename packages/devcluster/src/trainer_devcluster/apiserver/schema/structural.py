"""Structural schemas: pruning, defaulting and validation of custom resources.

Source: Kubernetes documentation, "Extend the Kubernetes API with CustomResourceDefinitions".
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from typing import Any, Final

from trainer.kube import field_errors
from trainer.kube.field_errors import FieldError
from trainer.kube.objects import Object
from trainer_devcluster.apiserver.objects.built_in_types import custom_resource_type
from trainer_devcluster.apiserver.schema.schema_check import check_schema
from trainer_devcluster.apiserver.schema.validation import duplicates, validate_value
from trainer_devcluster.apiserver.schema.validation_rules import Rules, compile_rules
from trainer_kube_testing.api_semantics.json_values import ABSENT

_BLOCKING: Final = frozenset(
    {
        "FieldValueNotSupported", "FieldValueRequired", "FieldValueTooLong", "FieldValueTooMany",
        "FieldValueTypeInvalid",
    }
)  # fmt: skip
_NOT_CHECKED: Final = (
    "some validation rules were not checked because the object was invalid; correct the existing errors to complete "
    "validation"
)
_MOST_EXACT: Final = 1 << 53
"""Beyond it a float stands for several whole numbers."""


class SchemaError(ValueError):
    """A schema that the server cannot serve; its definition has to be changed."""

    def __init__(self, causes: Sequence[FieldError]) -> None:
        super().__init__(", ".join(map(str, causes)))
        self.causes = list(causes)


class StructuralSchema:
    """The schema of one version of a custom resource; immutable and safe to share."""

    def __init__(self, document: Object, rules: Rules) -> None:
        """Take what `from_crd` has checked and compiled."""
        self.document = document
        """The `openAPIV3Schema`; never change it."""
        self.typing = custom_resource_type(document)
        """How its lists and maps are merged, for server-side apply."""
        self._rules = rules

    @classmethod
    def from_crd(cls, schema: Object, path: str = "spec.validation.openAPIV3Schema") -> StructuralSchema:
        """Check a schema and compile its rules.

        Args:
            schema: the `openAPIV3Schema` of a version; copied.
            path: where it is in the definition, for the fields of the causes.

        Raises:
            SchemaError: it is not structural, or a pattern or CEL expression in it cannot be compiled.
        """
        document = copy.deepcopy(schema)
        if causes := check_schema(document, path):
            raise SchemaError(causes)
        rules, causes = compile_rules(document, path, is_resource=True)
        if causes:
            raise SchemaError(causes)
        return cls(document, rules)

    def prune(self, obj: Object) -> list[str]:
        """Remove the fields that the schema (or metadata) does not have, in place.

        Returns:
            Their paths, sorted: `spec.parts[0].colour`.
        """
        return self.typing.prune(obj)

    def default(self, obj: Object) -> None:
        """Fill in defaults of absent fields and drop nulls of fields that cannot be null, in place; idempotent.

        Whole numbers lose their point, as in what Go writes: 1.0 becomes 1.
        """
        _default(obj, self.document)

    def validate(self, obj: Object, old: Object | None = None, *, subresource: str | None = None) -> list[FieldError]:
        """What is wrong with a pruned and defaulted object; changes nothing.

        Args:
            obj: the whole object.
            old: the stored object when this is an update; unchanged parts are not checked again and transition rules
                compare with it.
            subresource: `status` checks the keywords of the status only.
        """
        causes = self._validate_keywords(obj, old, subresource)
        if old is None or not duplicates(old, self.document, ""):
            causes += duplicates(obj, self.document, "")
        if any(cause.reason in _BLOCKING for cause in causes):
            return [*causes, field_errors.invalid("<nil>", None, _NOT_CHECKED)]
        return causes + self._rules.validate(obj, ABSENT if old is None else old)

    def _validate_keywords(self, obj: Object, old: Object | None, subresource: str | None) -> list[FieldError]:
        if subresource != "status":
            return validate_value(obj, self.document, old=ABSENT if old is None else old)
        schema = (self.document.get("properties") or {}).get("status")
        if schema is None or "status" not in obj:
            return []
        old_status = ABSENT if old is None else old.get("status", ABSENT)
        return validate_value(obj["status"], schema, prefix="status", old=old_status)


def _default(value: Any, schema: Mapping[str, Any]) -> None:
    if isinstance(value, list):
        items = schema.get("items")
        for item in value if isinstance(items, dict) else ():
            _default(item, items or {})
        return
    if not isinstance(value, dict):
        return
    properties, additional = schema.get("properties") or {}, schema.get("additionalProperties")
    for name, child in properties.items():
        _default_field(value, name, child)
    if isinstance(additional, dict):
        for name in value.keys() - properties.keys():
            _default_field(value, name, additional)


def _default_field(obj: dict[str, Any], name: str, schema: Mapping[str, Any]) -> None:
    if name not in obj or (obj[name] is None and not schema.get("nullable")):
        obj.pop(name, None)
        if schema.get("default") is not None:
            obj[name] = copy.deepcopy(schema["default"])
    if name not in obj:
        return
    value = obj[name]
    if isinstance(value, float) and value.is_integer() and abs(value) < _MOST_EXACT:
        obj[name] = int(value)
    _default(value, schema)
