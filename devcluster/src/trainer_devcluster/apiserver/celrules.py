"""CEL rules in schemas (`x-kubernetes-validations`).

Source: Kubernetes documentation, "Validation rules"; texts are those of the API server. What rules may cost
is limited before they are accepted, see `celbudget`, and not while they are evaluated.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from trainer.kube import field_errors
from trainer.kube.field_errors import FieldError
from trainer_devcluster.apiserver.cel import types
from trainer_devcluster.apiserver.cel.errors import CompileError, EvaluationError
from trainer_devcluster.apiserver.cel.program import compile_expression
from trainer_devcluster.apiserver.cel.values import NONE, some
from trainer_devcluster.apiserver.celbudget import Budget, times_below, times_in_request
from trainer_devcluster.apiserver.celentries import field_names
from trainer_devcluster.apiserver.celsizes import size_at
from trainer_devcluster.apiserver.celtypes import SchemaTypes, value_of, with_root_properties
from trainer_devcluster.apiserver.objects.correlation import ABSENT, old_items, same

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from trainer_devcluster.apiserver.cel.call_costs import SizeOf
    from trainer_devcluster.apiserver.cel.program import Program
    from trainer_devcluster.apiserver.cel.types import Type

    Schema = Mapping[str, Any]

_RULES: Final = "x-kubernetes-validations"
_MAX_MESSAGE_BYTES: Final = 5120
_GO_ESCAPES: Final = {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026"}


@dataclass(frozen=True, slots=True)
class _Rule:
    program: Program
    message: str
    message_program: Program | None
    reason: str
    field_path: str
    optional_old_self: bool

    @property
    def uses_old_self(self) -> bool:
        return "oldSelf" in self.program.variables

    @property
    def described(self) -> str:
        return self.message or self.program.source


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

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to check."""
        return not (self.own or self.properties or self.values or self.items)

    def validate(self, value: object, old: object = ABSENT, path: str = "") -> list[FieldError]:
        """What the rules say against a value.

        Args:
            value: any JSON value that the schema's keywords accept.
            old: the value before the update; transition rules run only where there is one.
            path: path of the value in its object.
        """
        if value is None:
            return []
        unchanged = old is not ABSENT and same(value, old)
        causes = self._check(value, old, path, unchanged=unchanged)
        for rules, child, old_child, child_path in self._children(value, old, path):
            causes += rules.validate(child, old_child, child_path)
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
        schema = with_root_properties(self.schema) if self.is_resource else self.schema
        new_self = value_of(value, schema)
        old_self = ABSENT if old is ABSENT else value_of(old, schema, order_like=value)
        shown = field_errors.OMITTED if isinstance(value, dict | list) else value
        outcomes = (_evaluate(rule, _bind(rule, new_self, old_self), shown, path) for rule in applicable)
        return [cause for cause in outcomes if cause is not None]


def compile_rules(
    schema: Schema, path: str = "", *, is_resource: bool = False, budget: Budget | None = None
) -> tuple[Rules, list[FieldError]]:
    """Compile the rules of a structural schema whose entries have been checked.

    Args:
        schema: the structural schema.
        path: where the schema is in its definition, for the fields of the causes.
        is_resource: whether `self` is a whole object, with apiVersion, kind and the names in metadata.
        budget: what they may cost; the default is anything.

    Returns:
        The rules, and a cause for every expression that cannot be compiled or is too expensive.
    """
    compiler = _Compiler(budget)
    rules = compiler.compile(schema, path, _Place(), is_resource=is_resource)
    if budget is not None:
        compiler.causes += budget.check_total(path)
    return rules, compiler.causes


class _Place(NamedTuple):
    """What is known about a node from those above it."""

    uncorrelated: str = ""
    """Path of the list or map because of which nothing here has a past that `oldSelf` could be."""
    times: int | None = 1
    """How often the node can occur in an object; None when nothing bounds it."""


class _Scope(NamedTuple):
    """What an expression may refer to."""

    variables: Mapping[str, Type]
    size_of: SizeOf | None


