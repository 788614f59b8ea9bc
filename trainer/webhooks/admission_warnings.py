"""Warnings for the author of an accepted object; kubectl prints them. They are few, so that people read them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from trainer.api.trainingruntime import DEPRECATED, SUPPORT_LABEL
from trainer.framework.building.template import shell_operator
from trainer.framework.building.trainer_step import stated_ancestor
from trainer.framework.plugin_api.errors import AdmissionWarning
from trainer.framework.plugin_api.runtime_info import ANCESTOR_LABEL, Ancestor
from trainer.kube.quantity import quantity_advice

if TYPE_CHECKING:
    from collections.abc import Iterator

    from trainer.api.trainingruntime import Runtime
    from trainer.api.trainjob import TrainJob
    from trainer.kube.objects import Object

_LONGEST_NAME = 63
"""Characters of a resource name in a warning."""


def train_job_warnings(train_job: TrainJob, runtime: Runtime) -> Iterator[AdmissionWarning]:
    """The warnings for a TrainJob; plugins add theirs by `CustomValidation`."""
    if _is_deprecated(runtime):
        text = f"{runtime.kind} {runtime.metadata.name} is deprecated and will be removed; use another runtime"
        yield AdmissionWarning("spec.runtimeRef.name", text)
    trainer = train_job.spec.trainer
    yield from _ignored_operator("spec.trainer.command", trainer.command if trainer else None)
    for index, override in enumerate(train_job.spec.pod_spec_overrides or []):
        for position, container in enumerate(override.containers or []):
            path = f"spec.podSpecOverrides[{index}].containers[{position}].command"
            yield from _ignored_operator(path, container.command)


def runtime_warnings(runtime: Runtime) -> Iterator[AdmissionWarning]:
    """The warnings for a runtime."""
    if _is_deprecated(runtime):
        text = "TrainJobs that use this runtime are warned that it is deprecated"
        yield AdmissionWarning(f"metadata.labels[{SUPPORT_LABEL}]", text)
    for index, job in enumerate(runtime.spec.template.spec.replicated_jobs or []):
        ancestor = stated_ancestor(job)
        if ancestor is not None and ancestor not in set(Ancestor):
            path = f"spec.template.spec.replicatedJobs[{index}].template.metadata.labels[{ANCESTOR_LABEL}]"
            yield AdmissionWarning(path, f"there is no step {ancestor!r}; known steps: {', '.join(Ancestor)}")


def _is_deprecated(runtime: Runtime) -> bool:
    return (runtime.metadata.labels or {}).get(SUPPORT_LABEL) == DEPRECATED


def _ignored_operator(path: str, command: list[str] | None) -> Iterator[AdmissionWarning]:
    """A command of one item is split into words as by a shell, but not run by one."""
    if command is None or len(command) != 1 or not re.search(r"\s", command[0]):
        return
    operator = shell_operator(command[0])
    if operator is not None:
        text = (
            f'is not run by a shell, so {operator} is passed on as a plain word; write ["sh", "-c", "..."] for a shell'
        )
        yield AdmissionWarning(path, text)


def quantity_warnings(obj: Object) -> Iterator[str]:
    """What to write instead of a quantity such as 200MB.

    The API server checks the schema before it calls the validating webhook, and says only which pattern does not match;
    the warnings of the mutating webhook are shown with that.
    """
    resources: object = obj
    for name in ("spec", "trainer", "resourcesPerNode"):
        resources = resources.get(name) if isinstance(resources, dict) else None
    for kind in ("limits", "requests"):
        amounts = resources.get(kind) if isinstance(resources, dict) else None
        for name, amount in amounts.items() if isinstance(amounts, dict) else ():
            if isinstance(amount, str) and (advice := quantity_advice(amount)):
                yield f"spec.trainer.resourcesPerNode.{kind}[{str(name)[:_LONGEST_NAME]}]: {amount}: {advice}"
