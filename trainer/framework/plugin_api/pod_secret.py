"""ConfigMaps and Secrets of each TrainJob that its pods mount.

The content of a Secret is generated, such as keys, and all pods have to agree on it. One that somebody deletes is made
again, with other content, before pods are made; and when pods cannot mount it, if none has done so.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial

from trainer.api.jobset_labels import JOBSET_NAME
from trainer.api.trainjob import TrainJob
from trainer.framework.plugin_api.component import Component, Loss, is_unique_name, revise_while_suspended
from trainer.framework.plugin_api.extension_points import Watch
from trainer.framework.plugin_api.plugin_context import Reader
from trainer.framework.plugin_api.runtime_info import RuntimeInfo
from trainer.kube.cache.cached_object import CachedObject
from trainer.kube.objects import Object, is_being_deleted, is_condition_true
from trainer.kube.resource import CONFIG_MAPS, EVENTS, PODS, SECRETS
from trainer.kube.selection import Selection
from trainer.workloads import JOBSETS

_NOT_FOUND = re.compile(r'secret "([^"]+)" not found')
_LONGEST = 1024
"""Most characters of a message that are searched."""


@dataclass(frozen=True, slots=True)
class PodConfigMap:
    """The ConfigMaps `<TrainJob>-<suffix>` of a plugin, one for each TrainJob."""

    suffix: str
    label: str
    """Label with the name of the TrainJob; only ConfigMaps with it are cached, and of these the metadata alone, since
    tenants can label large ones."""

    def name(self, train_job: str) -> str:
        """The name of the ConfigMap of the TrainJob of this name."""
        return f"{train_job}-{self.suffix}"

    def watches(self) -> Iterator[Watch]:
        """The ConfigMaps and the JobSets."""
        yield Watch(CONFIG_MAPS, Selection(label_selector=self.label, metadata_only=True))
        yield Watch(JOBSETS, triggers=False)

    def component(self, train_job: TrainJob, data: Mapping[str, str], reader: Reader | None = None) -> Component:
        """The ConfigMap of this TrainJob; with a `reader` it stays as it is once the JobSet runs."""
        name = train_job.metadata.name
        obj: Object = {
            "apiVersion": CONFIG_MAPS.api_version,
            "kind": CONFIG_MAPS.kind,
            "metadata": {
                "name": self.name(name),
                "namespace": train_job.metadata.namespace,
                "labels": {self.label: name},
            },
            "data": dict(data),
        }
        revise = revise_while_suspended(reader, train_job, obj) if reader is not None else None
        return Component(CONFIG_MAPS, obj, revise=revise, metadata_only=True)


@dataclass(frozen=True, slots=True)
class PodSecret:
    """The Secrets of a plugin, one for each TrainJob, which are not cached; see `RuntimeInfo.secret_name`."""

    volume: str
    """Name of the volume with which pods mount it; begins with the name of the plugin."""
    type: str = "Opaque"
    """Type of the Secrets. Defaults to that of arbitrary content."""

    def name(self, info: RuntimeInfo, train_job: TrainJob) -> str:
        """The name of the Secret of this TrainJob."""
        return info.secret_name(train_job, self.volume)

    def watches(self) -> Iterator[Watch]:
        """Events of pods that miss a Secret, and the pods that may still use it."""
        yield Watch(
            EVENTS,
            Selection(field_selector="involvedObject.kind=Pod,reason=FailedMount"),
            triggers=False,
            indexes={self._missing: _missing_secret},
        )
        yield Watch(PODS, Selection(label_selector=JOBSET_NAME), triggers=False)

    def component(
        self, info: RuntimeInfo, train_job: TrainJob, reader: Reader, content: Callable[[], Mapping[str, bytes]]
    ) -> Component:
        """The Secret of this TrainJob.

        Args:
            info: what the TrainJob becomes.
            train_job: whose pods mount it.
            reader: for the watches of this Secret.
            content: generates the files; it is called whenever pods are about to be created.
        """
        name = self.name(info, train_job)
        secret: Object = {
            "apiVersion": SECRETS.api_version,
            "kind": SECRETS.kind,
            "metadata": {"name": name, "namespace": train_job.metadata.namespace},
            "type": self.type,
            "immutable": True,
        }
        signs = partial(self._signs_of_loss, f"{train_job.metadata.namespace}/{name}", reader)
        loss = Loss(signs, partial(self._may_replace, train_job, reader))
        asks_owner = not is_unique_name(name, train_job)
        return Component(SECRETS, secret, generated=lambda: _data(content()), loss=loss, asks_owner=asks_owner)

    @property
    def _missing(self) -> str:
        """Name of the index of events by namespace and name of the Secret that a pod cannot mount."""
        return f"{self.volume}-missing"

    def _signs_of_loss(self, secret: str, reader: Reader) -> str:
        """The events about pods that cannot mount the Secret."""
        events = reader.keys(EVENTS, self._missing, secret)
        return str(hash(frozenset(events))) if events else ""

    def _may_replace(self, train_job: TrainJob, reader: Reader) -> bool:
        """Whether no pod has mounted the lost Secret, since the kubelet reads an immutable Secret only once."""
        pods = reader.list(PODS, train_job.metadata.namespace or "", {JOBSET_NAME: train_job.metadata.name})
        return not any(self._is_mounted(pod) for pod in pods)

    def _is_mounted(self, pod: Object) -> bool:
        volumes = (pod.get("spec") or {}).get("volumes") or []
        if is_being_deleted(pod) or all(volume.get("name") != self.volume for volume in volumes):
            return False
        is_pending = (pod.get("status") or {}).get("phase") == "Pending"
        return not is_pending or is_condition_true(pod, "PodReadyToStartContainers")


def _missing_secret(event: CachedObject) -> tuple[str, ...]:
    found = _NOT_FOUND.search(str(event.get("message") or "")[:_LONGEST])
    return (f"{event.key.namespace}/{found[1]}",) if found else ()


def _data(files: Mapping[str, bytes]) -> Object:
    return {"data": {name: base64.b64encode(content).decode() for name, content in files.items()}}
