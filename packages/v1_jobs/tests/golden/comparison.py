"""Jobs beside what they become: converted, checked and rendered by the code of the command line."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from packages.v1_jobs.tests.golden import jobset_model, operator_model
from packages.v1_jobs.tests.golden.manifests import manifests
from packages.v1_jobs.tests.golden.operator_model import OperatorJob, OperatorPod
from trainer.cli.documents import Document, checked, place
from trainer.cli.offline.conversion import converted
from trainer.cli.offline.render import Rendered, render_documents
from trainer.kube.objects import Object
from trainer.v1alpha1.discovery import Version
from trainer_v1_jobs.api.reading import kind_of
from trainer_v1_jobs.commands.operator_jobs import shipped_runtimes
from trainer_v1_jobs.conversion import Conversion, convert
from trainer_v1_jobs.conversion.convert import RENDEZVOUS_PORTS

EXPECTED = Path(__file__).parent / "expected"


@dataclass(frozen=True)
class Comparison:
    """A job, and what it has been converted into."""

    job: Object
    version: Version
    conversion: Conversion
    rendered: Rendered
    before: OperatorJob
    """What the operator makes of the job."""
    after: OperatorJob
    """What the cluster makes of the rendered objects."""

    @property
    def name(self) -> str:
        """Name of the job."""
        name: str = self.job["metadata"]["name"]
        return name

    def pairs(self) -> list[tuple[OperatorPod, OperatorPod]]:
        """Each pod of the operator with the one that takes its place."""
        present = {pod.name: pod for pod in self.after.pods}
        return [
            (pod, next((present[name] for name in self._names(pod) if name in present), self.after.pods[number]))
            for number, pod in enumerate(self.before.pods)
        ]

    def _names(self, pod: OperatorPod) -> list[str]:
        role, index = pod.name.removeprefix(f"{self.name}-").rsplit("-", 1)
        is_member = self.job["kind"] in {"TFJob", "MPIJob"}
        job = {"worker": "node", "master": "chief"}.get(role, role) if is_member else role
        return [f"{self.name}-{each}-{place}" for each in (job, role) for place in (f"0-{index}", f"{index}-0")]

    def expected(self, variable: str, value: str) -> str:
        """The value that a variable of the operator should have now: hosts and the role master have other names.

        Where a plugin chooses the port, it is another one as well.
        """
        value = self.translated(value)
        if variable == "TF_CONFIG":
            value = value.replace('"master"', '"chief"')
        if not self._has_plugin_port:
            return value
        port = str(RENDEZVOUS_PORTS[self.version])
        return (
            port
            if variable.endswith("_PORT")
            else value.replace(f".{self.name}:{self.before.port}", f".{self.name}:{port}")
        )

    @property
    def _has_plugin_port(self) -> bool:
        if self.conversion.runtime is None:
            return True
        return not {"torch", "jax", "tensorflow", "paddle"}.isdisjoint(
            self.conversion.runtime["spec"].get("mlPolicy", {})
        )

    def translated(self, text: str) -> str:
        """A text of the operator with the names that hosts have now."""
        hosts = {before.name: f"{after.name}.{self.name}" for before, after in self.pairs()}
        names = "|".join(re.escape(name) for name in sorted(hosts, key=len, reverse=True))
        return re.sub(rf"\b({names})(\.default\.svc)?(?![\w-])", lambda match: hosts[match[1]], text)

    def differences(self) -> dict[str, dict[str, list[str | None]]]:
        """Variables of the operator that have not the value that is expected now, or are gone: before and after."""
        found: dict[str, dict[str, list[str | None]]] = {}
        for before, after in self.pairs():
            for name, container in before.containers.items():
                now = after.containers[after.main if name == before.main else name]["env"]
                for variable, value in container["env"].items():
                    expected = self.expected(variable, str(value))
                    if not _is_same(variable, expected, now.get(variable)):
                        change = [expected, now.get(variable)]
                        found.setdefault(after.name, {})[f"{name}.{variable}"] = change
        return found

    def summary(self) -> Object:
        """What a reader reviews."""
        reference = self.conversion.train_job["spec"]["runtimeRef"]
        return {
            "job": f"{self.job['kind']} {self.name}",
            "runtime": "written" if self.conversion.runtime else reference["name"],
            "lost": [str(finding) for finding in self.conversion.findings],
            "warnings": [warning.partition(": ")[2] for warning in self.rendered.warnings],
            "pods": {f"{after.name} was {before.name}": _environments(after) for before, after in self.pairs()},
            "restarts": {after.name: _restarts(after) for _, after in self.pairs()},
            "succeeds with": sorted(sorted(pods) for pods in self.after.succeeds_with),
            "differences": self.differences(),
        }


def _is_same(variable: str, before: str, after: str | None) -> bool:
    if variable == "TF_CONFIG" and after is not None:
        return bool(json.loads(before) == json.loads(after))
    return before == after


def _environments(pod: OperatorPod) -> Any:
    found = {name: container["env"] for name, container in pod.containers.items()}
    return found if len(found) > 1 else found[pod.main]


def _restarts(pod: OperatorPod) -> str:
    restarts = pod.restarts
    causes = [text for holds, text in ((restarts.after_error, "errors"), (restarts.after_signal, "signals")) if holds]
    often = "always" if restarts.limit == operator_model.UNLIMITED else f"{restarts.limit} times"
    return f"after {' and '.join(causes)}, {often}" if causes else "never"


def comparisons(kind: str, version: Version = "v2alpha1") -> list[Comparison]:
    """All jobs of a kind."""
    return [_compared(job, version) for job in manifests()[kind]]


def _compared(job: Object, version: Version) -> Comparison:
    kind = kind_of(job)
    assert kind is not None
    conversion = convert(job, kind, version=version, runtimes=shipped_runtimes(version))
    (rendered,) = render_documents(documents_of(job, version))
    objects = [component.object for component in rendered.components]
    return Comparison(job, version, conversion, rendered, operator_model.run(job), jobset_model.run(objects))


def documents_of(job: Object, version: Version) -> list[Document]:
    """The documents that the command line prints, as it reads them again."""
    documents = []
    for obj in converted(job, job["metadata"]["name"], version).objects:
        document = checked(obj, obj["metadata"]["name"])
        if not isinstance(document, Document):
            raise document
        documents.append(document)
    return place(documents, namespace=None, default="default")


def expected(kind: str) -> Path:
    """Where the summaries of a kind are kept."""
    return EXPECTED / f"{kind}.yaml"


def text_of(found: list[Comparison]) -> str:
    """The summaries as YAML."""
    return yaml.dump_all((each.summary() for each in found), sort_keys=False, width=120, explicit_start=True)
