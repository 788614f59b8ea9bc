"""What stands for values of a trial in its template, `${trialParameters.NAME}`, as variables that Kubernetes replaces.

Katib replaces them anywhere in the text of a job. A trial of an OptimizationJob gets its parameters as variables of the
container that trains, and Kubernetes replaces `$(NAME)` in its command and arguments, in values of the variables that
come later, and in `subPathExpr` of its mounts; there alone they can stay. Those that are the same in all trials, such
as the kind of the job, are written out.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from trainer.api.jobset_labels import JOBSET_NAME
from trainer.api.optimization import variable_of
from trainer.kube.field_errors import FieldError, forbidden, listed, not_found
from trainer.kube.objects import Object, mapping_at, objects_in
from trainer_v1_jobs.katib.experiment import TrialParameter
from trainer_v1_jobs.katib.findings import Findings

TRIAL: Final = "spec.trialTemplate.trialSpec"
"""Where the job is in an Experiment."""
_PARAMETERS: Final = "spec.trialTemplate.trialParameters"
_PLACEHOLDER: Final = re.compile(r"\$\{trialParameters\.(?P<name>[^{}]{1,253})\}")
_META: Final = re.compile(r"\$\{trialSpec\.(?P<member>[A-Za-z]+)(?:\[(?P<key>[^\[\]]+)\])?\}")
_REFERENCE: Final = re.compile(r"\$\$|\$\([^)]*\)")
"""What Kubernetes reads as one: a sign, or a reference to a variable."""
_SIGN: Final = re.compile(r"\$(?!\{trialParameters\.)")
_PREFIX: Final = f"$({variable_of('')}"
_NAME: Final[Object] = {
    "name": "TRIAL_TRAINJOB_NAME",
    "valueFrom": {"fieldRef": {"fieldPath": f"metadata.labels['{JOBSET_NAME}']"}},
}
"""The name of the trial, which is that of its JobSet."""
_NAMESPACE: Final[Object] = {
    "name": "TRIAL_TRAINJOB_NAMESPACE",
    "valueFrom": {"fieldRef": {"fieldPath": "metadata.namespace"}},
}
_OF_THE_POD: Final = {"Name": _NAME, "Namespace": _NAMESPACE}
_ELSEWHERE: Final = (
    "trials differ in variables of the container that trains, and Kubernetes replaces these in its command, args and "
    "env alone: use it there, or convert one Experiment for each value"
)


def names_in(text: str) -> list[str]:
    """The names of the placeholders in a text."""
    return [found["name"] for found in _PLACEHOLDER.finditer(text)]


class Placeholders:
    """The placeholders of a template.

    Args:
        trial_parameters: of the template.
        parameters: names of the parameters of the Experiment.
        trial_spec: the job.
        findings: errors are added to them.
    """

    def __init__(
        self,
        trial_parameters: Iterable[TrialParameter],
        parameters: Iterable[str],
        trial_spec: Object,
        findings: Findings,
    ) -> None:
        self._findings = findings
        self._literals: dict[str, str] = {}
        self._variables: dict[str, Object] = {}
        known = set(parameters)
        for each in trial_parameters:
            found = _META.fullmatch(each.reference)
            path = f"{_PARAMETERS}[{each.name}].reference"
            if found is None and each.reference in known:
                self._variables[each.name] = {"name": variable_of(each.reference), "value": ""}
            elif found is not None and found["member"] in _OF_THE_POD and not found["key"]:
                self._variables[each.name] = _OF_THE_POD[found["member"]]
            else:
                value = _same_in_all(trial_spec, found["member"], found["key"]) if found is not None else None
                self._literals[each.name] = value or ""
                if value is None:
                    what = "no such parameter in spec.parameters" if found is None else "no such member of trialSpec"
                    findings.refuse(not_found(path, each.reference, f"there is {what}"))

    def expand_in(self, container: Object) -> None:
        """Write variables in place of the placeholders of the container that trains, and define those that need it."""
        needed: dict[str, Object] = {}

        def replaced(text: Any, *, is_later: bool = False) -> Any:
            if not isinstance(text, str):
                return text
            for name in names_in(text):
                variable = self._variables.get(name)
                if variable is not None and (is_later or "valueFrom" in variable):
                    needed[variable["name"]] = variable
            return self._expanded(self._escaped(text), self._reference)

        for field in ("command", "args"):
            if isinstance(container.get(field), list):
                container[field] = [replaced(word) for word in container[field]]
        for mount in objects_in(container.get("volumeMounts")):
            self._expand_mount(mount, replaced)
        for variable in objects_in(container.get("env")):
            if "value" in variable:
                variable["value"] = replaced(variable["value"], is_later=True)
        if needed:
            # Those of parameters get their values in each trial, at the places that they have here: a variable can
            # refer to those before it.
            kept = [each for each in container.get("env") or [] if mapping_at(each).get("name") not in needed]
            container["env"] = [*copy.deepcopy([*needed.values()]), *kept]

    def _expand_mount(self, mount: Object, replaced: Callable[[Any], Any]) -> None:
        """A path in a volume can have variables, in another field than one without."""
        path = mount.get("subPath")
        if isinstance(path, str) and any(name in self._variables for name in names_in(path)):
            del mount["subPath"]
            mount["subPathExpr"] = replaced(path)
        elif "subPathExpr" in mount:
            mount["subPathExpr"] = replaced(mount["subPathExpr"])

    def written_out(self, value: Any, path: str) -> Any:
        """A value with what is the same in all trials; others are refused, as nobody replaces them there."""
        if isinstance(value, str):
            if "${trialParameters." not in value:
                return value
            if variables := [name for name in names_in(value) if name in self._variables]:
                names = listed(list(dict.fromkeys(variables)))
                self._findings.refuse(forbidden(path, f"has the trial parameter {names}: {_ELSEWHERE}"))
                return value
            self._check_known(value, path)
            return self._expanded(value, self._literals.get)
        if isinstance(value, dict):
            return {
                self.written_out(name, path): self.written_out(member, f"{path}.{name}")
                for name, member in value.items()
            }
        if isinstance(value, list):
            return [
                self.written_out(member, f"{path}[{mapping_at(member).get('name', index)}]")
                for index, member in enumerate(value)
            ]
        return value

    def _check_known(self, text: str, path: str) -> None:
        for name in names_in(text):
            if name not in self._literals:
                rule = "there is no such name in spec.trialTemplate.trialParameters"
                self._findings.refuse(not_found(path, f"${{trialParameters.{name}}}", rule))

    def _reference(self, name: str) -> str | None:
        """What Kubernetes replaces by the value, or the value itself; None if the placeholder stays."""
        variable = self._variables.get(name)
        return self._literals.get(name) if variable is None else f"$({variable['name']})"

    def _escaped(self, text: str) -> str:
        """A text in which a command of a shell around a placeholder, as in `$(cut ${...})`, is no reference.

        Kubernetes replaces nothing inside of one.
        """

        def escape(found: re.Match[str]) -> str:
            is_around = any(name in self._variables for name in names_in(found[0]))
            return _SIGN.sub("$$", found[0]) if is_around else found[0]

        end = text.rfind(")") + 1  # a reference has one, so that the search for it takes linear time
        return _REFERENCE.sub(escape, text[:end]) + text[end:]

    @staticmethod
    def _expanded(text: str, value_of: Callable[[str], str | None]) -> str:
        def replace(found: re.Match[str]) -> str:
            value = value_of(found["name"])
            if value is None:
                return found[0]
            # A $ before the value stays one; before $(NAME) it would take away its meaning.
            return f"${value}" if value.startswith("$(") and _signs_before(text, found.start()) % 2 else value

        return _PLACEHOLDER.sub(replace, text)


def _signs_before(text: str, end: int) -> int:
    start = end
    while start and text[start - 1] == "$":
        start -= 1
    return end - start


def _same_in_all(trial_spec: Object, member: str, key: str | None) -> str | None:
    """A member of the job that all trials share; None if it has none."""
    values: Mapping[str, Any] = {
        "Kind": trial_spec.get("kind"),
        "APIVersion": trial_spec.get("apiVersion"),
        "Annotations": mapping_at(trial_spec, "metadata", "annotations").get(key or ""),
        "Labels": mapping_at(trial_spec, "metadata", "labels").get(key or ""),
    }
    value = values.get(member)
    return value if isinstance(value, str) else None


def unreachable(job: Object, reached: str | None) -> FieldError | None:
    """An error for a replicated Job where another container than one uses parameters; None if none does."""
    spec = mapping_at(job, "template", "spec", "template", "spec")
    for kind in ("containers", "initContainers"):
        for container in objects_in(spec.get(kind)):
            is_reached = kind == "containers" and container.get("name") == reached
            if not is_reached and _PREFIX in str(container):
                rule = (
                    f"the pods of {job.get('name')} are a Job of their own, which gets no parameters of trials: give "
                    "all roles equal pods, or use parameters in those of the first role alone"
                )
                return forbidden(TRIAL, rule)
    return None