@dataclass(slots=True)
class _Compiler:
    budget: Budget | None
    causes: list[FieldError] = field(default_factory=list)
    types: SchemaTypes = field(default_factory=SchemaTypes)

    def compile(self, schema: Schema, path: str, place: _Place, *, is_resource: bool = False) -> Rules:
        """The rules of a node and of everything below it.

        Args:
            schema: the node.
            path: where it is in the definition.
            place: what is above it.
            is_resource: whether it is a whole object.
        """
        is_resource = is_resource or bool(schema.get("x-kubernetes-embedded-resource"))
        rules = Rules(schema, is_resource)
        for index, entry in enumerate(schema.get(_RULES) or ()):
            rule_path = f"{path}.{_RULES}[{index}]"
            self_type = self.types.of(schema, is_resource=is_resource)
            rule = self._rule(entry, self_type or types.DYN, rules, rule_path)
            if rule is not None:
                rules.own.append(rule)
                self.causes += self._charge(rule, rules, rule_path, place.times)
                self.causes += _check_transition(rule, rule_path, place.uncorrelated)
        self._compile_below(rules, path, place)
        return rules

    def _compile_below(self, rules: Rules, path: str, place: _Place) -> None:
        schema, times = rules.schema, times_below(rules.schema, place.times)
        forgets_items = "" if schema.get("x-kubernetes-list-type") == "map" else path
        forgets_fields = path if schema.get("x-kubernetes-map-type") == "atomic" else ""
        in_items = _Place(place.uncorrelated or forgets_items, times)
        rules.items = self._below(schema.get("items"), f"{path}.items", in_items)
        values = schema.get("additionalProperties")
        rules.values = self._below(values, f"{path}.additionalProperties", _Place(place.uncorrelated, times))
        in_fields = _Place(place.uncorrelated or forgets_fields, times)
        for name, child in (schema.get("properties") or {}).items():
            compiled = self._below(child, f"{path}.properties[{name}]", in_fields)
            if compiled is not None:
                rules.properties[name] = compiled

    def _charge(self, rule: _Rule, rules: Rules, path: str, times: int | None) -> Iterator[FieldError]:
        if self.budget is None:
            return
        if times is None:
            times = times_in_request(rules.schema, is_resource=rules.is_resource)
        yield from self.budget.charge(f"{path}.rule", "rule", rule.program.cost, times)
        if rule.message_program is not None:
            # The API server does not count how often a message can be wanted.
            message, keyword = rule.message_program, "messageExpression"
            yield from self.budget.charge(f"{path}.{keyword}", keyword, message.cost, 1)

    def _below(self, schema: object, path: str, place: _Place) -> Rules | None:
        if not isinstance(schema, dict):
            return None
        compiled = self.compile(schema, path, place)
        return None if compiled.is_empty else compiled

    def _rule(self, entry: Mapping[str, Any], self_type: Type, rules: Rules, path: str) -> _Rule | None:
        optional = bool(entry.get("optionalOldSelf"))
        variables = {"self": self_type, "oldSelf": types.optional_of(self_type) if optional else self_type}
        size_of = None if self.budget is None else partial(size_at, rules.schema, is_resource=rules.is_resource)
        scope = _Scope(variables, size_of)
        program = self._program(entry, "rule", scope, f"{path}.rule")
        message = self._program(entry, "messageExpression", scope, f"{path}.messageExpression")
        if program is None:
            return None
        return _Rule(
            program=program,
            message=str(entry.get("message") or "").strip(),
            message_program=message,
            reason=str(entry.get("reason") or "FieldValueInvalid"),
            field_path="".join(f".{name}" for name in field_names(str(entry.get("fieldPath") or ""))),
            optional_old_self=optional,
        )

    def _program(self, entry: Mapping[str, Any], keyword: str, scope: _Scope, path: str) -> Program | None:
        source = str(entry.get(keyword) or "").strip()
        if not source:
            return None
        is_rule = keyword == "rule"
        try:
            program = compile_expression(source, scope.variables, size_of=scope.size_of)
        except CompileError as error:
            stage = "compilation failed" if is_rule else "messageExpression compilation failed"
            self.causes.append(_invalid_entry(path, entry, f"{stage}: {error}"))
            return None
        if program.result != (types.BOOL if is_rule else types.STRING):
            detail = (
                "cel expression must evaluate to a bool" if is_rule else "messageExpression must evaluate to a string"
            )
            self.causes.append(_invalid_entry(path, entry, detail))
            return None
        return program


def _invalid_entry(path: str, entry: Mapping[str, Any], detail: str) -> FieldError:
    """A refusal that repeats the entry as the server holds it: Go's field names, Go's escapes."""
    shown = {
        "Rule": str(entry.get("rule") or ""),
        "Message": str(entry.get("message") or ""),
        "MessageExpression": str(entry.get("messageExpression") or ""),
        "Reason": entry.get("reason"),
        "FieldPath": str(entry.get("fieldPath") or ""),
        "OptionalOldSelf": entry.get("optionalOldSelf"),
    }
    text = json.dumps(shown, ensure_ascii=False, separators=(",", ":"))
    for character, escaped in _GO_ESCAPES.items():
        text = text.replace(character, escaped)
    return FieldError(path, f"Invalid value: {text}: {detail}")


def _check_transition(rule: _Rule, path: str, uncorrelated: str) -> list[FieldError]:
    if rule.uses_old_self and uncorrelated:
        detail = f"oldSelf cannot be used on the uncorrelatable portion of the schema within {uncorrelated}"
        return [field_errors.invalid(f"{path}.rule", rule.program.source, detail)]
    if rule.optional_old_self and not rule.uses_old_self:
        detail = "may not be set if oldSelf is not used in rule"
        return [field_errors.invalid(f"{path}.optionalOldSelf", True, detail)]
    return []


def _bind(rule: _Rule, new_self: object, old_self: object) -> dict[str, Any]:
    if rule.optional_old_self:
        return {"self": new_self, "oldSelf": NONE if old_self is ABSENT else some(old_self)}
    return {"self": new_self} if old_self is ABSENT else {"self": new_self, "oldSelf": old_self}


def _evaluate(rule: _Rule, variables: dict[str, Any], shown: object, path: str) -> FieldError | None:
    try:
        if rule.program.evaluate(variables) is True:
            return None
    except EvaluationError as error:
        if str(error).startswith("no such overload"):
            problem = "call arguments did not match a supported operator, function or macro signature for rule"
            return field_errors.invalid(path, shown, f"'{error}': {problem}: {rule.described}")
        return field_errors.invalid(path, shown, f"{error} evaluating rule: {rule.described}")
    detail = _evaluated_message(rule, variables) or rule.message or f"failed rule: {rule.program.source}"
    return _cause(rule.reason, f"{path}{rule.field_path}".removeprefix("."), shown, detail)


def _evaluated_message(rule: _Rule, variables: dict[str, Any]) -> str:
    if rule.message_program is None:
        return ""
    try:
        text = rule.message_program.evaluate(variables)
    except EvaluationError:
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
