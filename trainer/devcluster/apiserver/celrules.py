"""CEL rules in schemas (`x-kubernetes-validations`).

Source: Kubernetes documentation, "Validation rules". Expressions run in the `cel` package; what it does not have is a
compile error of the definition. Differences that remain: there is no type checker beyond the existence of fields, cost
limits are not enforced, `size()` of a text counts bytes, and `all` and `exists` fail with the first item whose
predicate fails, also where another item decides.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import cel

from trainer.devcluster.apiserver.celentries import check_entry, field_names
from trainer.devcluster.apiserver.celtypes import (
    EVALUATION_ERRORS,
    describe_error,
    functions_of,
    parse_error,
    undeclared,
    unknown_field,
    value_of,
)
from trainer.devcluster.apiserver.correlation import ABSENT, old_items, same
from trainer.kube import field_errors

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from trainer.kube.field_errors import FieldError

    Schema = Mapping[str, Any]

_RULES: Final = "x-kubernetes-validations"
_ROOT_PROPERTIES: Final = {
    "apiVersion": {"type": "string"},
    "kind": {"type": "string"},
    "metadata": {
        "type": "object",
        "properties": {"name": {"type": "string"}, "generateName": {"type": "string"}},
    },
}
_VARIABLES: Final = ("self", "oldSelf")
_MAX_MESSAGE_BYTES: Final = 5120


@dataclass(frozen=True, slots=True)
class _Rule:
    program: Any
    functions: Mapping[str, Callable[..., Any]]
    text: str
    message: str
    message_program: Any | None
    reason: str
    field_path: str
    uses_old_self: bool
    optional_old_self: bool

    @property
    def described(self) -> str:
        return self.message or self.text


@dataclass(slots=True)
class Rules:
    """The rules of a schema node and of everything below it."""

    schema: Schema
    is_resource: bool
    own: list[_Rule] = field(default_factory=list)
    properties: dict[str, Rules] = field(default_factory=dict)
    values: Rules | None = None
    """Rules of map values (`additionalProperties`)."""
    items: Rules | None = None
    all_of: list[Rules] = field(default_factory=list)

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to check."""
        return not (self.own or self.properties or self.values or self.items or self.all_of)

    def validate(
        self, value: object, old: object = ABSENT, path: str = "", *, ratchet: bool = True
    ) -> list[FieldError]:
        """What the rules say against a value.

        Args:
            value: any JSON value that the schema's keywords accept.
            old: the value before the update; transition rules run only where there is one.
            path: path of the value in its object.
            ratchet: whether rules without `oldSelf` are not checked again on unchanged values.
        """
        if value is None:
            return []
        unchanged = ratchet and old is not ABSENT and same(value, old)
        causes = self._check(value, old, path, unchanged=unchanged)
        for nested in self.all_of:
            causes += nested.validate(value, old, path, ratchet=False)
        for rules, child, old_child, child_path in self._children(value, old, path):
            causes += rules.validate(child, old_child, child_path, ratchet=ratchet)
        return causes

    def _children(self, value: object, old: object, path: str) -> Iterator[tuple[Rules, object, object, str]]:
        if isinstance(value, list):
            if self.items is not None:
                for index, (item, old_item) in enumerate(zip(value, old_items(value, old, self.schema), strict=True)):
                    yield self.items, item, old_item, f"{path}[{index}]"
            return
        if not isinstance(value, dict):
            return
        correlated = isinstance(old, dict) and self.schema.get("x-kubernetes-map-type") != "atomic"
        old_fields: Mapping[str, Any] = old if correlated and isinstance(old, dict) else {}
        for name, child in value.items():
            if name in self.properties:
                yield self.properties[name], child, old_fields.get(name, ABSENT), f"{path}.{name}" if path else name
            elif self.values is not None:
                yield self.values, child, old_fields.get(name, ABSENT), f"{path}[{name}]"

    def _check(self, value: object, old: object, path: str, *, unchanged: bool) -> list[FieldError]:
        applicable = [
            rule
            for rule in self.own
            if (rule.optional_old_self or old is not ABSENT or not rule.uses_old_self)
            and (rule.uses_old_self or not unchanged)
        ]
        if not applicable:
            return []
        schema = _with_root_properties(self.schema) if self.is_resource else self.schema
        new_self = value_of(value, schema)
        old_self = ABSENT if old is ABSENT else value_of(old, schema, order_like=value)
        shown = field_errors.OMITTED if isinstance(value, dict | list) else value
        outcomes = (_evaluate(rule, _bind(rule, new_self, old_self), shown, path) for rule in applicable)
        return [cause for cause in outcomes if cause is not None]


