"""Small jobs for tables, and what they become."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

from trainer.kube.objects import Object
from trainer.v1alpha1.discovery import Version
from trainer_v1_jobs.api.kinds import KINDS
from trainer_v1_jobs.conversion import Conversion, convert


def job(
    kind: str,
    roles: Mapping[str, int | None],
    container: Object | None = None,
    pod: Object | None = None,
    *,
    template: Object | None = None,
    **spec: Any,
) -> Object:
    """A job called demo whose roles have these sizes; `kind` may have a version, such as `MPIJob/v2beta1`."""
    name, _, version = kind.partition("/")
    facts = KINDS[f"kubeflow.org/{version or 'v1'}", name]
    main = {"name": facts.container or "main", "image": "image", "command": ["train"]} | (container or {})
    made = (template or {}) | {"spec": {"containers": [main]} | (pod or {})}
    sizes = {role: {} if size is None else {"replicas": size} for role, size in roles.items()}
    return {
        "apiVersion": facts.resource.api_version,
        "kind": name,
        "metadata": {"name": "demo"},
        "spec": {facts.replicas_field: {role: size | {"template": copy.deepcopy(made)} for role, size in sizes.items()}}
        | spec,
    }


def converted(obj: Object, version: Version = "v2alpha1") -> Conversion:
    """What a job becomes, with a runtime of its own."""
    return convert(obj, KINDS[obj["apiVersion"], obj["kind"]], version=version)


def pods(conversion: Conversion) -> dict[str, Object]:
    """The pods of each replicated Job, with what the TrainJob says of the container that trains where that is one."""
    assert conversion.runtime is not None
    jobs = conversion.runtime["spec"]["template"]["spec"]["replicatedJobs"]
    found = {each["name"]: copy.deepcopy(each["template"]["spec"]["template"]["spec"]) for each in jobs}
    trainer = conversion.train_job["spec"].get("trainer", {})
    if "command" in trainer or "env" in trainer:
        main = found["node"]["containers"][0]
        main |= {name: trainer[name] for name in ("command", "args") if name in trainer}
        main["env"] = [*main.get("env", []), *trainer.get("env", [])]
    return found


def variables(pod: Object) -> Object:
    """The variables of the first container: values, or fields of the pod, of the others their sources."""
    found = {}
    for each in pod["containers"][0].get("env", []):
        source = each.get("valueFrom", {})
        found[each["name"]] = each.get("value", source.get("fieldRef", {}).get("fieldPath", source))
    return found


def fields(conversion: Conversion) -> list[str]:
    """The paths of what is lost."""
    return [finding.field for finding in conversion.findings]
