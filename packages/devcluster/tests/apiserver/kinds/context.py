"""What strategies get about a request, in tests."""

from __future__ import annotations

from trainer.kube.field_errors import FieldError
from trainer.kube.objects import Object, ObjectKey, key_of
from trainer.kube.resource import Resource
from trainer_devcluster.apiserver.definitions.strategy import Strategy, WriteContext
from trainer_devcluster.feature_gates import DEFAULT_FEATURE_GATES, FeatureGates

NOW = "2026-11-21T12:00:00Z"


def make_context(
    subresource: str | None = None,
    *stored: Object,
    dry_run: bool = False,
    gates: FeatureGates = DEFAULT_FEATURE_GATES,
) -> WriteContext:
    """A request at `NOW`; the free service address is 10.96.0.10."""
    objects = {(obj["kind"], key_of(obj)): obj for obj in stored}

    def find(resource: Resource, key: ObjectKey) -> Object | None:
        return objects.get((resource.kind, key))

    return WriteContext(subresource, dry_run, NOW, lambda: "10.96.0.10", find, gates=gates)


def created(strategy: Strategy, obj: Object, *stored: Object) -> tuple[Object, list[FieldError]]:
    """What a create makes of an object, and what is wrong with it beside those that are stored."""
    obj.setdefault("metadata", {}).setdefault("uid", "u")
    context = make_context(None, *stored)
    strategy.default(obj, context)
    strategy.admit(obj, context)
    strategy.prepare_for_create(obj, context)
    return obj, strategy.validate(obj, context)


def updated(strategy: Strategy, obj: Object, old: Object, subresource: str | None = None) -> list[FieldError]:
    """What is wrong with an update, after defaulting and preparing it in place."""
    context = make_context(subresource)
    strategy.default(obj, context)
    strategy.prepare_for_update(obj, old, context)
    return strategy.validate_update(obj, old, context)


def fields(causes: list[FieldError]) -> list[str]:
    """Paths of the wrong fields."""
    return [cause.field for cause in causes]
