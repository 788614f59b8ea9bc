"""The Workload API: PodGroups, which are scheduled as a whole, and templates of them."""

from __future__ import annotations

from collections.abc import Iterator

from trainer.kube.field_errors import FieldError, invalid
from trainer.kube.objects import Object, mapping_at
from trainer_devcluster.apiserver.definitions.resource_definition import ResourceDefinition
from trainer_devcluster.apiserver.definitions.strategy import Strategy, WriteContext
from trainer_devcluster.apiserver.kinds.fields import IMMUTABLE, dicts, section
from trainer_devcluster.apiserver.kinds.priority_class import admit_priority
from trainer_devcluster.apiserver.objects.names import NameRule, name_problems
from trainer_devcluster.workload_api import POD_GROUPS, PROTECTION, WORKLOADS


class _GangStrategy(Strategy):
    """What both kinds have in common."""

    def default(self, obj: Object, context: WriteContext) -> None:  # noqa: ARG002 - the protocol's signature
        """Take an absent specification for an empty one, of which validation says what it lacks."""
        section(obj, "spec")

    def prepare_for_create(self, obj: Object, context: WriteContext) -> None:
        """Drop the fields of gates that are off."""
        self.prepare_for_update(obj, {"spec": {}}, context)

    def validate_update(self, obj: Object, old: Object, context: WriteContext) -> list[FieldError]:
        """Check that nothing but `minCount` of a PodGroup changes."""
        if context.subresource == "status":
            return []
        return [*_validate_fixed(obj["spec"], old["spec"]), *self.validate(obj, context)]


class PodGroupStrategy(_GangStrategy):
    """scheduling.k8s.io PodGroup."""

    def admit(self, obj: Object, context: WriteContext) -> None:
        """Do what PodGroupProtection and Priority do.

        Raises:
            ApiError: 403, there is no such PriorityClass.
        """
        admit_priority(obj, context, POD_GROUPS)
        finalizers = obj["metadata"].setdefault("finalizers", [])
        if PROTECTION not in finalizers:
            finalizers.append(PROTECTION)

    def prepare_for_update(self, obj: Object, old: Object, context: WriteContext) -> None:
        """Drop those that the object did not have before."""
        _drop_disabled(obj["spec"], old["spec"], context)

    def validate(self, obj: Object, context: WriteContext) -> list[FieldError]:  # noqa: ARG002
        """Check the specification."""
        return list(_validate_group(obj["spec"], "spec"))


class WorkloadStrategy(_GangStrategy):
    """scheduling.k8s.io Workload."""

    def prepare_for_update(self, obj: Object, old: Object, context: WriteContext) -> None:
        """Drop those that the object did not have before."""
        templates, former = (dicts(each["spec"].get("podGroupTemplates")) for each in (obj, old))
        for index, template in enumerate(templates):
            _drop_disabled(template, former[index] if index < len(former) else {}, context)

    def validate(self, obj: Object, context: WriteContext) -> list[FieldError]:  # noqa: ARG002
        """Check the templates."""
        causes: list[FieldError] = []
        for index, template in enumerate(dicts(obj["spec"].get("podGroupTemplates"))):
            path = f"spec.podGroupTemplates[{index}]"
            causes += _validate_label(template.get("name"), f"{path}.name")
            causes += _validate_group(template, path)
        return causes


def _drop_disabled(spec: Object, old: Object, context: WriteContext) -> None:
    for field, is_enabled in (
        ("schedulingConstraints", context.gates.topology_aware_workload_scheduling),
        ("resourceClaims", context.gates.dra_workload_resource_claims),
    ):
        if not is_enabled and field not in old:
            spec.pop(field, None)


def _validate_group(spec: Object, path: str) -> Iterator[FieldError]:
    """What is wrong with the specification of a PodGroup, or with a template."""
    policy = mapping_at(spec, "schedulingPolicy")
    yield from _validate_union(policy, f"{path}.schedulingPolicy", ("basic", "gang"))
    least = mapping_at(policy, "gang").get("minCount") or 0
    if policy.get("gang") is not None and least < 1:
        yield invalid(f"{path}.schedulingPolicy.gang.minCount", least, "must be greater than or equal to 1")
    if (mode := spec.get("disruptionMode")) is not None:
        yield from _validate_union(mode, f"{path}.disruptionMode", ("all", "single"))
    for field, name in mapping_at(spec, "workloadRef").items():
        yield from _validate_label(name, f"{path}.workloadRef.{field}")


def _validate_union(value: Object, path: str, members: tuple[str, ...]) -> Iterator[FieldError]:
    present = [name for name in members if value.get(name) is not None]
    if len(present) != 1:
        choice = ", ".join(f"`{name}`" for name in members)
        shown = f"{{{', '.join(present)}}}" if present else ""
        yield invalid(path, shown, f"must specify {'exactly one' if present else 'one'} of: {choice}")


def _validate_label(name: str | None, path: str) -> Iterator[FieldError]:
    for problem in name_problems(name or "", NameRule.LABEL):
        yield invalid(path, name or "", problem)


def _validate_fixed(spec: Object, old: Object) -> Iterator[FieldError]:
    for field in sorted(spec.keys() | old.keys()):
        if _fixed(spec.get(field)) != _fixed(old.get(field)):
            yield invalid(f"spec.{field}", spec.get(field), IMMUTABLE)


def _fixed(value: object) -> object:
    """The value of a field without how many pods a gang has at least, which may change with its size."""
    if isinstance(value, dict) and isinstance(value.get("gang"), dict):
        return {**value, "gang": {**value["gang"], "minCount": None}}
    return value


POD_GROUP = ResourceDefinition(
    POD_GROUPS, PodGroupStrategy(), singular="podgroup", short_names=("pg",), status_subresource=True
)
WORKLOAD = ResourceDefinition(WORKLOADS, WorkloadStrategy(), singular="workload", short_names=("wl",))
