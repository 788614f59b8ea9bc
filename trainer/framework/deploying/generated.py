"""Generated objects, such as keys: created before pods are, never read, and created again where pods miss them."""

from __future__ import annotations

import json

from anyio.to_thread import run_sync

from trainer.framework.deploying.child import owned, stored
from trainer.framework.plugin_api.component import Component
from trainer.framework.plugin_calls import PluginSeries
from trainer.kube.bounded_dict import BoundedDict
from trainer.kube.client import Client
from trainer.kube.errors import AlreadyExistsError
from trainer.kube.logger import get_logger
from trainer.kube.objects import Object, ObjectKey

_REMEMBERED = 1024
"""Limit of the lost objects that are remembered."""

log = get_logger(__name__)


class GeneratedObjects:
    """Creates them; what plugins raise is counted in `series`."""

    def __init__(self, client: Client, series: PluginSeries) -> None:
        self._client = client
        self._series = series
        self._losses: BoundedDict[ObjectKey, str] = BoundedDict(_REMEMBERED)

    async def create_if_lost(self, owner: Object, component: Component) -> None:
        """Create a generated object again that pods miss, once for each sign of its loss."""
        if component.loss is None:
            return
        with self._series.call(component.plugin, "build"):
            seen = component.loss.seen()
            is_new = bool(seen) and self._losses.get(component.key) != seen
            may_replace = is_new and component.loss.may_replace()
        if may_replace:
            await self.create(owner, component)
        if is_new:
            self._losses[component.key] = seen

    async def create(self, owner: Object, component: Component) -> None:
        """Create an object that is never read; an existing object of its name is from an earlier attempt."""
        assert component.generated is not None
        with self._series.call(component.plugin, "build"):
            # In a thread, since making keys takes time, and loading what makes them.
            obj = await run_sync(component.generated) | component.object
            json.dumps(obj)  # what cannot be sent raises here, with the name of the plugin
        try:
            await self._client.create(component.resource, owned(obj, component, owner))
        except AlreadyExistsError:
            if component.asks_owner:
                await stored(self._client, owner, component)
            return
        log.info("created object", kind=component.resource.kind, object=str(component.key))
