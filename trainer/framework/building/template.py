"""A runtime's JobSet template, brought into the form that JobSet and Kubernetes accept.

Runtimes are written as the KEP does: Jobs are called `Node`, a command is one line, ports in `env` are numbers.
"""

from __future__ import annotations

import re
import weakref
from collections import Counter
from typing import Final

import msgspec

from trainer.api.bounds import MOST_WORDS
from trainer.api.jobset import JobSetSpec, ReplicatedJob
from trainer.api.pod_template import pod_template_errors
from trainer.framework.plugin_api.errors import BuildError
from trainer.kube.field_errors import invalid, required, too_many
from trainer.kube.objects import Object

_forms: dict[int, bytes] = {}
"""The normalised form of each template of a runtime that is in memory, as JSON, by `id`."""

_DNS_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")


def normalised_once(template: JobSetSpec, runtime: str) -> JobSetSpec:
    """A private copy of the template in the form of `normalised`, computed once per runtime."""
    key = id(template)
    form = _forms.get(key)
    if form is None:
        form = _forms[key] = _encoded(normalised(template, runtime))
        weakref.finalize(template, _forms.pop, key).atexit = False
    return JobSetSpec.model_validate_json(form)


def normalised(template: JobSetSpec, runtime: str, *, is_checked: bool = False) -> JobSetSpec:
    """A copy with lower-case names, split commands and string values in `env`."""
    template = JobSetSpec.model_validate_json(_encoded(template))
    path = f"{runtime} spec.template.spec"
    for job in template.replicated_jobs or []:
        _normalise_job(job, f"{path}.replicatedJobs[{job.name}]", is_checked=is_checked)
    names = [job.name for job in template.replicated_jobs or []]
    if not names:
        raise BuildError(required(f"{path}.replicatedJobs", "must not be empty"))
    twice = next((name for name, count in Counter(names).items() if count > 1), None)
    if twice is not None:
        raise BuildError(invalid(f"{path}.replicatedJobs", twice, "is used twice; case is ignored"))
    _lower_references(template)
    return template


def split_command(command: list[str], field: str) -> list[str]:
    """A command of one item with spaces as the words that a shell would see; other commands as they are."""
    if len(command) != 1 or not re.search(r"\s", command[0]):
        return list(command)
    try:
        words = split_words(command[0])
    except ValueError as error:
        rule = f"cannot be split into words ({error}); write a list of words instead"
        raise BuildError(invalid(field, command[0], rule)) from error
    if len(words) > MOST_WORDS:
        raise BuildError(too_many(field, len(words), MOST_WORDS))
    return words


def _encoded(template: JobSetSpec) -> bytes:
    return msgspec.json.encode(template.to_object())


def pod_spec_of(job: ReplicatedJob) -> Object:
    """The pod spec of a replicated Job of a normalised template, which may be changed in place."""
    spec: Object = job.template.spec.template["spec"]
    return spec


def _normalise_job(job: ReplicatedJob, path: str, *, is_checked: bool) -> None:
    job.name = job.name.lower()
    if not _DNS_LABEL.fullmatch(job.name):
        rule = "must consist of letters, digits and -, because it is part of host names"
        raise BuildError(invalid(f"{path}.name", job.name, rule))
    if not is_checked:
        errors = pod_template_errors(job.template.spec.template, f"{path}.template.spec.template")
        if errors:
            raise BuildError(*errors)
    for kind in ("containers", "initContainers"):
        for container in pod_spec_of(job).get(kind) or []:
            _normalise_container(container, f"{path}.template.spec.template.spec.{kind}[{container['name']}]")


def _normalise_container(container: Object, path: str) -> None:
    if container.get("command"):
        container["command"] = split_command(container["command"], f"{path}.command")
    for variable in container.get("env") or []:
        if isinstance(variable.get("value"), int):
            variable["value"] = str(variable["value"])


def _lower_references(template: JobSetSpec) -> None:
    """Write the names of replicated Jobs in lower case wherever the template refers to them."""
    for job in template.replicated_jobs or []:
        for dependency in job.depends_on or []:
            dependency.name = dependency.name.lower()
    policies = [template.success_policy, *((template.failure_policy and template.failure_policy.rules) or [])]
    for policy in policies:
        if policy and policy.target_replicated_jobs:
            policy.target_replicated_jobs = [name.lower() for name in policy.target_replicated_jobs]
    if template.coordinator:
        template.coordinator.replicated_job = template.coordinator.replicated_job.lower()


_SPACE: Final = " \t\r\n"
"""The characters that separate words."""
_END: Final = "\0"
"""Separator of words while quotes are removed."""
_QUOTED: Final = re.compile(
    r"""[ \t\r\n]++\Z|(?P<space>[ \t\r\n]+)|\\(?P<escaped>.)|'(?P<single>[^']*)'"""
    r"""|"(?P<double>[^"\\]*(?:\\.[^"\\]*)*)"|(?P<open>['"\\])""",
    re.DOTALL,
)
_ESCAPED_IN_QUOTES: Final = re.compile(r'\\(["\\])')
_UNQUOTED: Final = re.compile(
    r"""\\.|'[^']*'|"[^"\\]*(?:\\.[^"\\]*)*"|(?P<operator>[();<>|&]+)|(?P<open>['"\\])""", re.DOTALL
)
_OPERATORS: Final = frozenset("|&;<>")
"""The characters of which a shell's pipes, lists and redirections consist."""


def split_words(line: str) -> list[str]:
    """Split a text into words as `shlex.split` does.

    Raises:
        ValueError: a quote is not closed, nothing follows a backslash, or there is a NUL character.
    """
    if _END in line:
        raise ValueError("No word can contain a NUL character")
    line = line.lstrip(_SPACE)
    return _QUOTED.sub(_unquoted, line).split(_END) if line else []


def shell_operator(line: str) -> str | None:
    """The first word that a shell would take for an operator, such as `&&`; none behind a quote that is not closed."""
    for found in _UNQUOTED.finditer(line):
        if found.lastgroup == "open":
            return None
        if found.lastgroup == "operator" and _OPERATORS.issuperset(found["operator"]):
            return found["operator"]
    return None


def _unquoted(found: re.Match[str]) -> str:
    kind = found.lastgroup
    if kind is None:
        return ""
    if kind == "space":
        return _END
    if kind == "open":
        raise ValueError("No escaped character" if found[kind] == "\\" else "No closing quotation")
    return _ESCAPED_IN_QUOTES.sub(r"\1", found[kind]) if kind == "double" else found[kind]
