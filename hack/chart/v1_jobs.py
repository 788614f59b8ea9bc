"""The template of what serves PyTorchJobs and JAXJobs of `kubeflow.org/v1`, with the names of either version."""

from __future__ import annotations

from typing import Final

from hack.chart.overlay import objects_of
from hack.chart.template_text import Expressions
from trainer.kube.objects import name_of
from trainer.v1alpha1.discovery import Version

OVERLAYS: Final[dict[Version, str]] = {"v1alpha1": "v1alpha1/v1", "v2alpha1": "v1"}
_OF_PEOPLE: Final = "kubeflow-training-"
"""The beginning of the names of roles for people."""


def v1_jobs() -> str:
    """Its objects, but for the CRDs, where `controllers.v1.enabled` says so."""
    return "".join(map(_of_version, OVERLAYS))


def _of_version(version: Version) -> str:
    expressions = Expressions()
    objects = [obj for obj in objects_of(OVERLAYS[version], expressions) if obj["kind"] != "CustomResourceDefinition"]
    for webhook in (webhook for obj in objects for webhook in obj.get("webhooks", ())):
        webhook["failurePolicy"] = expressions.value("{{ .Values.webhook.failurePolicy }}")
    of_people = [obj for obj in objects if name_of(obj).startswith(_OF_PEOPLE)]
    text = expressions.text(*(obj for obj in objects if obj not in of_people))
    condition = f'and .Values.controllers.v1.enabled (eq .Values.apiVersion "{version}")'
    roles = f"{{{{- if .Values.controllers.v1.roles }}}}\n---\n{expressions.text(*of_people)}{{{{- end }}}}\n"
    return f"{{{{- if {condition} }}}}\n{text}{roles}{{{{- end }}}}\n"
