"""The template of the recorder of the history, which is the same for both versions of the API."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, Final

from hack.chart.overlay import objects_of, put_image
from hack.chart.template_text import Expressions
from trainer.kube.objects import Object

OVERLAY: Final = "history"
POSTGRESQL: Final = "history-postgresql"
_SECRET: Final = "trainer-history-database"  # noqa: S105 - the name of one
_NAME_OF_SECRET: Final = ".Values.history.databaseSecret"  # noqa: S105 - likewise


def history() -> str:
    """Its objects where `history.enabled` says so: with a volume, or where a Secret is named with PostgreSQL."""
    expressions = Expressions()
    objects, others = (objects_of(overlay, expressions) for overlay in (OVERLAY, POSTGRESQL))
    (claim,) = (obj for obj in objects if obj["kind"] == "PersistentVolumeClaim")
    objects.remove(claim)
    deployment, other = (next(obj for obj in each if obj["kind"] == "Deployment") for each in (objects, others))
    _put_values(deployment["spec"], other["spec"]["template"]["spec"], expressions)
    _put_storage(claim, expressions)
    text = expressions.text(*objects)
    return (
        f"{{{{- if .Values.history.enabled }}}}\n{text}"
        f"{{{{- if not {_NAME_OF_SECRET} }}}}\n---\n{expressions.text(claim)}{{{{- end }}}}\n{{{{- end }}}}\n"
    )


def _put_values(spec: Object, other: Object, expressions: Expressions) -> None:
    """Put the values into a Deployment.

    Args:
        spec: its own.
        other: that of the pod with PostgreSQL.
        expressions: of the template.
    """
    pod = spec["template"]["spec"]
    expressions.extend(spec["template"]["metadata"]["annotations"], ".Values.history.podAnnotations")
    for name in ("nodeSelector", "affinity", "tolerations"):
        pod[name] = expressions.json(f".Values.history.{name}")
    (container,), (theirs,) = pod["containers"], other["containers"]
    container["args"] = expressions.json(".Values.history.args")
    container["resources"] = expressions.json(".Values.history.resources")
    container["env"] = _either(container["env"], theirs["env"], expressions)
    for part, rest, name in ((pod, other, "volumes"), (container, theirs, "volumeMounts")):
        part[name] = expressions.extended(_either(part[name], rest[name], expressions), f".Values.history.{name}")
    put_image(pod, expressions)


def _either(items: Sequence[Object], others: Sequence[Object], expressions: Expressions) -> list[Any]:
    """What one of the lists has alone, the second one where a Secret is named, and then what both have."""
    mine, theirs = (
        json.dumps([item for item in one if item not in another]) for one, another in ((items, others), (others, items))
    )
    named = f"(replace `{_SECRET}` {_NAME_OF_SECRET} `{theirs}`)" if _SECRET in theirs else f"`{theirs}`"
    chosen = f"(ternary (fromJsonArray `{mine}`) (fromJsonArray {named}) (empty {_NAME_OF_SECRET}))"
    return [*expressions.extended([], chosen), *(item for item in items if item in others)]


def _put_storage(claim: Object, expressions: Expressions) -> None:
    """A claim that stays when the release goes: what it has is nowhere else."""
    claim["metadata"]["annotations"] = {"helm.sh/resource-policy": "keep"}
    spec = claim["spec"]
    spec["resources"]["requests"]["storage"] = expressions.value("{{ .Values.history.storage.size }}")
    name = ".Values.history.storage.className"
    expressions.extend(spec, f'(ternary dict (dict "storageClassName" {name}) (empty {name}))')
