"""The template of the dashboard, which is the same for both versions of the API."""

from __future__ import annotations

from typing import Final

from hack.chart.overlay import objects_of, put_image
from hack.chart.template_text import Expressions
from trainer.kube.objects import Object

OVERLAY: Final = "dashboard"
IMPERSONATION: Final = "dashboard-impersonation"


def dashboard() -> str:
    """Its objects where `dashboard.enabled` says so; the right to impersonate where `dashboard.impersonation` does."""
    expressions = Expressions()
    objects, rights = (objects_of(overlay, expressions) for overlay in (OVERLAY, IMPERSONATION))
    (deployment,) = (obj for obj in objects if obj["kind"] == "Deployment")
    _put_values(deployment["spec"], expressions)
    text, further = expressions.text(*objects), expressions.text(*rights)
    return (
        f"{{{{- if .Values.dashboard.enabled }}}}\n{text}"
        f"{{{{- if .Values.dashboard.impersonation }}}}\n---\n{further}{{{{- end }}}}\n{{{{- end }}}}\n"
    )


def _put_values(spec: Object, expressions: Expressions) -> None:
    pod = spec["template"]["spec"]
    spec["replicas"] = expressions.value("{{ .Values.dashboard.replicas }}")
    expressions.extend(spec["template"]["metadata"]["annotations"], ".Values.dashboard.podAnnotations")
    for name in ("nodeSelector", "affinity", "tolerations"):
        pod[name] = expressions.json(f".Values.dashboard.{name}")
    pod["volumes"] = expressions.extended(pod["volumes"], ".Values.dashboard.volumes")
    (container,) = pod["containers"]
    (database,) = container["env"]
    secret = database["valueFrom"]["secretKeyRef"]
    named = f'{{{{ .Values.history.databaseSecret | default "{secret["name"]}" }}}}'
    secret["name"] = expressions.value(named)
    container["args"] = expressions.json(".Values.dashboard.args")
    container["resources"] = expressions.json(".Values.dashboard.resources")
    container["volumeMounts"] = expressions.extended(container["volumeMounts"], ".Values.dashboard.volumeMounts")
    put_image(pod, expressions)
