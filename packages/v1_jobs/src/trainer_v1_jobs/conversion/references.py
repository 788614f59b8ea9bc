"""References to labels that only the operators gave pods: rewritten to what JobSet and Jobs give them, or lost.

| label | here |
|---|---|
| job-name | label of the JobSet's name |
| replica-type | the role itself; in selectors the name of the replicated Job |
| replica-index | completion index, or index of the Job |
| job-role | the role of the pod that leads, which is known where that is a role of its own |
| operator-name, group-name | their values; nothing in selectors |
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from trainer.api.jobset_labels import JOBSET_NAME, REPLICATED_JOB
from trainer.api.kubeflow_v1 import GROUP
from trainer.api.losses import Losses
from trainer.kube.objects import Object, mapping_at, objects_in
from trainer_v1_jobs.conversion.old_labels import files_of, label_of, old_label, selectors_of, variables_of
from trainer_v1_jobs.conversion.places import Place, label_value
from trainer_v1_jobs.conversion.source import Role, Source

_MPI_OPERATOR: Final = "v2beta1"
_LEADERS: Final = ("Launcher", "Chief", "Master")
_UNKNOWN: Final = "is empty: pods have no such label here, and no other that says the same; "
LOST_SELECTION: Final = f"selects no pods: they have no such label here; select by {JOBSET_NAME} or {REPLICATED_JOB}"
_REMEDY: Final = "read what tells them apart from the variables of the framework, such as RANK"


class References:
    """What a template of a role may refer to.

    Args:
        source: the job.
        role: of the template.
        places: where the pods of all roles are, by role.
        losses: what has no counterpart is added to it.
    """

    def __init__(self, source: Source, role: Role, places: Mapping[str, Place], losses: Losses) -> None:
        self._source = source
        self._role = role
        self._places = places
        self._losses = losses
        self._is_mpi_operator = source.kind.resource.version == _MPI_OPERATOR
        self._own: Object = {}

    def rewrite(self, template: Object) -> None:
        """Change a template in place."""
        self._own = mapping_at(template, "metadata", "labels")
        spec, path = template["spec"], f"{self._role.path}.template.spec"
        for place, variable in variables_of(spec):
            self._rewrite_variable(variable, f"{path}.{place}")
        for place, item in files_of(spec):
            self._rewrite_file(item, f"{path}.{place}")
        for place, holder in selectors_of(spec):
            self._rewrite_selector(holder, f"{path}.{place}")

    def _rewrite_variable(self, variable: Object, path: str) -> None:
        reference = mapping_at(variable, "valueFrom", "fieldRef")
        if reference.get("fieldPath") == "metadata.name":
            self._losses.add(path, self._new_name())
        elif label := old_label(label_of(reference), self._own):
            found = self._value(label)
            if found is None:
                self._losses.add(path, _UNKNOWN + _REMEDY)
            else:
                del variable["valueFrom"]
                variable |= found

    def _rewrite_file(self, item: Object, path: str) -> None:
        reference = mapping_at(item, "fieldRef")
        if reference.get("fieldPath") == "metadata.name":
            self._losses.add(path, self._new_name())
        elif reference.get("fieldPath") == "metadata.labels":
            self._losses.add(path, "lacks the labels training.kubeflow.org/*, which pods do not have here; " + _REMEDY)
        elif label := old_label(label_of(reference), self._own):
            found = mapping_at(self._value(label), "valueFrom", "fieldRef")
            if found:
                item["fieldRef"] = found
            else:
                self._losses.add(path, _UNKNOWN + _REMEDY)

    def _new_name(self) -> str:
        name = self._source.metadata.get("name") or "NAME"
        host = self._places[self._role.name].host("INDEX", name)
        return (
            f"is {host.partition('.')[0]}-SUFFIX, which is no host and another one after a restart: "
            f"write {host} where a host or a lasting name is meant"
        )

    def _value(self, label: str) -> Object | None:
        """Value, or source of the value, of a label; None if no label says the same."""
        kind, place = self._source.kind.resource.kind, self._places[self._role.name]
        match label:
            case "job-name":
                return {"valueFrom": label_value(JOBSET_NAME)}
            case "operator-name":
                return {"value": "mpi-operator" if self._is_mpi_operator else f"{kind.lower()}-controller"}
            case "group-name":
                return {"value": GROUP}
            case "replica-type":
                return None if place.is_shared else {"value": self._role.name.lower()}
            case "job-role":
                return self._leadership()
            case "replica-index" if not (place.is_shared or self._has_shifted_indexes):
                return {"valueFrom": place.index}
        return None

    @property
    def _has_shifted_indexes(self) -> bool:
        """Whether the launcher has the index 0, and workers follow."""
        return bool(getattr(self._source.job.spec, "run_launcher_as_worker", False))

    def _leadership(self) -> Object | None:
        if self._is_mpi_operator:
            return {"value": self._role.name.lower()}
        leader = self._source.role(*_LEADERS)
        if leader is not None:
            return None if self._places[leader.name].is_shared else {"value": "master" if leader is self._role else ""}
        if self._source.kind.resource.kind == "PaddleJob":
            return {"value": ""}
        return {"value": "master"} if self._source.pods == 1 else None

    def _rewrite_selector(self, holder: Object, path: str) -> None:
        selector = mapping_at(holder, "labelSelector")
        labels = mapping_at(selector, "matchLabels")
        role = self._selected_role(labels)
        for key, value in [*labels.items()]:
            if not old_label(str(key), self._own):
                continue
            found = self._requirement(str(key), "In", [str(value)], role)
            if found is None:
                self._losses.add(f"{path}.labelSelector.matchLabels[{key}]", LOST_SELECTION)
            elif found["key"] in labels:
                selector.setdefault("matchExpressions", []).append(found)
                del labels[key]
            else:
                del labels[key]
                labels[found["key"]] = found["values"][0]
        for expression in objects_in(selector.get("matchExpressions")):
            key, values = str(expression.get("key")), [*map(str, expression.get("values") or [])]
            if not old_label(key, self._own):
                continue
            found = self._requirement(key, str(expression.get("operator")), values, role)
            if found is None:
                self._losses.add(f"{path}.labelSelector.matchExpressions[{key}]", LOST_SELECTION)
            else:
                expression.update(found)
        for member in ("matchLabelKeys", "mismatchLabelKeys"):
            self._rewrite_keys(holder, member, path)

    def _rewrite_keys(self, holder: Object, member: str, path: str) -> None:
        for position, key in enumerate(holder.get(member) or []):
            if not old_label(str(key), self._own):
                continue
            found = self._requirement(str(key), "Exists", [], self._role)
            if found is None:
                self._losses.add(f"{path}.{member}[{key}]", LOST_SELECTION)
            else:
                holder[member][position] = found["key"]

    def _selected_role(self, labels: Object) -> Role | None:
        """The only role that a selector may mean; None if there are several."""
        for key, value in labels.items():
            if old_label(str(key), self._own) == "replica-type":
                return next((role for role in self._source.roles if role.name.lower() == value), None)
        return self._source.roles[0] if len(self._source.roles) == 1 else None

    def _requirement(self, key: str, operator: str, values: list[str], role: Role | None) -> Object | None:
        """A requirement of a selector as one of the labels here; None if no label says the same."""
        changed: Object | None = None
        match old_label(key, self._own):
            case "job-name" if {*values} <= {self._source.metadata.get("name")}:
                changed = {"key": JOBSET_NAME, "values": values}
            case "replica-type":
                places = {each.name.lower(): self._places[each.name] for each in self._source.roles}
                if places.keys() >= {*values} and not any(place.is_shared for place in places.values()):
                    changed = {"key": REPLICATED_JOB, "values": [places[value].job for value in values]}
            case "replica-index" if role is not None and not self._has_shifted_indexes:
                place = self._places[role.name]
                changed = None if place.is_shared else {"key": place.index_label, "values": values}
            case "job-role" if values:
                changed = self._led(values)
        if changed is not None and not changed["values"]:
            del changed["values"]
        return changed and {"operator": operator} | changed

    def _led(self, values: list[str]) -> Object | None:
        if self._is_mpi_operator:
            return self._requirement("replica-type", "In", values, None)
        leader = self._source.role(*_LEADERS)
        if leader is None or values != ["master"] or self._places[leader.name].is_shared:
            return None
        return {"key": REPLICATED_JOB, "values": [self._places[leader.name].job]}
