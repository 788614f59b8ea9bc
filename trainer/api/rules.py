"""Validation rules in the Common Expression Language (CEL) that the API server enforces, with or without webhooks.

What they say is also checked where objects are read. Two things shape how they are written. A rule on an optional field
is not evaluated when the field is added or removed, so rules about change stand on what is always there. And the API
server estimates the cost of a rule before it accepts a definition: every list that a rule walks has a `maxItems`, and
values are compared where they are, not as results of other expressions.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from trainer.kube.objects import Object

RULES: Final = "x-kubernetes-validations"

_AGAIN: Final = "delete the TrainJob and submit it again, or submit another one"
MANAGED_BY_IMMUTABLE: Final = f"managedBy is immutable: {_AGAIN}"
DEADLINE_IMMUTABLE: Final = f"activeDeadlineSeconds is immutable: {_AGAIN}"
RUNTIME_IMMUTABLE: Final = (
    "the spec of a runtime is immutable: make a new version under another name, and let new TrainJobs refer to it"
)
CREATED_IMMUTABLE: Final = f"is immutable once the Jobs have been created: {_AGAIN}"
TRAINER_IMMUTABLE: Final = (
    "is immutable once the Jobs have been created, except numNodes and resourcesPerNode while the TrainJob is "
    f"suspended: suspend it before, or {_AGAIN}"
)
RESTARTS_IMMUTABLE: Final = (
    "is immutable once the Jobs have been created, except while the TrainJob is suspended: "
    f"suspend it before, or {_AGAIN}"
)
SCALE_BOUNDS: Final = (
    "must be between minNodes and maxNodes of status.scale: the elastic training runs on no other number"
)
SUSPENDED_ONLY: Final = (
    "can only be changed while the TrainJob is suspended, once the Jobs have been created: "
    "set spec.suspend to true first, or in the same update"
)
OVERRIDES_IMMUTABLE: Final = (
    "only nodeSelector, tolerations, schedulingGates and metadata can be changed once the Jobs have been created; "
    f"to change anything else, {_AGAIN}"
)
ONE_SOURCE: Final = "only one of torch, mpi, jax, xgboost, tensorflow, paddle, flux may be set"
ONE_GROUP_SOURCE: Final = "only one of coscheduling, volcano, workload may be set"
ELASTIC_NODES: Final = "numNodes must be left out when torch.elasticPolicy is set; use minNodes and maxNodes"
ELASTIC_RANGE: Final = "minNodes must not be greater than maxNodes"
ORDER_OR_DEPENDENCIES: Final = "startupPolicyOrder InOrder and dependsOn exclude each other"
NAME_LENGTH: Final = "metadata.name must have at most 63 characters"
NAME_FORM: Final = "metadata.name must start with a letter and consist of lower-case letters, digits and -"

_CREATED: Final = (
    "has(oldSelf.status) && has(oldSelf.status.conditions)"
    " && oldSelf.status.conditions.exists(c, c.type == 'Created' && c.status == 'True')"
)
_FINISHED: Final = "oldSelf.status.conditions.exists(c, c.type in ['Complete', 'Failed'] && c.status == 'True')"
_WAS_SUSPENDED: Final = "(has(oldSelf.spec.suspend) && oldSelf.spec.suspend)"
_SUSPENDED: Final = f"((has(self.spec.suspend) && self.spec.suspend) || {_WAS_SUSPENDED})"
_FIXED_TRAINER_MEMBERS: Final = ("image", "command", "args", "env", "numProcPerNode")
_FIXED_OVERRIDE_MEMBERS: Final = (
    "containers",
    "initContainers",
    "volumes",
    "serviceAccountName",
    "imagePullSecrets",
    "securityContext",
    "terminationGracePeriodSeconds",
    "affinity",
    "jobMetadata",
)


def cel_rule(rule: str, message: str, *, field_path: str = "", reason: str = "") -> Object:
    """One rule: `message` is the answer when `rule` is false; `field_path` is where, below the schema node."""
    entry: Object = {"rule": rule, "message": message}
    if field_path:
        entry["fieldPath"] = field_path
    if reason:
        entry["reason"] = reason
    return entry


def cel_rules(*rules: Object) -> dict[str, Any]:
    """Schema extension: rules of a schema node."""
    return {RULES: list(rules)}


def at_most_one(names: Sequence[str], message: str) -> Object:
    """A rule of an object that may have at most one of its members."""
    present = ", ".join(f"has(self.{name})" for name in names)
    return cel_rule(f"[{present}].filter(present, present).size() <= 1", message)


def immutable(message: str) -> dict[str, Any]:
    """Schema extension: a required field that is immutable."""
    return cel_rules(cel_rule("self == oldSelf", message))


def resized_trainer(new: str, old: str) -> str:
    """Whether two trainers, both of which exist, differ in nothing but number and resources of the nodes."""
    return " && ".join(f"({_same(new, old, member)})" for member in _FIXED_TRAINER_MEMBERS)


def immutable_member(name: str, message: str) -> Object:
    """A rule of the object around an optional, immutable field: it may be neither changed nor added nor removed."""
    return cel_rule(_same("self", "oldSelf", name), message, field_path=f".{name}")


def train_job_rules() -> list[Object]:
    """Rules of a whole TrainJob: its name, which starts host names (RFC 1035), and what may change when."""
    return [
        of_new("self.metadata.name.size() <= 63", NAME_LENGTH),
        of_new("self.metadata.name.matches('^[a-z]([-a-z0-9]*[a-z0-9])?$')", NAME_FORM),
        *(_fixed_once_created(name) for name in ("runtimeRef", "datasetConfig", "modelConfig")),
        _fixed_trainer(),
        _fixed_restarts(),
        _bounded_nodes(),
        *(_fixed_unless_suspended(name) for name in ("labels", "annotations", "jobSetMetadata", "podSpecOverrides")),
        _fixed_overrides(),
    ]


def of_new(rule: str, message: str) -> Object:
    """A rule for new objects only: a name cannot be changed later, and updates must be able to remove finalizers."""
    return cel_rule(f"oldSelf.hasValue() || {rule}", message) | {"optionalOldSelf": True}


def _fixed_once_created(name: str) -> Object:
    unchanged = _same("self.spec", "oldSelf.spec", name)
    return _forbidden(f"!({_CREATED}) || ({unchanged})", CREATED_IMMUTABLE, name)


def _fixed_trainer() -> Object:
    """Number and resources of the nodes may change while suspended, that of an elastic training until it ends.

    An elastic training has `status.scale`, and always a number, which autoscalers read. Nothing else may change.
    """
    new, old = "self.spec.trainer", "oldSelf.spec.trainer"
    unchanged = _same("self.spec", "oldSelf.spec", "trainer")
    same = {
        member: f"has({new}.{member}) == (has({old}) && has({old}.{member}))"
        f" && (!has({new}.{member}) || {new}.{member} == {old}.{member})"
        for member in (*_FIXED_TRAINER_MEMBERS, "resourcesPerNode")
    }
    others = " && ".join(same[member] for member in _FIXED_TRAINER_MEMBERS)
    size = f"(has(oldSelf.status.scale) ? has({new}.numNodes) : {_WAS_SUSPENDED})"
    resources = f"({_WAS_SUSPENDED} || ({same['resourcesPerNode']}))"
    resized = f"!{_FINISHED} && has({new}) && {size} && {resources} && {others}"
    return _forbidden(f"!({_CREATED}) || ({unchanged}) || ({resized})", TRAINER_IMMUTABLE, "trainer")


def _fixed_restarts() -> Object:
    unchanged = _same("self.spec", "oldSelf.spec", "maxRestarts")
    is_free = f"({_WAS_SUSPENDED} && !{_FINISHED})"
    return _forbidden(f"!({_CREATED}) || ({unchanged}) || {is_free}", RESTARTS_IMMUTABLE, "maxRestarts")


def _bounded_nodes() -> Object:
    new, bounds = "self.spec.trainer.numNodes", "oldSelf.status.scale"
    same = f"has(oldSelf.spec.trainer) && has(oldSelf.spec.trainer.numNodes) && oldSelf.spec.trainer.numNodes == {new}"
    is_free = f"!({_CREATED}) || !has({bounds}) || !has(self.spec.trainer) || !has({new}) || ({same})"
    rule = f"{is_free} || ({bounds}.minNodes <= {new} && {new} <= {bounds}.maxNodes)"
    return cel_rule(rule, SCALE_BOUNDS, field_path=".spec.trainer.numNodes", reason="FieldValueInvalid")


def _fixed_unless_suspended(name: str) -> Object:
    """JobSet accepts changed labels, annotations and scheduling directives while it is suspended."""
    unchanged = _same("self.spec", "oldSelf.spec", name)
    return _forbidden(f"!({_CREATED}) || {_SUSPENDED} || ({unchanged})", SUSPENDED_ONLY, name)


def _fixed_overrides() -> Object:
    """Each override has its match among the old ones and the other way round: CEL has no loop over two lists.

    Overrides of nothing but scheduling may come and go: queueing systems add them to a suspended TrainJob.
    """
    name = "podSpecOverrides"
    same = " && ".join(
        ["o.targetJobs == p.targetJobs", *(f"({_same('o', 'p', member)})" for member in _FIXED_OVERRIDE_MEMBERS)]
    )
    new, old = f"self.spec.{name}", f"oldSelf.spec.{name}"
    unchanged = (
        f"(!has({new}) || {new}.all(o, ({_only_scheduling('o')}) || (has({old}) && {old}.exists(p, {same}))))"
        f" && (!has({old}) || {old}.all(p, ({_only_scheduling('p')}) || (has({new}) && {new}.exists(o, {same}))))"
    )
    return _forbidden(f"!({_CREATED}) || !{_SUSPENDED} || ({unchanged})", OVERRIDES_IMMUTABLE, name)


def _only_scheduling(override: str) -> str:
    return " && ".join(f"!has({override}.{member})" for member in _FIXED_OVERRIDE_MEMBERS)


def _same(new: str, old: str, name: str) -> str:
    return f"has({new}.{name}) == has({old}.{name}) && (!has({new}.{name}) || {new}.{name} == {old}.{name})"


def _forbidden(rule: str, message: str, name: str) -> Object:
    return cel_rule(rule, message, field_path=f".spec.{name}", reason="FieldValueForbidden")
