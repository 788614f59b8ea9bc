"""Generate the structural schemas of the built-in types that our custom resources contain: pod templates and the like.

Reads the JSON schemas in the pip package `kubernetes-validate`, as `generate_builtin_types.py` does, and adds what
they leave out and the API server checks: enums, limits, formats of names, defaults of list map keys. Run it after a
change of the tables below, or with a newer version of the package, and then write the CRDs anew:

    make .venv/.dev && .venv/bin/python hack/generate_pod_schema.py
    .venv/bin/python -m hack.generate_crds
"""

from __future__ import annotations

import gzip
import json
import re
from pathlib import Path
from typing import Any

from generate_builtin_types import VERSION, closure, convert, schema_directory

TARGET = Path(__file__).parent.parent / "trainer" / "api" / "builtin_schemas.json.gz"
ROOTS = (
    "autoscaling.v2.MetricSpec", "batch.v1.PodFailurePolicy", "batch.v1.SuccessPolicy", "core.v1.EnvFromSource",
    "core.v1.EnvVar", "core.v1.PersistentVolumeClaim", "core.v1.PodTemplateSpec", "core.v1.ResourceRequirements",
    "core.v1.Toleration", "core.v1.Volume", "core.v1.VolumeMount",
)  # fmt: skip
PACKAGE = "io.k8s.api."
META = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"
LONGEST_DESCRIPTION = 160
DROPPED = {
    # A template may not have them, says the API server's validation of Jobs.
    "PodSpec": ("ephemeralContainers",),
    # Written by the system.
    "PersistentVolumeClaim": ("status",),
}
KEPT = (
    "additionalProperties", "anyOf", "description", "format", "items", "properties", "required", "type",
    "x-kubernetes-int-or-string", "x-kubernetes-list-map-keys", "x-kubernetes-list-type", "x-kubernetes-map-type",
    "x-kubernetes-preserve-unknown-fields",
)  # fmt: skip

