"""Names of pods in commands and variables, as the operators made them: `demo-worker-0`.

A name that is a host becomes the DNS name of the pod, one of a directory stays. What builds such a name, takes it apart
or compares it is lost, and so is what asks the cluster for pods by labels of the operators, or reads their files.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from trainer.api.jobset_labels import JOBSET_NAME
from trainer.api.losses import Losses
from trainer.kube.objects import Object, mapping_at, objects_in
from trainer_v1_jobs.conversion.old_labels import CONTAINERS
from trainer_v1_jobs.conversion.places import Place
from trainer_v1_jobs.conversion.source import Role, Source

_LAUNCHER: Final = "launcher"
"""The role whose only pod had no number in its name."""
LOST_QUERY: Final = f"asks for labels that pods do not have here: {JOBSET_NAME} has the name of the job"
_LABELS: Final = re.compile(r"training\.kubeflow\.org/")
_SHELL: Final = r"(?:\$HOSTNAME\b|\$\{HOSTNAME\}|\$\(hostname\)|`hostname`)"
_PYTHON: Final = r"(?:gethostname\(\)|\bnode\(\)|\bnodename\b|\buname\(\)\[1\]|\bHOSTNAME\b[\"'\])]*)"
_TAKEN_APART: Final = re.compile(
    rf"\$\{{HOSTNAME\s*[#%/:]|<<<\s*[\"']?{_SHELL}|\bcase\s+[\"']?{_SHELL}"
    rf"|(?:{_SHELL}|\bhostname(?:\s-s)?\b\)?)[\"']?\s*\|\s*(?:[ef]?grep|sed|awk|cut|tr|rev|tail|python3?)\b"
    rf"|{_SHELL}[\"']?\s+(?:==?|!=|=~)\s|\s(?:==?|!=)\s+[\"']?{_SHELL}"
    rf"|{_PYTHON}\s*(?:\[|[!=]=|\.\s*(?:r?split|r?partition|r?find|r?index|startswith|endswith|replace)\b)"
    rf"|\bin\s+[\w.(\[\"']{{0,40}}{_PYTHON}|\bre\.\w{{1,20}}\(.{{0,80}}?{_PYTHON}"
)
"""What reads the role or the number of a pod from the name of its host."""
_PROBES: Final = ("livenessProbe", "readinessProbe", "startupProbe")
_HOOKS: Final = ("postStart", "preStop")
_FILES: Final = {
    "discover_hosts.sh": re.compile(r"/etc/mpi/discover_hosts\.sh\b"),
    "kubexec.sh": re.compile(r"/etc/mpi/kubexec\.sh\b|/opt/kube\b"),
}
"""Files that both operators put into pods of MPI, and that nobody writes here."""


def rewrite_names(spec: Object, role: Role, source: Source, places: Mapping[str, Place], losses: Losses) -> None:
    """Change the names in the containers of a pod in place."""
    names = _Names(source, places)
    for kind in CONTAINERS:
        for container in objects_in(spec.get(kind)):
            path = f"{role.path}.template.spec.{kind}[{container.get('name')}]"
            for field, words, position, text in [*_texts(container)]:
                for message in names.problems(text):
                    losses.add(f"{path}.{field}", message)
                words[position] = names.rewritten(text)


def _texts(container: Object) -> Iterator[tuple[str, Any, int | str, str]]:
    """The texts that may name pods, each with its field, what holds it and its position there."""
    for field, holder in _commands(container):
        for position, text in enumerate(holder or []):
            yield field, holder, position, str(text)
    for variable in objects_in(container.get("env")):
        if variable.get("value"):
            yield f"env[{variable.get('name')}]", variable, "value", str(variable["value"])


def _commands(container: Object) -> Iterator[tuple[str, Any]]:
    """What is run in a container, each with its field."""
    for field in ("command", "args"):
        yield field, container.get(field)
    for steps in (*((probe,) for probe in _PROBES), *(("lifecycle", hook) for hook in _HOOKS)):
        yield ".".join((*steps, "exec.command")), mapping_at(container, *steps, "exec").get("command")


class _Names:
    """The names of the pods of a job."""

    def __init__(self, source: Source, places: Mapping[str, Place]) -> None:
        self._job = str(source.metadata.get("name") or "")
        self._places = {role.lower(): place for role, place in places.items()}
        self._has_files = source.kind.replicas_field == "mpiReplicaSpecs"
        roles = "|".join(role.lower() for role in source.kind.roles)
        own = re.escape(self._job)
        self._name = re.compile(
            rf"(?<![\w.$-]){own}-(?P<role>{roles})(?:-(?P<index>\d+))?(?:\.{own}(?![\w-]))?(?![\w-])"
        )
        self._own = re.compile(rf"(?<![\w.-]){own}-(?:{roles})-")
        self._built = re.compile(rf"(?:\$\w+|[)}}])-(?:{roles})\b|-(?:{roles})-(?=[$`{{%\"'])")

    def rewritten(self, text: str) -> str:
        """A text with the names that hosts have now."""
        return self._replaced(text, lambda host: host)

    def problems(self, text: str) -> Iterator[str]:
        """What a text does with names, labels and files that are no more."""
        rest = self._replaced(text, lambda _: "")
        if self._built.search(rest) or (self._job and self._own.search(rest)):
            yield f"names a pod as the operator called it, which is another name now; hosts are {self._hosts()}"
        if _TAKEN_APART.search(text):
            yield f"takes the name of its host apart, which is another one now; hosts are {self._hosts()}"
        if _LABELS.search(text):
            yield LOST_QUERY
        for name, file in _FILES.items():
            if self._has_files and file.search(text):
                yield f"reads {name} of the operator, which nobody writes here: the hosts are in /etc/mpi/hostfile"

    def _replaced(self, text: str, replacement: Callable[[str], str]) -> str:
        """A text with replacements of names that have a counterpart; those of directories are their own."""
        if not self._job or "hostname" in text.lower():  # with which a name may be compared, and which is no DNS name
            return text

        def replace(found: re.Match[str]) -> str:
            host = self._counterpart(found, text)
            return replacement(host) if host else found[0]

        return self._name.sub(replace, text)

    def _counterpart(self, found: re.Match[str], text: str) -> str:
        place, index = self._places.get(found["role"]), found["index"]
        is_url = text.endswith("//", 0, found.start())
        if not is_url and (text.endswith("/", 0, found.start()) or text.startswith("/", found.end())):
            return found[0]
        if place is None or (index is None) != (found["role"] == _LAUNCHER):
            return ""
        return place.host(int(index or 0), self._job)

    def _hosts(self) -> str:
        """How hosts are called."""
        patterns = (place.host("INDEX", self._job or "NAME") for place in self._places.values())
        return ", ".join(dict.fromkeys(patterns))
