"""TrainJobs to begin with on the page: a copy of another, or an empty one, each with a name that is free."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from trainer.api.kueue import is_of_kueue, queued_as_jobset
from trainer.api.losses import Losses
from trainer.api.metric_curve import CURVE, CURVE_OF
from trainer.api.optimization import (
    ASSIGNMENT,
    OPTIMIZATION_JOBS,
    PRUNED,
    SWEEP_LABEL,
    TRIAL_LABEL,
    environment_of,
)
from trainer.api.trainingruntime import CLUSTER_TRAINING_RUNTIMES
from trainer.api.trainjob import TRAIN_JOB_CONTROLLER, TRAIN_JOBS
from trainer.kube.cache.store import Lister
from trainer.kube.errors import ForbiddenError, NotFoundError
from trainer.kube.objects import (
    Object,
    ObjectKey,
    annotations_of,
    labels_of,
    mapping_at,
    name_of,
    namespace_of,
    objects_in,
)
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
_OF_TRIALS: Final = {SWEEP_LABEL, TRIAL_LABEL, ASSIGNMENT, PRUNED, CURVE_OF, CURVE}
"""Labels and annotations of a trial that are its sweep's."""


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
        name = _with_ending(name_of(job), "-2") if SWEEP_LABEL in labels_of(job) else _next_name(name_of(job))
        return await yaml_of(_copy(job, self._free_name(ObjectKey(key.namespace, name))), self.party)

    async def copy_of_trial(self, key: ObjectKey, number: int) -> str:
        """The TrainJob of a trial, which may be gone, as one that is none: with its parameters, under another name.

        Raises:
            KubeError: the API server refuses to show the sweep, or it has no such trial.
            RejectedError: it is too large.
        """
        sweep = await self.viewer.client.get(self.served.resource(OPTIMIZATION_JOBS), key.name, key.namespace)
        result, name = mapping_at(sweep, "status", "result"), f"{key.name}-trial-{number}"
        is_best = result.get("trainJobName") == name
        first = _with_ending(key.name, "-best") if is_best else _with_ending(name, "-2")
        job = await self._trial(sweep, ObjectKey(key.namespace, name), number)
        return await yaml_of(_copy(job, self._free_name(ObjectKey(key.namespace, first))), self.party)

    async def _trial(self, sweep: Object, key: ObjectKey, number: int) -> Object:
        """The TrainJob of a trial, or what it was made of."""
        resource = self.served.resource(TRAIN_JOBS)
        try:
            job = await self.viewer.client.get(resource, key.name, key.namespace)
        except (ForbiddenError, NotFoundError):
            job = None
        if job is not None and labels_of(job).get(SWEEP_LABEL) == name_of(sweep):
            return job
        records = objects_in(mapping_at(sweep, "status").get("trials"))
        record = next((each for each in records if each.get("number") == number), None)
        if record is None:
            raise NotFoundError(404, f"OptimizationJob {name_of(sweep)} has no trial {number}")
        made = _made_of(sweep, record, key.name)
        made |= {"apiVersion": resource.api_version, "kind": resource.kind}
        return made if self.served.version == "v1alpha1" else queued_as_jobset(made, Losses())

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
    dropped = _OF_TRIALS if SWEEP_LABEL in labels_of(job) else {CURVE}
    labels = {key: value for key, value in labels_of(job).items() if key not in dropped}
    annotations = {
        key: value
        for key, value in annotations_of(job).items()
        if key != _LAST_APPLIED and not key.startswith(EXTENSION) and key not in dropped
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


def _made_of(sweep: Object, record: Object, name: str) -> Object:
    """A trial as its sweep has made it, by the template and by what the status records of it."""
    spec = mapping_at(sweep, "spec")
    template = mapping_at(spec, "trainJobTemplate")
    names = (str(each.get("name") or "") for each in objects_in(spec.get("parameters")))
    values = map(str, record.get("parameterValues") or [])
    job = dict(mapping_at(template, "spec"))
    trainer = mapping_at(job, "trainer")
    env = environment_of(objects_in(trainer.get("env")), dict(zip(names, values, strict=False)))
    queue = {key: value for key, value in labels_of(sweep).items() if is_of_kueue(key)}
    metadata = mapping_at(template, "metadata")
    return {
        "metadata": metadata
        | {"name": name, "namespace": namespace_of(sweep), "labels": queue | mapping_at(metadata, "labels")},
        "spec": job | {"trainer": trainer | {"env": env}},
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
    return _with_ending(stem, f"-{int(number) + 1:0{len(number)}}")


def _with_ending(name: str, ending: str) -> str:
    return name[: _LONGEST_NAME - len(ending)].rstrip("-.") + ending
