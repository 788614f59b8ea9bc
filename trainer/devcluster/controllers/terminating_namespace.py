"""Refusals that are nothing to worry about: a namespace that is being deleted takes no new objects."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from trainer.kube.errors import ApiError


def is_refused_by_terminating_namespace(error: ApiError) -> bool:
    """Whether a creation failed because its namespace is going, and the owner with it."""
    return any(cause.get("reason") == "NamespaceTerminating" for cause in error.causes)
