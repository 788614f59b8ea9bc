"""TrainJobs to begin with on the page: a copy of another, or an empty one, each with a name that is free."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from trainer.api.kueue import is_of_kueue
from trainer.api.metric_curve import CURVE
from trainer.api.trainingruntime import CLUSTER_TRAINING_RUNTIMES
from trainer.api.trainjob import TRAIN_JOB_CONTROLLER, TRAIN_JOBS
from trainer.kube.cache.store import Lister
from trainer.kube.errors import ForbiddenError
from trainer.kube.objects import Object, ObjectKey, annotations_of, labels_of, mapping_at, name_of, namespace_of
from trainer.v1alpha1.discovery import Served
from trainer.v1alpha1.status import EXTENSION
from trainer_dashboard.access.parties import Party
from trainer_dashboard.access.viewer import Viewer
from trainer_dashboard.access.visible import NamespaceScope
from trainer_dashboard.requests.manifests import yaml_of

_LONGEST_NAME = 63
_LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
_MANAGERS: Final = {TRAIN_JOB_CONTROLLER, f"{TRAIN_JOBS.group}/trainjob-controller"}
"""The default of `managedBy` in both versions."""
_RUNTIME: Final = {"apiGroup": TRAIN_JOBS.group, "kind": CLUSTER_TRAINING_RUNTIMES.kind}
"""The defaults of `runtimeRef`."""
_FIRST_NAME: Final = "training-1"
_ASKED: Final = 4
"""Namespaces in which the right to create is looked for."""
_TRIED: Final = 2000
"""Names, one after the other."""


@dataclass(frozen=True, slots=True)
class Drafts:
    """Begins TrainJobs for a user, in the version that the cluster serves."""

    viewer: Viewer
    served: Served
    party: Party
    jobs: Lister
    """The TrainJobs that are shown, whose names are taken."""

    async def copy_of(self, key: ObjectKey) -> str:
        """A TrainJob as its author could have written it, under another name, as YAML.

        Raises:
            KubeError: the API server refuses to show it.
            RejectedError: it is too large.
        """
        job = await self.viewer.client.get(self.served.resource(TRAIN_JOBS), key.name, key.namespace)
        return await yaml_of(
            _copy(job, self._free_name(ObjectKey(key.namespace, _next_name(name_of(job))))), self.party
        )

    async def empty(self, scope: NamespaceScope, home: str) -> str:
        """A TrainJob that says nothing but its name and its namespace, as YAML.

        Args:
            scope: the namespaces that the user sees, of which one is taken where they may not create any in `home`.
            home: the namespace that is wanted; "" for any.

        Raises:
            KubeError: the user may create none, or the API server does not say.
        """
        namespace = await self._namespace(scope, home)
        resource = self.served.resource(TRAIN_JOBS)
        name = self._free_name(ObjectKey(namespace, _FIRST_NAME))
        job = {
            "apiVersion": resource.api_version,
            "kind": resource.kind,
            "metadata": {"name": name, "namespace": namespace},
            "spec": {"runtimeRef": {"name": ""}},
        }
        return await yaml_of(job, self.party)

    async def _namespace(self, scope: NamespaceScope, home: str) -> str:
        wanted = scope.namespace or home
        if wanted and await self._may_create(wanted):
            return wanted
        others = [] if scope.namespace else [each for each in await scope.namespaces() if each != wanted]
        for each in others[:_ASKED]:
            if await self._may_create(each):
                return each
        place = f"the namespace {wanted}" if wanted else "any namespace that is shown"
        raise ForbiddenError(403, f"you may not create TrainJobs in {place}")

    async def _may_create(self, namespace: str) -> bool:
        return await self.viewer.may("create", TRAIN_JOBS, ObjectKey(namespace, ""))

    def _free_name(self, first: ObjectKey) -> str:
        """The name, or the next one that no TrainJob of its namespace has."""
        name = first.name
        for _ in range(_TRIED):
            if self.jobs.peek(ObjectKey(first.namespace, name)) is None:
                break
            name = _next_name(name)
        return name


def _copy(job: Object, name: str) -> Object:
    """What its author has written of a TrainJob, without what the system is known to add."""
    labels = labels_of(job)
    annotations = {
        key: value
        for key, value in annotations_of(job).items()
        if key not in {_LAST_APPLIED, CURVE} and not key.startswith(EXTENSION)
    }
    metadata = {"name": name, "namespace": namespace_of(job)}
    written = _without_defaults(mapping_at(job, "spec"))
    spec = {field: _without_queueing(value) for field, value in written.items() if field != "suspend"}
    return {
        "apiVersion": job.get("apiVersion"),
        "kind": job.get("kind"),
        "metadata": metadata
        | ({"labels": labels} if labels else {})
        | ({"annotations": annotations} if annotations else {}),
        "spec": {field: value for field, value in spec.items() if value != []},
    }


def _without_defaults(spec: Object) -> Object:
    """What the API server has filled in is left to it again."""
    runtime = {name: value for name, value in mapping_at(spec, "runtimeRef").items() if _RUNTIME.get(name) != value}
    others = {name: value for name, value in spec.items() if name != "managedBy" or value not in _MANAGERS}
    return others | {"runtimeRef": runtime}


def _without_queueing(value: object) -> object:
    """Overrides without those of Kueue, which adds its own to each TrainJob."""
    return [each for each in value if not _is_queueing(each)] if isinstance(value, list) else value


def _is_queueing(override: object) -> bool:
    return isinstance(override, dict) and is_of_kueue(str(override.get("manager") or ""))


def _next_name(name: str) -> str:
    """`demo` becomes `demo-2`, `demo-2` becomes `demo-3`, and `demo-09` becomes `demo-10`."""
    found = re.fullmatch(r"(.*)-(\d{1,4})", name, re.ASCII)
    stem, number = (found[1], found[2]) if found else (name, "1")
    ending = f"-{int(number) + 1:0{len(number)}}"
    return stem[: _LONGEST_NAME - len(ending)].rstrip("-.") + ending
