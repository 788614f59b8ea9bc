"""Jobs as users write them, for tests."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

from trainer.kube.objects import Object


def make_job(pod: dict[str, Any] | None = None, **spec: Any) -> Object:
    """A Job of one pod, unless `spec` says otherwise; `pod` is what is special about its pods."""
    template = {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}], **(pod or {})}}
    return {"metadata": {"name": "j", "uid": "u"}, "spec": {"template": template, **spec}}


def make_indexed_job(pod: dict[str, Any] | None = None, **spec: Any) -> Object:
    """An Indexed Job of two pods."""
    return make_job(pod, **{"completionMode": "Indexed", "completions": 2, "parallelism": 2, **spec})


def change(obj: Object, path: str, value: object) -> Object:
    """A copy of the object with one field set."""
    changed: Object = deepcopy(obj)
    *parents, last = path.split(".")
    target = changed
    for parent in parents:
        target = target.setdefault(parent, {})
    target[last] = value
    return changed