def compile_rules(
    schema: Schema,
    path: str = "",
    *,
    is_resource: bool = False,
    rule_source: Schema | None = None,
    uncorrelated: str = "",
) -> tuple[Rules, list[FieldError]]:
    """Compile the rules of a structural schema.

    Args:
        schema: the structural schema.
        path: where the schema is in its definition, for the fields of the causes.
        is_resource: whether `self` is a whole object, with apiVersion, kind and the names in metadata.
        rule_source: where rules are written, when that is inside an `allOf` of the schema.
        uncorrelated: path of the list because of which nothing here has a past that `oldSelf` could be.

    Returns:
        The rules, and a cause for every expression that cannot be compiled.
    """
    source = schema if rule_source is None else rule_source
    rules, causes = Rules(schema, is_resource), []
    for index, entry in enumerate(source.get(_RULES) or ()):
        rule = _compile(entry, schema, f"{path}.{_RULES}[{index}]", is_resource=is_resource)
        if isinstance(rule, _Rule):
            rules.own.append(rule)
            causes += _check_transition(rule, f"{path}.{_RULES}[{index}]", uncorrelated)
        else:
            causes += rule

    def below(child: Schema | None, keyword: str, nested: Schema | None) -> Rules | None:
        if not isinstance(child, dict) or not isinstance(nested, dict):
            return None
        embedded = bool(child.get("x-kubernetes-embedded-resource"))
        forgets = keyword == "items" and schema.get("x-kubernetes-list-type") != "map"
        compiled, problems = compile_rules(
            child,
            f"{path}.{keyword}",
            is_resource=embedded,
            rule_source=nested,
            uncorrelated=uncorrelated or (path if forgets else ""),
        )
        causes.extend(problems)
        return None if compiled.is_empty else compiled

    rules.items = below(schema.get("items"), "items", source.get("items"))
    rules.values = below(schema.get("additionalProperties"), "additionalProperties", source.get("additionalProperties"))
    declared = schema.get("properties") or {}
    for name, nested in (source.get("properties") or {}).items():
        compiled = below(declared.get(name), f"properties[{name}]", nested)
        if compiled is not None:
            rules.properties[name] = compiled
    for index, nested in enumerate(source.get("allOf") or ()):
        alternative, problems = compile_rules(
            schema,
            f"{path}.allOf[{index}]",
            is_resource=is_resource,
            rule_source={**nested, "allOf": ()},
            uncorrelated=uncorrelated,
        )
        causes.extend(problems)
        if not alternative.is_empty:
            rules.all_of.append(alternative)
    return rules, causes


def _compile(entry: Mapping[str, Any], schema: Schema, path: str, *, is_resource: bool) -> _Rule | list[FieldError]:
    checked = _with_root_properties(schema) if is_resource else schema
    causes = check_entry(entry, checked, path)
    if causes:
        return causes
    text, message_text = str(entry["rule"]).strip(), str(entry.get("messageExpression") or "").strip()
    programs: list[Any] = []
    for keyword, expression in (("rule", text), ("messageExpression", message_text)):
        if not expression:
            programs.append(None)
            continue
        try:
            program = cel.compile(expression)
        except ValueError as error:
            return [field_errors.invalid(f"{path}.{keyword}", expression, f"compilation failed: {parse_error(error)}")]
        problem = undeclared(program, expression, _VARIABLES) or unknown_field(expression, checked)
        if problem:
            return [field_errors.invalid(f"{path}.{keyword}", expression, f"compilation failed: {problem}")]
        programs.append(program)
    return _Rule(
        program=programs[0],
        functions=functions_of([program for program in programs if program is not None]),
        text=text,
        message=str(entry.get("message") or "").strip(),
        message_program=programs[1],
        reason=str(entry.get("reason") or "FieldValueInvalid"),
        field_path="".join(f".{name}" for name in field_names(str(entry.get("fieldPath") or ""))),
        uses_old_self="oldSelf" in programs[0].variables(),
        optional_old_self=bool(entry.get("optionalOldSelf")),
    )


def _check_transition(rule: _Rule, path: str, uncorrelated: str) -> list[FieldError]:
    if rule.uses_old_self and uncorrelated:
        detail = f"oldSelf cannot be used on the uncorrelatable portion of the schema within {uncorrelated}"
        return [field_errors.invalid(f"{path}.rule", rule.text, detail)]
    if rule.optional_old_self and not rule.uses_old_self:
        detail = "may not be set if oldSelf is not used in rule"
        return [field_errors.invalid(f"{path}.optionalOldSelf", True, detail)]
    return []


def _with_root_properties(schema: Schema) -> Schema:
    return {**schema, "properties": {**(schema.get("properties") or {}), **_ROOT_PROPERTIES}}


def _bind(rule: _Rule, new_self: object, old_self: object) -> dict[str, Any]:
    if rule.optional_old_self:
        optional = cel.OptionalValue.none() if old_self is ABSENT else cel.OptionalValue.of(old_self)
        return {"self": new_self, "oldSelf": optional}
    return {"self": new_self} if old_self is ABSENT else {"self": new_self, "oldSelf": old_self}


def _evaluate(rule: _Rule, variables: dict[str, Any], shown: object, path: str) -> FieldError | None:
    try:
        result = rule.program.execute(cel.Context(variables=variables, functions=dict(rule.functions)))
    except EVALUATION_ERRORS as error:
        return field_errors.invalid(path, shown, f"{describe_error(error)} evaluating rule: {rule.described}")
    if result is True:
        return None
    if not isinstance(result, bool):
        return field_errors.invalid(path, shown, f"cel expression must evaluate to a bool: {rule.described}")
    detail = _evaluated_message(rule, variables) or rule.message or f"failed rule: {rule.text}"
    return _cause(rule.reason, f"{path}{rule.field_path}".removeprefix("."), shown, detail)


def _evaluated_message(rule: _Rule, variables: dict[str, Any]) -> str:
    if rule.message_program is None:
        return ""
    try:
        text = rule.message_program.execute(cel.Context(variables=variables, functions=dict(rule.functions)))
    except EVALUATION_ERRORS:
        # As documented: a message that cannot be made falls back to the fixed one.
        return ""
    if not isinstance(text, str) or "\n" in text or len(text.encode()) > _MAX_MESSAGE_BYTES:
        return ""
    return text.strip()


def _cause(reason: str, path: str, value: object, detail: str) -> FieldError:
    if reason == "FieldValueForbidden":
        return field_errors.forbidden(path, detail)
    if reason == "FieldValueRequired":
        return field_errors.required(path, detail)
    if reason == "FieldValueDuplicate":
        return field_errors.duplicate(path, value)
    return field_errors.invalid(path, value, detail)