OBJECT_NAME = {
    "maxLength": 253, "pattern": r"^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*)?$",
}  # fmt: skip
IDENTITY = {"minimum": 0, "maximum": 2**31 - 1}
DNS_LABEL = {"minLength": 1, "maxLength": 63, "pattern": "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"}
LABEL_VALUE = {"maxLength": 63, "pattern": "^(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?$"}
NOT_EMPTY = {"minLength": 1}
NOT_NEGATIVE = {"minimum": 0}
PERCENT = {"minimum": 1, "maximum": 100}
PORT = {"minimum": 1, "maximum": 65535}
EXISTENCE = ["In", "NotIn", "Exists", "DoesNotExist"]
CONSTRAINTS: dict[str, dict[str, Any]] = {
    "AppArmorProfile.type": {"enum": ["Localhost", "RuntimeDefault", "Unconfined"]},
    "ConfigMapKeySelector": {"required": ["key", "name"]},
    "ConfigMapKeySelector.name": NOT_EMPTY,
    "ConfigMapProjection": {"required": ["name"]},
    "ConfigMapProjection.name": NOT_EMPTY,
    "ConfigMapVolumeSource": {"required": ["name"]},
    "ConfigMapVolumeSource.name": NOT_EMPTY,
    # An empty text is the default, here and wherever it stands among the values.
    "Container.image": {"pattern": r"^(\S(.*\S)?)?$"},
    "Container.imagePullPolicy": {"enum": ["", "Always", "IfNotPresent", "Never"]},
    "Container.name": DNS_LABEL,
    "Container.restartPolicy": {"enum": ["Always", "Never", "OnFailure"]},
    "Container.terminationMessagePolicy": {"enum": ["", "FallbackToLogsOnError", "File"]},
    "ContainerPort.containerPort": PORT,
    "ContainerPort.hostPort": {"minimum": 0, "maximum": 65535},
    "ContainerPort.name": {"maxLength": 15, "pattern": "^([a-z0-9]([-a-z0-9]*[a-z0-9])?)?$"},
    "ContainerPort.protocol": {"default": "TCP", "enum": ["SCTP", "TCP", "UDP"]},
    "ContainerResizePolicy.restartPolicy": {"enum": ["NotRequired", "RestartContainer"]},
    "EnvVar.name": {"minLength": 1, "pattern": "^[ -<>-~]+$"},
    "EphemeralVolumeSource": {"required": ["volumeClaimTemplate"]},
    "HTTPGetAction.scheme": {"enum": ["", "HTTP", "HTTPS"]},
    "HostPathVolumeSource.path": NOT_EMPTY,
    "HostPathVolumeSource.type": {
        "enum": [
            "", "BlockDevice", "CharDevice", "Directory", "DirectoryOrCreate", "File", "FileOrCreate", "Socket",
        ]
    },
    "LabelSelectorRequirement.operator": {"enum": EXISTENCE},
    "LocalObjectReference.name": {"default": ""},
    "MetricSpec.type": {"enum": ["ContainerResource", "External", "Object", "Pods", "Resource"]},
    "MetricTarget.type": {"enum": ["AverageValue", "Utilization", "Value"]},
    "NodeSelector.nodeSelectorTerms": {"minItems": 1},
    "NodeSelectorRequirement.operator": {"enum": [*EXISTENCE, "Gt", "Lt"]},
    "PersistentVolumeClaimSpec.accessModes[]": {
        "enum": ["ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod"]
    },
    "PersistentVolumeClaimSpec.volumeMode": {"enum": ["Block", "Filesystem"]},
    "PersistentVolumeClaimVolumeSource.claimName": NOT_EMPTY,
    "PodAffinityTerm.topologyKey": NOT_EMPTY,
    "PodFailurePolicy.rules": {"maxItems": 20},
    "PodFailurePolicyOnExitCodesRequirement.operator": {"enum": ["In", "NotIn"]},
    "PodFailurePolicyOnExitCodesRequirement.values": {"minItems": 1, "maxItems": 255},
    "PodFailurePolicyOnPodConditionsPattern.status": {"enum": ["False", "True", "Unknown"]},
    "PodFailurePolicyRule.action": {"enum": ["Count", "FailIndex", "FailJob", "Ignore"]},
    "PodFailurePolicyRule.onPodConditions": {"maxItems": 20},
    "PodOS.name": {"enum": ["linux", "windows"]},
    "PodSecurityContext.fsGroup": IDENTITY,
    "PodSecurityContext.fsGroupChangePolicy": {"enum": ["Always", "OnRootMismatch"]},
    "PodSecurityContext.runAsGroup": IDENTITY,
    "PodSecurityContext.runAsUser": IDENTITY,
    "PodSecurityContext.seLinuxChangePolicy": {"enum": ["MountOption", "Recursive"]},
    "PodSecurityContext.supplementalGroups[]": IDENTITY,
    "PodSecurityContext.supplementalGroupsPolicy": {"enum": ["Merge", "Strict"]},
    "PodSpec.activeDeadlineSeconds": {"minimum": 1},
    "PodSpec.containers": {"minItems": 1},
    "PodSpec.dnsPolicy": {"enum": ["", "ClusterFirst", "ClusterFirstWithHostNet", "Default", "None"]},
    "PodSpec.nodeSelector{}": LABEL_VALUE,
    "PodSpec.preemptionPolicy": {"enum": ["Never", "PreemptLowerPriority"]},
    # Jobs restart their pods themselves, so `Always` is not for them.
    "PodSpec.priorityClassName": OBJECT_NAME,
    "PodSpec.restartPolicy": {"enum": ["Never", "OnFailure"]},
    "PodSpec.runtimeClassName": OBJECT_NAME,
    "PodSpec.serviceAccountName": OBJECT_NAME,
    "PodSpec.terminationGracePeriodSeconds": NOT_NEGATIVE,
    "PodTemplateSpec": {"required": ["spec"]},
    "PreferredSchedulingTerm.weight": PERCENT,
    "Probe.failureThreshold": NOT_NEGATIVE,
    "Probe.initialDelaySeconds": NOT_NEGATIVE,
    "Probe.periodSeconds": NOT_NEGATIVE,
    "Probe.successThreshold": NOT_NEGATIVE,
    "Probe.timeoutSeconds": NOT_NEGATIVE,
    "ResourceFieldSelector.resource": {
        "pattern": r"^(limits|requests)\.(cpu|memory|ephemeral-storage|hugepages-.+)$",
    },
    "SeccompProfile.type": {"enum": ["Localhost", "RuntimeDefault", "Unconfined"]},
    "SecretKeySelector": {"required": ["key", "name"]},
    "SecretKeySelector.name": NOT_EMPTY,
    "SecretProjection": {"required": ["name"]},
    "SecretProjection.name": NOT_EMPTY,
    "SecretVolumeSource": {"required": ["secretName"]},
    "SecretVolumeSource.secretName": NOT_EMPTY,
    "SecurityContext.procMount": {"enum": ["Default", "Unmasked"]},
    "SecurityContext.runAsGroup": IDENTITY,
    "SecurityContext.runAsUser": IDENTITY,
    "SuccessPolicy.rules": {"minItems": 1, "maxItems": 20},
    "Toleration.effect": {"enum": ["", "NoExecute", "NoSchedule", "PreferNoSchedule"]},
    "Toleration.operator": {"enum": ["", "Equal", "Exists", "Gt", "Lt"]},
    "TopologySpreadConstraint.maxSkew": {"minimum": 1},
    "TopologySpreadConstraint.nodeAffinityPolicy": {"enum": ["Honor", "Ignore"]},
    "TopologySpreadConstraint.nodeTaintsPolicy": {"enum": ["Honor", "Ignore"]},
    "TopologySpreadConstraint.topologyKey": NOT_EMPTY,
    "TopologySpreadConstraint.whenUnsatisfiable": {"enum": ["DoNotSchedule", "ScheduleAnyway"]},
    "Volume.name": DNS_LABEL,
    "VolumeMount.mountPath": NOT_EMPTY,
    "VolumeMount.mountPropagation": {"enum": ["Bidirectional", "HostToContainer", "None"]},
    "VolumeMount.name": NOT_EMPTY,
    "VolumeMount.recursiveReadOnly": {"enum": ["Disabled", "Enabled", "IfPossible"]},
    "WeightedPodAffinityTerm.weight": PERCENT,
}  # fmt: skip
INTEGER_OR_STRING: dict[str, Any] = {
    "anyOf": [{"type": "integer"}, {"type": "string"}],
    "x-kubernetes-int-or-string": True,
}
SCALARS = {
    "IntOrString": INTEGER_OR_STRING,
    "Quantity": {
        **INTEGER_OR_STRING,
        "pattern": (
            r"^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|"
            r"([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?$"
        ),
    },
}
TEXT = {"type": "string"}
LABELS = {"type": "object", "additionalProperties": {**TEXT, **LABEL_VALUE}, "description": "Labels of the objects."}
ANNOTATIONS = {"type": "object", "additionalProperties": TEXT, "description": "Annotations of the objects."}
FINALIZERS = {
    "type": "array", "items": TEXT, "x-kubernetes-list-type": "set", "description": "Finalizers of the objects.",
}  # fmt: skip
EMBEDDED = {"labels": LABELS, "annotations": ANNOTATIONS, "finalizers": FINALIZERS}
METADATA = {
    "PodTemplateSpec": {
        **EMBEDDED,
        "name": {**TEXT, "description": "Ignored: pods get generated names."},
        "namespace": {**TEXT, "description": "Ignored: pods are in the namespace of their Job."},
    },
    "PersistentVolumeClaimTemplate": EMBEDDED,
    "PersistentVolumeClaim": {
        **EMBEDDED,
        "name": {**TEXT, **DNS_LABEL, "description": "Name of the claim, and of the volume that containers mount."},
    },
}
"""What a template may say about metadata: the API server gives the rest."""


