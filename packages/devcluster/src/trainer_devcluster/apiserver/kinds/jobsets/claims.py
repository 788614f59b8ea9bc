"""Defaults and validation of a JobSet's volume claim policies (KEP-572 of JobSet)."""

from __future__ import annotations

from collections.abc import Callable

from trainer.kube.field_errors import OMITTED, FieldError, invalid
from trainer.kube.objects import Object, ObjectKey, name_of, namespace_of
from trainer.kube.resource import PERSISTENT_VOLUME_CLAIMS, Resource
from trainer_devcluster.apiserver.kinds.fields import all_containers, dicts, fill, section
from trainer_devcluster.apiserver.objects.names import NameRule, name_problems

_LIMIT = 63
_NOT_UNIQUE = "names must be unique for VolumeClaimPolicies template"
_TOO_LONG = "VolumeClaimPolicies template name is too long"
_NOT_RETAINED = "retentionPolicy must be retain when PVC exists"


def default_claims(spec: Object) -> None:
    """Have claims go with their JobSet unless it says otherwise, in place."""
    for policy in dicts(spec.get("volumeClaimPolicies")):
        fill(policy, retentionPolicy={"whenDeleted": "Delete"})
        for template in dicts(policy.get("templates")):
            # As in templates of Jobs: these structs are never absent in what the webhook answers.
            fill(template, metadata={}, status={})
            fill(section(template, "spec"), resources={})


def validate_claims(
    jobset: Object, jobset_name: str, stored: Callable[[Resource, ObjectKey], Object | None]
) -> list[FieldError]:
    """Check names, that pods mount each claim, and that a claim that is there already may be used.

    Args:
        jobset: a new JobSet.
        jobset_name: what it is or will be called; claims are called `<claim>-<jobset>`.
        stored: returns a stored object.
    """
    causes: list[FieldError] = []
    names: set[str] = set()
    for index, policy in enumerate(jobset["spec"].get("volumeClaimPolicies") or []):
        path = f"spec.volumeClaimPolicies[{index}]"
        for position, template in enumerate(policy.get("templates") or []):
            # As the webhook calls the list, which is not quite its name.
            field, name = f"{path}.template[{position}]", name_of(template)
            claim = ObjectKey(namespace_of(jobset), f"{name}-{jobset_name}")
            causes += _validate_name(name, claim.name, names, f"{field}.name")
            names.add(name)
            causes += _validate_mounts(jobset, name)
            present = stored(PERSISTENT_VOLUME_CLAIMS, claim)
            if present is not None:
                causes += _validate_present(present, template, f"{field}.spec")
                if (when_deleted := policy["retentionPolicy"]["whenDeleted"]) != "Retain":
                    causes.append(invalid(f"{path}.retentionPolicy.whenDeleted", when_deleted, _NOT_RETAINED))
    return causes


def _validate_name(name: str, claim_name: str, earlier: set[str], path: str) -> list[FieldError]:
    causes = [invalid(path, name, _NOT_UNIQUE)] if name in earlier else []
    causes += [invalid(path, name, problem) for problem in name_problems(name, NameRule.SUBDOMAIN)]
    if len(claim_name) > _LIMIT:
        causes.append(invalid(path, name, _TOO_LONG))
    return causes


def _validate_mounts(jobset: Object, name: str) -> list[FieldError]:
    causes: list[FieldError] = []
    is_mounted = False
    for index, replicated_job in enumerate(jobset["spec"].get("replicatedJobs") or []):
        pod_spec = replicated_job["template"]["spec"]["template"].get("spec") or {}
        path = f"spec.replicatedJobs[{index}].template.spec.template.spec.volumes"
        causes += [
            invalid(
                f"{path}[{position}].name", name, f"volume name conflicts with VolumeClaimPolicy template name: {name}"
            )
            for position, volume in enumerate(dicts(pod_spec.get("volumes")))
            if volume.get("name") == name
        ]
        mounts = (dicts(container.get("volumeMounts")) for container in all_containers(pod_spec))
        is_mounted = is_mounted or any(mount.get("name") == name for listed in mounts for mount in listed)
    if not is_mounted:
        detail = f"replicatedJob containers don't have a matching volumeMount: {name} from VolumeClaimPolicies"
        causes.append(invalid("spec.replicatedJobs", OMITTED, detail))
    return causes


def _validate_present(present: Object, template: Object, path: str) -> list[FieldError]:
    """The claim must be exactly what the template says, what the API server and the kubelet have added included."""
    if present["spec"] == template["spec"]:
        return []
    detail = f"spec does not match existing PVC {name_of(present)} in namespace {namespace_of(present)}"
    return [invalid(path, template["spec"], detail)]
