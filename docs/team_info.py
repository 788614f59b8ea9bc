"""A controller that gives every namespace with a `team` label a ConfigMap that names the team."""

from trainer import kube
from trainer.kube.objects import controller_reference, labels_of
from trainer.kube.resource import CONFIG_MAPS, NAMESPACES

NAME = "team-info"
LABELS = {"app.kubernetes.io/managed-by": NAME}
WITH_TEAM = kube.Selection(label_selector="team")
OURS = kube.Selection(label_selector=f"app.kubernetes.io/managed-by={NAME}")


class TeamInfo:
    def __init__(self, manager: kube.Manager) -> None:
        self.client = manager.client
        self.namespaces = manager.informer(NAMESPACES, WITH_TEAM).lister
        self.config_maps = manager.informer(CONFIG_MAPS, OURS).lister
        self.events = kube.EventRecorder(manager.events, NAME)
        controller = kube.Controller(NAME, manager, self.reconcile, max_concurrent_reconciles=5)
        controller.reconciles(NAMESPACES, selection=WITH_TEAM).owns(CONFIG_MAPS, selection=OURS)

    async def reconcile(self, key: kube.ObjectKey) -> None:
        namespace = self.namespaces.get(key)
        present = self.config_maps.get(kube.ObjectKey(key.name, NAME))
        if namespace is None:  # it is gone, or its label
            if present is not None:
                await self.client.delete(CONFIG_MAPS, NAME, key.name)
            return
        data = {"team": labels_of(namespace)["team"]}
        if present is not None and (present.get("data") or {}).get("team") == data["team"]:
            return
        owners = [controller_reference(namespace)]
        metadata = {"name": NAME, "namespace": key.name, "labels": LABELS, "ownerReferences": owners}
        wanted = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}
        await self.client.apply(CONFIG_MAPS, wanted, field_manager=NAME, force=True)
        self.events.record(namespace, type="Normal", reason="TeamInfoWritten", message=f"the team is {data['team']}")


async def main() -> int:
    kube.configure_logging()
    metrics = kube.Metrics()
    async with kube.connect(metrics=metrics) as client:
        manager = kube.Manager(client, metrics=metrics)
        kube.MetricsServer(manager, kube.MetricsServerOptions(host="127.0.0.1", port=8443))
        TeamInfo(manager)
        await manager.run()
    return 0


if __name__ == "__main__":
    raise SystemExit(kube.run_until_signal(main, second_kills=True))
