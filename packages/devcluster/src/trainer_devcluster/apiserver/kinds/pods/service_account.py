"""Service accounts of new pods: what the ServiceAccount admission plugin does to them.

Kubernetes documentation, "Managing Service Accounts": every pod runs as an account of its namespace, and unless pod or
account decline, each container finds the account's token, the authority of the API server and the name of the
namespace in a projected volume.
"""

from __future__ import annotations

from copy import deepcopy

from trainer.kube.objects import Object, ObjectKey, namespace_of
from trainer.kube.resource import SERVICE_ACCOUNTS
from trainer_devcluster.apiserver.definitions.strategy import WriteContext
from trainer_devcluster.apiserver.kinds.fields import all_containers, dicts, fill, refused
from trainer_devcluster.apiserver.objects.names import generate_name

MOUNT_PATH = "/var/run/secrets/kubernetes.io/serviceaccount"
_VOLUME_PREFIX = "kube-api-access-"
_DEFAULT_ACCOUNT = "default"
_TOKEN_SECONDS = 3607
"""An hour, and seven seconds by which the real server tells these tokens from those that somebody asked for."""
_FILE_MODE = 0o644
_ROOT_CA = "kube-root-ca.crt"


def admit_service_account(pod: Object, context: WriteContext) -> None:
    """Give a new pod its service account and the account's credentials, in place; idempotent.

    Raises:
        ApiError: 403, the account does not exist.
    """
    spec = pod["spec"]
    fill(spec, serviceAccountName=_DEFAULT_ACCOUNT)
    spec["serviceAccount"] = spec["serviceAccountName"]
    account = _account(pod, context)
    if not spec.get("imagePullSecrets") and account.get("imagePullSecrets"):
        spec["imagePullSecrets"] = deepcopy(account["imagePullSecrets"])
    if _wants_token(spec, account):
        _mount_token(spec)


def _account(pod: Object, context: WriteContext) -> Object:
    key = ObjectKey(namespace_of(pod), pod["spec"]["serviceAccountName"])
    account = context.stored(SERVICE_ACCOUNTS, key)
    if account is None:
        message = f'error looking up service account {key}: serviceaccount "{key.name}" not found'
        raise refused(pod, message)
    return account


def _wants_token(spec: Object, account: Object) -> bool:
    for owner in (spec, account):
        if owner.get("automountServiceAccountToken") is not None:
            return bool(owner["automountServiceAccountToken"])
    return True


def _mount_token(spec: Object) -> None:
    volumes = dicts(spec.get("volumes"))
    present = [entry["name"] for entry in volumes if str(entry.get("name") or "").startswith(_VOLUME_PREFIX)]
    name = present[0] if present else generate_name(_VOLUME_PREFIX)
    lacking = [container for container in all_containers(spec) if not _has_token_mount(container)]
    for container in lacking:
        mount = {"name": name, "readOnly": True, "mountPath": MOUNT_PATH}
        container["volumeMounts"] = [*dicts(container.get("volumeMounts")), mount]
    if lacking and not present:
        spec["volumes"] = [*volumes, {"name": name, "projected": _projection()}]


def _has_token_mount(container: Object) -> bool:
    return any(mount.get("mountPath") == MOUNT_PATH for mount in dicts(container.get("volumeMounts")))


def _projection() -> Object:
    namespace = {"path": "namespace", "fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.namespace"}}
    sources = [
        {"serviceAccountToken": {"expirationSeconds": _TOKEN_SECONDS, "path": "token"}},
        {"configMap": {"name": _ROOT_CA, "items": [{"key": "ca.crt", "path": "ca.crt"}]}},
        {"downwardAPI": {"items": [namespace]}},
    ]
    return {"sources": sources, "defaultMode": _FILE_MODE}
