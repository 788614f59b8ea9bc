"""An admission webhook that refuses namespaces of teams that there are not."""

from trainer import kube
from trainer.kube.field_errors import not_supported
from trainer.kube.objects import labels_of

NAME = "team-names"
NAMESPACE = "team-system"
TEAMS = ("blue", "red")


async def check_team(request: kube.AdmissionRequest) -> kube.AdmissionResponse:
    team = labels_of(request.object or {}).get("team")
    if team is None:
        return kube.AdmissionResponse.allow(["without the label team nobody looks after this namespace"])
    if team not in TEAMS:
        return kube.AdmissionResponse.deny([not_supported("metadata.labels.team", team, TEAMS)])
    return kube.AdmissionResponse.allow()


def add_webhook(manager: kube.Manager, options: kube.WebhookServerOptions | None = None) -> kube.WebhookServer:
    certificates = kube.CertificateRotator(
        manager.api_reader,
        kube.ObjectKey(NAMESPACE, NAME),
        dns_names=kube.service_names(NAME, NAMESPACE),
        clock=manager.clock,
    )
    kube.CaInjector(manager, certificates, validating=[NAME])
    server = kube.WebhookServer(manager, certificates=certificates, options=options)
    server.register("/check-team", "team-names.example.com", check_team)
    return server


async def main() -> int:
    kube.configure_logging()
    async with kube.connect() as client:
        manager = kube.Manager(client, options=kube.ManagerOptions(health_bind=("", 8081)))
        add_webhook(manager)
        await manager.run()
    return 0


if __name__ == "__main__":
    raise SystemExit(kube.run_until_signal(main, second_kills=True))
