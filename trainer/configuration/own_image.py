"""The image of the manager, which the progress reporter of trainings comes from, read from the manager's own pod.

Kubernetes tells a container much about its pod, but not the image, and Kustomize changes that of the Deployment without
knowing of another place where it would have to stand.
"""

from __future__ import annotations

from typing import Final

from trainer.framework.startup.discovery import PluginsConfiguration
from trainer.kube.backoff import Backoff
from trainer.kube.client import Client
from trainer.kube.clock import Clock
from trainer.kube.errors import ForbiddenError, KubeError
from trainer.kube.logger import get_logger
from trainer.kube.objects import Object, ObjectKey
from trainer.kube.resource import PODS
from trainer.kube.selection import Selection
from trainer.plugins.progress_reporter import ProgressReporter

log = get_logger(__name__)

_CONTAINER: Final = "manager"
_RETRIES: Final = 5
_BACKOFF: Final = Backoff(initial=0.5, maximum=8, jitter=0.5)


async def with_own_image(
    client: Client, plugins: PluginsConfiguration, pod: ObjectKey, clock: Clock
) -> PluginsConfiguration:
    """The configuration with the manager's image for the progress reporter, unless it has an image already, or "".

    `pod` is that of the manager; without a name it runs in none. Nothing is added where pulling the image takes
    Secrets, which the namespaces of trainings do not have, nor where the pod cannot be read in six attempts: the
    manager starts without.
    """
    given = plugins.configuration.get(ProgressReporter.name) or {}
    if not pod.name or "image" in given or not plugins.is_enabled(ProgressReporter.name):
        return plugins
    image = await _image_of(client, pod, clock)
    if not image:
        return plugins
    log.info("reports the progress of trainings with the image of the manager", image=image)
    return plugins.model_copy(
        update={"configuration": {**plugins.configuration, ProgressReporter.name: {**given, "image": image}}}
    )


async def _image_of(client: Client, key: ObjectKey, clock: Clock) -> str:
    try:
        spec = await _spec_of(client, key, clock)
    except KubeError as error:
        log.warning("no progress reporter: the own pod cannot be read", pod=str(key), error=str(error))
        return ""
    if spec.get("imagePullSecrets"):
        remedy = "set plugins.configuration.progress-reporter.image to one that all nodes can pull"
        log.info("no progress reporter: the image of the manager takes Secrets to be pulled", remedy=remedy)
        return ""
    return next((str(each["image"]) for each in spec.get("containers") or [] if each["name"] == _CONTAINER), "")


async def _spec_of(client: Client, key: ObjectKey, clock: Clock) -> Object:
    """The spec of a pod, {} without one."""
    selection = Selection(namespace=key.namespace, field_selector=f"metadata.name={key.name}")
    failures = 0
    while True:
        try:
            pods = await client.list(PODS, selection)
        except KubeError as error:
            if isinstance(error, ForbiddenError) or failures == _RETRIES:
                raise
            log.info("reads the own pod again", pod=str(key), error=str(error))
            await clock.sleep(_BACKOFF.pause(failures))
            failures += 1
        else:
            return pods.items[0]["spec"] if pods.items else {}
