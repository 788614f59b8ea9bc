"""What strategies are told about a request, in tests."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trainer.devcluster.apiserver.strategy import WriteContext

if TYPE_CHECKING:
    from trainer.devcluster.apiserver.strategy import Strategy
    from trainer.kube.field_errors import FieldError
    from trainer.kube.objects import Object

NOW = "2026-11-21T12:00:00Z"


def make_context(subresource: str | None = None, *, dry_run: bool = False) -> WriteContext:
    """A request at `NOW`; the free service address is 10.96.0.10."""
    return WriteContext(subresource, dry_run, NOW, lambda: "10.96.0.10")


def created(strategy: Strategy, obj: Object) -> tuple[Object, list[FieldError]]:
    """What a create makes of an object, and what is wrong with it."""
    obj.setdefault("metadata", {}).setdefault("uid", "u")
    strategy.default(obj, make_context())
    strategy.prepare_for_create(obj, make_context())
    return obj, strategy.validate(obj, make_context())


def updated(strategy: Strategy, obj: Object, old: Object, subresource: str | None = None) -> list[FieldError]:
    """What is wrong with an update, after defaulting and preparing it in place."""
    context = make_context(subresource)
    strategy.default(obj, context)
    strategy.prepare_for_update(obj, old, context)
    return strategy.validate_update(obj, old, context)


def fields(causes: list[FieldError]) -> list[str]:
    """Paths of the wrong fields."""
    return [cause.field for cause in causes]
