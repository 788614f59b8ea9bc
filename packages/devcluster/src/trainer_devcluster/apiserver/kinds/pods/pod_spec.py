"""Defaults of pod specifications, in Pods and in the templates of Jobs alike (core/v1 defaulting)."""

from __future__ import annotations

from typing import Any

from trainer.kube.objects import Object
from trainer_devcluster.apiserver.kinds.fields import all_containers, dicts, fill
from trainer_devcluster.feature_gates import FeatureGates

DEFAULT_GRACE_SECONDS = 30
_FILE_MODE = 0o644
_TOKEN_SECONDS = 3600
PROBES = ("livenessProbe", "readinessProbe", "startupProbe")
"""The probes that a container may have."""
_FILE_VOLUMES = ("configMap", "secret", "downwardAPI", "projected")


def drop_disabled(spec: Object, gates: FeatureGates) -> None:
    """Drop the fields of gates that are off from a new pod specification, in place."""
    if not gates.generic_workload:
        spec.pop("schedulingGroup", None)


def default_pod_spec(spec: Object) -> None:
    """Fill in what a pod specification leaves open, in place."""
    fill(
        spec,
        restartPolicy="Always",
        terminationGracePeriodSeconds=DEFAULT_GRACE_SECONDS,
        dnsPolicy="ClusterFirst",
        schedulerName="default-scheduler",
        securityContext={},
    )
    _mirror_service_account(spec)
    for container in all_containers(spec):
        _default_container(container)
    for volume in dicts(spec.get("volumes")):
        _default_volume(volume)


def default_pull_policy(image: str) -> str:
    """Always for the tag `latest` or none at all, else IfNotPresent."""
    if "@" in image:
        return "IfNotPresent"
    _, colon, tag = image.rpartition("/")[2].partition(":")
    return "IfNotPresent" if colon and tag != "latest" else "Always"


def _mirror_service_account(spec: Object) -> None:
    """Keep the deprecated alias `serviceAccount` equal to `serviceAccountName`."""
    name = spec.get("serviceAccountName") or spec.get("serviceAccount")
    if name:
        spec["serviceAccountName"] = spec["serviceAccount"] = name


def _default_container(container: Object) -> None:
    fill(
        container,
        resources={},
        terminationMessagePath="/dev/termination-log",
        terminationMessagePolicy="File",
        imagePullPolicy=default_pull_policy(str(container.get("image") or "")),
    )
    for port in dicts(container.get("ports")):
        fill(port, protocol="TCP")
    for variable in dicts(container.get("env")):
        _default_field_ref(variable.get("valueFrom"))
    for probe in PROBES:
        _default_probe(container.get(probe))
    lifecycle = container.get("lifecycle")
    for hook in lifecycle.values() if isinstance(lifecycle, dict) else ():
        _default_http(hook)


def _default_field_ref(source: Any) -> None:
    field_ref = source.get("fieldRef") if isinstance(source, dict) else None
    if isinstance(field_ref, dict):
        fill(field_ref, apiVersion="v1")


def _default_probe(probe: Any) -> None:
    if not isinstance(probe, dict):
        return
    fill(probe, timeoutSeconds=1, periodSeconds=10, successThreshold=1, failureThreshold=3)
    _default_http(probe)


def _default_http(handler: Any) -> None:
    http = handler.get("httpGet") if isinstance(handler, dict) else None
    if isinstance(http, dict):
        fill(http, path="/", scheme="HTTP")


def _default_volume(volume: Object) -> None:
    if volume.keys() <= {"name"}:
        volume["emptyDir"] = {}
    for kind in _FILE_VOLUMES:
        if isinstance(volume.get(kind), dict):
            fill(volume[kind], defaultMode=_FILE_MODE)
    if isinstance(volume.get("hostPath"), dict):
        fill(volume["hostPath"], type="")
    template = (volume.get("ephemeral") or {}).get("volumeClaimTemplate")
    if isinstance(template, dict) and isinstance(template.get("spec"), dict):
        fill(template["spec"], volumeMode="Filesystem")
    for item in dicts((volume.get("downwardAPI") or {}).get("items")):
        _default_field_ref(item)
    for source in dicts((volume.get("projected") or {}).get("sources")):
        if isinstance(source.get("serviceAccountToken"), dict):
            fill(source["serviceAccountToken"], expirationSeconds=_TOKEN_SECONDS)
        for item in dicts((source.get("downwardAPI") or {}).get("items")):
            _default_field_ref(item)
