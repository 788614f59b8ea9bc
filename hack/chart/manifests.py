"""The templates of one API version: the objects that kubectl makes of an overlay of config/, with values in them."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from typing import Final

import yaml

from hack.chart.overlay import CHART_NAME, label, put_image, rendered, replaced
from hack.chart.runtimes import runtimes
from hack.chart.template_text import Expressions, define
from trainer.kube.objects import Object, name_of
from trainer.v1alpha1.discovery import Version

OVERLAYS: Final[dict[Version, str]] = {"v1alpha1": "v1alpha1/default", "v2alpha1": "default"}
_DEFINITION: Final = "CustomResourceDefinition"
_COMPONENT: Final = "app.kubernetes.io/component"
_HASHED: Final = re.compile(r"(.+)-[a-z0-9]{10}")
_RUNTIMES: Final = "/etc/trainer"
_OF_SWEEPS: Final = "-sweeps"
"""The end of the names of what the manager needs for OptimizationJobs."""


def definitions(overlay: str) -> str:
    """The CRDs of an overlay, one in a line, which `helm uninstall` leaves: with them all jobs would go."""
    found = [obj for obj in rendered(overlay) if obj["kind"] == _DEFINITION]
    for obj in found:
        obj["metadata"].setdefault("annotations", {})["helm.sh/resource-policy"] = "keep"
    return "".join(f"---\n{_json(obj)}\n" for obj in found)


def templates(version: Version) -> dict[str, str]:
    """The template of each file, by its name."""
    return _Templates(version).texts()


def _json(obj: Object) -> str:
    return json.dumps(obj, separators=(",", ":"), ensure_ascii=False)


@dataclass(slots=True)
class _Templates:
    version: Version
    _expressions: Expressions = field(default_factory=Expressions, init=False)

    def texts(self) -> dict[str, str]:
        objects = [obj for obj in rendered(OVERLAYS[self.version]) if obj["kind"] not in {_DEFINITION, "Namespace"}]
        namespace = next(obj["metadata"]["namespace"] for obj in objects if "namespace" in obj["metadata"])
        hashed = (name_of(obj) for obj in objects if obj["kind"] in {"ConfigMap", "Job"})
        names = {name: match[1] for name in hashed if (match := _HASHED.fullmatch(name))}
        names[namespace] = self._expressions.value("{{ .Release.Namespace }}")
        found = [replaced(obj, names) for obj in objects]
        for obj in found:
            label(obj, self._expressions)
        installer = [obj for obj in found if obj["metadata"]["labels"].get(_COMPONENT) == "runtimes"]
        rest = [obj for obj in found if obj not in installer]
        rights = [obj for obj in rest if obj["apiVersion"].startswith("rbac.") or obj["kind"] == "ServiceAccount"]
        hooks = [obj for obj in rest if "webhooks" in obj or obj["kind"] == "Secret"]
        manager = [obj for obj in rest if obj not in rights and obj not in hooks]
        return {
            "manager.yaml": self._manager(manager),
            "rbac.yaml": self._rights(rights),
            "webhook.yaml": self._webhook(hooks),
            "runtimes.yaml": self._runtimes(installer),
        }

    def _rights(self, objects: list[Object]) -> str:
        of_sweeps = [obj for obj in objects if name_of(obj).endswith(_OF_SWEEPS)]
        text = self._expressions.text(*(obj for obj in objects if obj not in of_sweeps))
        further = self._expressions.text(*of_sweeps)
        return self._selected(f"{text}{{{{- if .Values.controllers.sweeps.enabled }}}}\n---\n{further}{{{{- end }}}}\n")

    def _manager(self, objects: list[Object]) -> str:
        heads = ""
        for obj in objects:
            if obj["metadata"]["labels"].get(_COMPONENT) == "manager":
                self._expressions.extend(obj["metadata"]["labels"], ".Values.manager.labels")
            if obj["kind"] == "Deployment":
                heads += self._deployment(obj["spec"])
            if obj["kind"] == "ConfigMap":
                heads += self._config_map(obj["data"])
        return heads + self._selected(self._expressions.text(*objects))

    def _deployment(self, spec: Object) -> str:
        """Put the values into it; returns the templates that it includes."""
        expressions = self._expressions
        template, pod = spec["template"], spec["template"]["spec"]
        spec["replicas"] = expressions.value("{{ .Values.manager.replicas }}")
        expressions.extend(template["metadata"]["labels"], ".Values.manager.labels")
        annotations = template["metadata"]["annotations"]
        annotations["checksum/configuration"] = expressions.value(f"{{{{ {self._configuration} | sha256sum }}}}")
        expressions.extend(annotations, ".Values.manager.podAnnotations")
        affinity = expressions.text(pod["affinity"])
        pod["affinity"] = expressions.value(
            f'{{{{ .Values.manager.affinity | default (include "{self._name("affinity")}" . | fromYaml) | toJson }}}}'
        )
        for name in ("nodeSelector", "tolerations"):
            pod[name] = expressions.json(f".Values.manager.{name}")
        pod["volumes"] = expressions.extended(pod["volumes"], ".Values.manager.volumes")
        (container,) = pod["containers"]
        for name in ("resources", "securityContext", "envFrom"):
            container[name] = expressions.json(f".Values.manager.{name}")
        for name in ("env", "volumeMounts"):
            container[name] = expressions.extended(container[name], f".Values.manager.{name}")
        put_image(pod, self._expressions)
        return define(self._name("affinity"), affinity)

    def _config_map(self, data: Object) -> str:
        """Put the configuration into it, unless it is another one; returns the template that it includes."""
        if "configuration.yaml" not in data:
            version = self._expressions.value("{{ .Chart.AppVersion }}")
            data["kubeflow_trainer_version"] = f"trainer-operator-{version}"
            return ""
        configuration = yaml.safe_load(data["configuration.yaml"])
        data["configuration.yaml"] = self._expressions.block(self._configuration)
        return define(self._name("configuration"), self._expressions.text(configuration))

    @property
    def _configuration(self) -> str:
        """The configuration file, as an expression."""
        base = f'(include "{self._name("configuration")}" .)'
        return f'include "{CHART_NAME}.configuration" (dict "base" {base} "values" .Values)'

    def _webhook(self, objects: list[Object]) -> str:
        for webhook in (webhook for obj in objects for webhook in obj.get("webhooks", ())):
            webhook["failurePolicy"] = self._expressions.value("{{ .Values.webhook.failurePolicy }}")
        return self._selected(self._expressions.text(*objects))

    def _runtimes(self, objects: list[Object]) -> str:
        """The Job that applies the runtimes, after what it needs; nothing where no runtime is chosen."""
        (job,) = (obj for obj in objects if obj["kind"] == "Job")
        chosen = {"runtimes.yaml": self._expressions.block("$runtimes")}
        metadata = {name: job["metadata"][name] for name in ("name", "namespace", "labels")}
        config_map = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": chosen}
        job["metadata"]["annotations"] = {
            "helm.sh/hook": "post-install,post-upgrade",
            "helm.sh/hook-delete-policy": "before-hook-creation,hook-succeeded",
        }
        pod = job["spec"]["template"]["spec"]
        for name in ("nodeSelector", "affinity", "tolerations"):
            pod[name] = self._expressions.json(f".Values.runtimes.installer.{name}")
        pod["volumes"] = [{"name": "runtimes", "configMap": {"name": name_of(job)}}]
        (container,) = pod["containers"]
        container["command"] += ["--file", f"{_RUNTIMES}/runtimes.yaml"]
        del container["env"]  # which names an image of these runtimes, as values do here
        container["volumeMounts"] = [{"name": "runtimes", "mountPath": _RUNTIMES, "readOnly": True}]
        container["resources"] = self._expressions.json(".Values.runtimes.installer.resources")
        put_image(pod, self._expressions)
        others = [obj for obj in objects if obj is not job]
        head = define(self._name("runtimes"), runtimes(self.version, self._expressions))
        head += f'{{{{- $runtimes := include "{self._name("runtimes")}" . | trim }}}}\n'
        return head + self._selected(self._expressions.text(*others, config_map, job), "$runtimes")

    def _name(self, part: str) -> str:
        return f"{CHART_NAME}.{self.version}.{part}"

    def _selected(self, text: str, *conditions: str) -> str:
        """The text, for this version only."""
        condition = f'eq .Values.apiVersion "{self.version}"'
        if conditions:
            condition = f"and ({condition}) {' '.join(conditions)}"
        return f"{{{{- if {condition} }}}}\n{text}{{{{- end }}}}\n"