def short(name: str) -> str:
    """The last part of a definition's name."""
    return name.rpartition(".")[2]


def structural(schema: Any) -> Any:
    """A converted schema with the keywords of structural schemas only, short references and short descriptions."""
    kept = {keyword: value for keyword, value in schema.items() if keyword in KEPT}
    if "$ref" in schema:
        kept["$ref"] = short(schema["$ref"])
    if "properties" in kept:
        kept["properties"] = {name: structural(child) for name, child in kept["properties"].items()}
    for keyword in ("items", "additionalProperties"):
        if keyword in kept:
            kept[keyword] = structural(kept[keyword])
    if "description" in kept:
        kept["description"] = first_sentence(kept["description"])
    if kept.get("format") == "quantity":
        del kept["format"]
    return kept


def first_sentence(text: str) -> str:
    """What is worth its place in a CRD, which has to fit into an annotation."""
    text = re.split(r"\s+More info:", " ".join(text.split()))[0]
    sentence = re.split(r"(?<!e\.g)(?<!i\.e)(?<!etc)[.:;](?:\s+|$)", text)[0].rstrip(" .,:;")
    if len(sentence) > LONGEST_DESCRIPTION:
        return f"{sentence[:LONGEST_DESCRIPTION].rpartition(' ')[0].rstrip(' .,:;(')}..."
    return f"{sentence}."


