"""A controller that has Prometheus scrape Services with a label `metrics-port`, where its operator is installed."""

from trainer import kube
from trainer.kube.objects import controller_reference, labels_of
from trainer.kube.resource import SERVICES

NAME = "scrape"
WITH_METRICS = kube.Selection(label_selector="metrics-port")
SERVICE_MONITORS = kube.Resource("monitoring.coreos.com", "v1", "servicemonitors", "ServiceMonitor")


class Scrape:
    def __init__(self, manager: kube.Manager) -> None:
        self.client = manager.client
        self.services = manager.informer(SERVICES, WITH_METRICS).lister
        self.monitors = manager.informer(SERVICE_MONITORS, optional=True)
        controller = kube.Controller(NAME, manager, self.reconcile)
        controller.reconciles(SERVICES, selection=WITH_METRICS).owns(SERVICE_MONITORS, optional=True)
        controller.watches_source(kube.Availability(self.monitors, self.services.keys))

    async def reconcile(self, key: kube.ObjectKey) -> None:
        service = self.services.get(key)
        if service is None or not self.monitors.is_served:
            return
        labels = labels_of(service)
        spec = {"selector": {"matchLabels": labels}, "endpoints": [{"port": labels["metrics-port"]}]}
        present = self.monitors.lister.get(key)
        if present is not None and present["spec"] == spec:
            return
        metadata = {"name": key.name, "namespace": key.namespace, "ownerReferences": [controller_reference(service)]}
        wanted = {"apiVersion": SERVICE_MONITORS.api_version, "kind": SERVICE_MONITORS.kind, "metadata": metadata}
        await self.client.apply(SERVICE_MONITORS, wanted | {"spec": spec}, field_manager=NAME, force=True)
