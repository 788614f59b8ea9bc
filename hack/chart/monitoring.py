"""Templates of what may stand beside the manager: monitoring by the Prometheus operator and Grafana, and policies."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Final

from hack.chart.overlay import label, rendered, replaced
from hack.chart.template_text import Expressions
from hack.release.source import RUNBOOKS
from trainer.kube.objects import Object

PROMETHEUS: Final = "prometheus"
GRAFANA: Final = "grafana"
NETWORK_POLICY: Final = "networkpolicy"
_NAMESPACE: Final = "trainer-system"
_MONITOR: Final = "ServiceMonitor"
_RULE: Final = "PrometheusRule"
_RELEASED: Final = {
    "trainer-controller-manager-metrics": "kubeflow-trainer-controller-manager",
    "trainer-webhook-certificates": "kubeflow-trainer-webhook-cert",
}
"""What v1alpha1 has, with the names of the released chart, in place of what v2alpha1 has."""


def monitoring() -> str:
    """The ServiceMonitor with the rights of Prometheus, rules, and dashboards, each where a value says so."""
    objects = rendered(PROMETHEUS)
    rules = [obj for obj in objects if obj["kind"] == _RULE]
    scraped = _Section("monitoring.serviceMonitor").text(obj for obj in objects if obj["kind"] != _RULE)
    alerts = _Section("monitoring.alerts").literal(rules, "spec")
    return scraped + alerts + _Section("monitoring.dashboards").literal(rendered(GRAFANA), "data")


def network_policy() -> str:
    """The policies of the manager, where `networkPolicy.enabled` says so."""
    return _Section("networkPolicy").text(rendered(NETWORK_POLICY))


class _Section:
    """A part of a template that a value switches on."""

    def __init__(self, value: str) -> None:
        self._value = f".Values.{value}"
        self._expressions = Expressions()

    def text(self, objects: Iterable[Object]) -> str:
        """The objects, with the values of the section in them."""
        found = self._placed(objects)
        for obj in found:
            for subject in obj.get("subjects", ()):
                subject["name"] = self._expressions.value(f"{{{{ quote {self._value}.account.name }}}}")
                subject["namespace"] = self._expressions.value(f"{{{{ quote {self._value}.account.namespace }}}}")
            if obj["kind"] == _MONITOR:
                # Of v1alpha1 one Service has all ports.
                obj["spec"]["selector"]["matchLabels"]["app.kubernetes.io/component"] = self._either(
                    "webhook", "manager"
                )
        return self._switched(self._expressions.text(*found))

    def literal(self, objects: Iterable[Object], field: str) -> str:
        """The objects with one field as JSON in a line, in which braces are those of Prometheus and Grafana."""
        documents = []
        for obj in objects:
            content = json.dumps(obj.pop(field), separators=(",", ":"), ensure_ascii=False)
            content = content.replace("{{", '{{ "{{" }}').replace(RUNBOOKS, f"{{{{ {self._value}.runbooks }}}}")
            documents.append(f"{self._expressions.text(*self._placed([obj]))}{field}: {content}\n")
        return self._switched("---\n".join(documents))

    def _placed(self, objects: Iterable[Object]) -> list[Object]:
        texts = {_NAMESPACE: self._expressions.value("{{ .Release.Namespace }}")}
        texts |= {name: self._either(other, name) for name, other in _RELEASED.items()}
        found: list[Object] = [replaced(obj, texts) for obj in objects]
        for obj in found:
            label(obj, self._expressions)
            if obj["kind"] in {_MONITOR, _RULE}:
                self._expressions.extend(obj["metadata"]["labels"], f"{self._value}.labels")
        return found

    def _either(self, released: str, ours: str) -> str:
        return self._expressions.value(f'{{{{ ternary "{released}" "{ours}" (eq .Values.apiVersion "v1alpha1") }}}}')

    def _switched(self, text: str) -> str:
        return f"{{{{- if {self._value}.enabled }}}}\n---\n{text}{{{{- end }}}}\n"