def constrain(definitions: dict[str, Any]) -> None:
    """Add the constraints to the definitions, in place; one that fits nothing is a mistake."""
    for path, constraint in CONSTRAINTS.items():
        name, _, field = path.partition(".")
        target = definitions[name]
        if field:
            target = target["properties"][field.rstrip("[]{}")]
        if field.endswith("[]"):
            target = target["items"]
        elif field.endswith("{}"):
            target = target["additionalProperties"]
        target.update(constraint)


def document() -> dict[str, Any]:
    """What is in the data file: a schema for each definition, with references by name."""
    source = json.loads((schema_directory() / "_definitions.json").read_text())["$defs"]
    source[META] = {"type": "object"}
    for name, fields in DROPPED.items():
        for field in fields:
            del source[f"{PACKAGE}core.v1.{name}"]["properties"][field]
    names = closure((PACKAGE + name for name in ROOTS), source)
    definitions = {short(name): structural(convert(source[name])) for name in names}
    if len(definitions) != len(names):
        raise SystemExit("two definitions have the same short name")
    definitions |= SCALARS
    for name, properties in METADATA.items():
        metadata = {"type": "object", "description": "Standard object's metadata.", "properties": properties}
        definitions[name]["properties"]["metadata"] = metadata
    definitions["PersistentVolumeClaim"]["properties"]["metadata"]["required"] = ["name"]
    definitions["PersistentVolumeClaim"]["required"] = ["metadata", "spec"]
    constrain(definitions)
    # Runtimes may write numbers, as the KEP's examples do; the built pods have strings.
    variable = definitions["EnvVar"]
    value = {**INTEGER_OR_STRING, "description": variable["properties"]["value"]["description"]}
    definitions["TemplateEnvVar"] = {**variable, "properties": {**variable["properties"], "value": value}}
    definitions["Container"]["properties"]["env"]["items"] = {"$ref": "TemplateEnvVar"}
    del definitions["ObjectMeta"]
    return {"version": VERSION, "definitions": definitions}


def main() -> None:
    """Write the data file."""
    made = document()
    text = json.dumps(made, separators=(",", ":"), sort_keys=True).encode()
    TARGET.write_bytes(gzip.compress(text, 9, mtime=0))
    print(f"{len(made['definitions'])} definitions, {TARGET.stat().st_size} bytes")  # noqa: T201


if __name__ == "__main__":
    main()
