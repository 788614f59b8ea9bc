"""CEL rules in schemas (`x-kubernetes-validations`), and the values that they see.

Source: Kubernetes documentation, "Validation rules". A rule that goes against its schema, such as one about a field
that the schema does not have, is reported when it is first evaluated. No rule is evaluated any more when those of one
object cost too much together, as in a real API server. Texts stay texts in every format: a rule compares times as
`timestamp(self.when)`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from trainer.kube import field_errors
from trainer.kube.field_errors import FieldError
from trainer_devcluster.apiserver.schema.expressions import (
    COST_LIMIT,
    CompileError,
    EvaluationError,
    Expression,
    compile_expression,
)
from trainer_devcluster.apiserver.schema.schema_check import field_names
from trainer_devcluster.apiserver.schema.validation import item_key, old_items
from trainer_kube_testing.api_semantics.json_values import ABSENT, same

Schema = Mapping[str, Any]


ROOT_PROPERTIES: Final = {
    "apiVersion": {"type": "string"},
    "kind": {"type": "string"},
    "metadata": {
        "type": "object",
        "properties": {"name": {"type": "string"}, "generateName": {"type": "string"}},
    },
}
"""The properties of a whole object that expressions see besides its declared fields."""
_RESERVED: Final = frozenset(
    (
        "true", "false", "null", "in", "as", "break", "const", "continue", "else", "for", "function", "if", "import",
        "let", "loop", "package", "namespace", "return", "var", "void", "while",
    )
)  # fmt: skip
_ESCAPES: Final = (("__", "__underscores__"), (".", "__dot__"), ("-", "__dash__"), ("/", "__slash__"))


def with_root_properties(schema: Schema) -> Schema:
    """The schema of a whole object with what every object has."""
    return {**schema, "properties": {**(schema.get("properties") or {}), **ROOT_PROPERTIES}}


def escape(name: str) -> str:
    """A property name as expressions write it: `a-b` is `a__dash__b`."""
    if name in _RESERVED:
        return f"__{name}__"
    for text, replacement in _ESCAPES:
        name = name.replace(text, replacement)
    return name


def value_of(value: Any, schema: Schema, *, order_like: Any = None) -> Any:
    """A JSON value as its schema types it in CEL.

    Args:
        value: the JSON value.
        schema: its structural schema.
        order_like: the other side of a comparison; sets and map lists come in its order, because their own order has
            no meaning in CEL.
    """
    if value is None or schema.get("x-kubernetes-int-or-string"):
        return value
    if isinstance(value, dict):
        return _map_of(value, schema, order_like if isinstance(order_like, dict) else {})
    if isinstance(value, list):
        items = schema.get("items") or {}
        pairs = _paired(value, order_like, schema)
        return [value_of(item, items, order_like=other) for item, other in pairs]
    if schema.get("type") == "number" and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if schema.get("type") == "integer" and isinstance(value, float) and value.is_integer():
        return int(value)
    return value


def _map_of(value: Mapping[str, Any], schema: Schema, order_like: Mapping[str, Any]) -> dict[str, Any]:
    properties, additional = schema.get("properties"), schema.get("additionalProperties")
    typed: dict[str, Any] = {}
    for name, child in value.items():
        other = order_like.get(name)
        if isinstance(properties, dict) and name in properties:
            typed[escape(name)] = value_of(child, properties[name], order_like=other)
        elif isinstance(additional, dict):
            typed[name] = value_of(child, additional, order_like=other)
        elif not properties:
            typed[name] = value_of(child, {}, order_like=other)
    return typed


def _paired(items: list[Any], order_like: Any, schema: Schema) -> list[tuple[Any, Any]]:
    list_type = schema.get("x-kubernetes-list-type")
    if not isinstance(order_like, list) or list_type not in ("set", "map"):
        return [(item, None) for item in items]

    def key(item: Any) -> object:
        return item_key(item, schema) if list_type == "map" else repr(item)

    positions = {key(other): index for index, other in enumerate(order_like)}
    ordered = sorted(items, key=lambda item: positions.get(key(item), len(order_like)))
    return [(item, order_like[positions[key(item)]] if key(item) in positions else None) for item in ordered]


_RULES: Final = "x-kubernetes-validations"
_MAX_MESSAGE_BYTES: Final = 5120
_OUT_OF_BUDGET: Final = "validation failed due to running out of cost budget, no further validation rules will be run"
_PAST: Final = "past"
"""A list of the old value, if there is one: the library has no optional values outside of expressions."""


class _Program(NamedTuple):
    """A compiled expression of an entry."""

    source: str
    expression: Expression
    uses_old_self: bool


@dataclass(frozen=True, slots=True)
class _Rule:
    program: _Program
    message: str
    message_program: _Program | None
    reason: str
    field_path: str
    optional_old_self: bool

    @property
    def described(self) -> str:
        return self.message or self.program.source


@dataclass(slots=True)
class _Budget:
    """The remaining cost budget of the expressions for one object; negative when it is used up."""

    left: int = COST_LIMIT

    def covers(self, program: _Program, variables: Mapping[str, Any]) -> bool:
        """Take what an evaluation costs; whether there was enough."""
        if self.left >= 0:
            self.left -= program.expression.cost(variables)
        return self.left >= 0


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

    def validate(
        self, value: object, old: object = ABSENT, path: str = "", budget: _Budget | None = None
    ) -> list[FieldError]:
        """Evaluate the rules for a value; returns their violations.

        Args:
            value: any JSON value that the schema's keywords accept.
            old: the value before the update; transition rules run only where there is one.
            path: path of the value in its object.
            budget: what is left for the object of which the value is a part; None for a whole object.
        """
        budget = budget or _Budget()
        if value is None or budget.left < 0:
            return []
        unchanged = old is not ABSENT and same(value, old)
        causes = self._check(value, old, path, budget, unchanged=unchanged)
        for rules, child, old_child, child_path in self._children(value, old, path):
            causes += rules.validate(child, old_child, child_path, budget)
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

    def _check(self, value: object, old: object, path: str, budget: _Budget, *, unchanged: bool) -> list[FieldError]:
        applicable = [
            rule
            for rule in self.own
            if (rule.optional_old_self or old is not ABSENT or not rule.program.uses_old_self)
            and (rule.program.uses_old_self or not unchanged)
        ]
        if not applicable:
            return []
        schema = with_root_properties(self.schema) if self.is_resource else self.schema
        variables = {"self": value_of(value, schema), _PAST: []}
        if old is not ABSENT:
            variables["oldSelf"] = value_of(old, schema, order_like=value)
            variables[_PAST] = [variables["oldSelf"]]
        shown = field_errors.OMITTED if isinstance(value, dict | list) else value
        causes: list[FieldError] = []
        for rule in applicable:
            if not budget.covers(rule.program, variables):
                return [*causes, field_errors.invalid(path, shown, _OUT_OF_BUDGET)]
            cause = _evaluate(rule, variables, shown, path)
            causes += [cause] if cause is not None else []
        return causes


def compile_rules(schema: Schema, path: str = "", *, is_resource: bool = False) -> tuple[Rules, list[FieldError]]:
    """Compile the rules of a structural schema whose entries have been checked.

    Args:
        schema: the structural schema.
        path: where the schema is in its definition, for the fields of the causes.
        is_resource: whether `self` is a whole object, with apiVersion, kind and the names in metadata.

    Returns:
        The rules, and a cause for every expression that cannot be compiled.
    """
    causes: list[FieldError] = []
    return _compile(schema, path, "", causes, is_resource=is_resource), causes


def _compile(
    schema: Schema, path: str, uncorrelated: str, causes: list[FieldError], *, is_resource: bool = False
) -> Rules:
    """The rules of a node and of everything below it.

    Args:
        schema: the node.
        path: where it is in the definition.
        uncorrelated: path of the list or map because of which nothing here has an old value; empty when there is none.
        causes: what is wrong is added here.
        is_resource: whether the node is a whole object.
    """
    rules = Rules(schema, is_resource)
    for index, entry in enumerate(schema.get(_RULES) or ()):
        rule_path = f"{path}.{_RULES}[{index}]"
        rule = _rule(entry, rule_path, causes)
        if rule is not None:
            rules.own.append(rule)
            causes += _check_transition(rule, rule_path, uncorrelated)
    forgets_items = "" if schema.get("x-kubernetes-list-type") == "map" else path
    forgets_fields = path if schema.get("x-kubernetes-map-type") == "atomic" else ""
    rules.items = _below(schema.get("items"), f"{path}.items", uncorrelated or forgets_items, causes)
    values = schema.get("additionalProperties")
    rules.values = _below(values, f"{path}.additionalProperties", uncorrelated, causes)
    for name, child in (schema.get("properties") or {}).items():
        compiled = _below(child, f"{path}.properties[{name}]", uncorrelated or forgets_fields, causes)
        if compiled is not None:
            rules.properties[name] = compiled
    return rules


def _below(schema: object, path: str, uncorrelated: str, causes: list[FieldError]) -> Rules | None:
    if not isinstance(schema, dict):
        return None
    compiled = _compile(schema, path, uncorrelated, causes)
    return None if compiled.is_empty else compiled


def _rule(entry: Mapping[str, Any], path: str, causes: list[FieldError]) -> _Rule | None:
    program = _program(entry, "rule", ("BOOL", "cel expression must evaluate to a bool"), path, causes)
    wanted = ("STRING", "messageExpression must evaluate to a string")
    message = _program(entry, "messageExpression", wanted, path, causes)
    if program is None:
        return None
    return _Rule(
        program=program,
        message=str(entry.get("message") or "").strip(),
        message_program=message,
        reason=str(entry.get("reason") or "FieldValueInvalid"),
        field_path="".join(f".{name}" for name in field_names(str(entry.get("fieldPath") or ""))),
        optional_old_self=bool(entry.get("optionalOldSelf")),
    )


def _program(
    entry: Mapping[str, Any], keyword: str, wanted: tuple[str, str], path: str, causes: list[FieldError]
) -> _Program | None:
    source = str(entry.get(keyword) or "").strip()
    if not source:
        return None
    try:
        program = _compiled(source, optional_old_self=bool(entry.get("optionalOldSelf")))
    except CompileError as error:
        causes.append(field_errors.invalid(f"{path}.{keyword}", source, f"compilation failed: {error}"))
        return None
    result, otherwise = wanted
    if program.expression.result not in (result, "DYN"):
        causes.append(field_errors.invalid(f"{path}.{keyword}", source, otherwise))
        return None
    return program


def _compiled(source: str, *, optional_old_self: bool) -> _Program:
    try:
        return _Program(source, compile_expression(source, ("self",)), uses_old_self=False)
    except CompileError:
        expression = compile_expression(source, ("self", "oldSelf"))
    if optional_old_self:
        expression = compile_expression(f"cel.bind(oldSelf, {_PAST}[?0], {source}\n)", ("self", _PAST))
    return _Program(source, expression, uses_old_self=True)


def _check_transition(rule: _Rule, path: str, uncorrelated: str) -> list[FieldError]:
    if rule.program.uses_old_self and uncorrelated:
        detail = f"oldSelf cannot be used on the uncorrelatable portion of the schema within {uncorrelated}"
        return [field_errors.invalid(f"{path}.rule", rule.program.source, detail)]
    if rule.optional_old_self and not rule.program.uses_old_self:
        detail = "may not be set if oldSelf is not used in rule"
        return [field_errors.invalid(f"{path}.optionalOldSelf", True, detail)]
    return []


def _evaluate(rule: _Rule, variables: dict[str, Any], shown: object, path: str) -> FieldError | None:
    try:
        if rule.program.expression.evaluate(variables) is True:
            return None
    except EvaluationError as error:
        return field_errors.invalid(path, shown, f"{error} evaluating rule: {rule.described}")
    detail = _evaluated_message(rule, variables) or rule.message or f"failed rule: {rule.program.source}"
    return _cause(rule.reason, f"{path}{rule.field_path}".removeprefix("."), shown, detail)


def _evaluated_message(rule: _Rule, variables: dict[str, Any]) -> str:
    if rule.message_program is None:
        return ""
    try:
        text = rule.message_program.expression.evaluate(variables)
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
