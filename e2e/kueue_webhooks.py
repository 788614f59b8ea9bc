"""The mutating webhook of Kueue, in one namespace: what it changes of TrainJobs of v1alpha1 and of JobSets."""

from __future__ import annotations

import base64
import json
import ssl
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import TYPE_CHECKING, Any

import yaml

from trainer.keyring import CA_CERTIFICATES, CERTIFICATE, KEY
from trainer.keyring.keyring import new_keyring

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from e2e.kubectl import Kubectl

    Object = dict[str, Any]

HOST = "127.0.0.1"
MANAGER = "kueue.x-k8s.io/manager"
QUEUE = "kueue.x-k8s.io/queue-name"
FLEET = "fleet"
"""The queue whose TrainJobs MultiKueue sends to other clusters."""
DEFAULT_MANAGER = "trainer.kubeflow.org/trainjob-controller"
MULTIKUEUE = "kueue.x-k8s.io/multikueue"
PARENT = ("trainer.kubeflow.org/v1alpha1", "TrainJob")
"""Owners whose JobSets are none of its business, where it manages TrainJobs."""
_RULES = [("trainer.kubeflow.org", "v1alpha1", "trainjobs"), ("jobset.x-k8s.io", "v1alpha2", "jobsets")]


@contextmanager
def webhooks(kubectl: Kubectl, directory: Path, *, manages_train_jobs: bool) -> Iterator[None]:
    """Have the API server call it for what is created in the namespace.

    Args:
        kubectl: of an administrator.
        directory: where its key goes.
        manages_train_jobs: whether its integration of TrainJobs is on; that of JobSets is, without a queue as well.
    """
    now, life = datetime.now(UTC), timedelta(days=1)
    keyring = new_keyring("kueue", life, [HOST], life, now).to_data()
    pair = directory / "pair.pem"
    pair.write_bytes(keyring[CERTIFICATE] + keyring[KEY])
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(pair)
    server = _Server((HOST, 0), _Handler)
    server.manages_train_jobs = manages_train_jobs
    server.socket = context.wrap_socket(server.socket, server_side=True)
    thread = Thread(target=server.serve_forever)
    thread.start()
    bundle = base64.b64encode(keyring[CA_CERTIFICATES]).decode()
    kubectl.kubectl("apply", "-f", "-", stdin=yaml.safe_dump(_configuration(kubectl.namespace, server, bundle)))
    try:
        yield
    finally:
        kubectl.kubectl("delete", "mutatingwebhookconfiguration", f"kueue-{kubectl.namespace}")
        server.shutdown()
        thread.join()
        server.server_close()


def _configuration(namespace: str, server: _Server, bundle: str) -> Object:
    rules = [
        {"apiGroups": [group], "apiVersions": [version], "resources": [resource], "operations": ["CREATE"]}
        for group, version, resource in _RULES
    ]
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "MutatingWebhookConfiguration",
        "metadata": {"name": f"kueue-{namespace}"},
        "webhooks": [
            {
                "name": "mtrainjob.kb.io",
                "admissionReviewVersions": ["v1"],
                "sideEffects": "None",
                "clientConfig": {"url": f"https://{HOST}:{server.server_port}/", "caBundle": bundle},
                "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": namespace}},
                "rules": rules,
            }
        ],
    }


class _Server(ThreadingHTTPServer):
    manages_train_jobs: bool


class _Handler(BaseHTTPRequestHandler):
    server: _Server

    def do_POST(self) -> None:
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["request"]
        changes = [{"op": "add", "path": path, "value": value} for path, value in self._changes(request["object"])]
        patch = base64.b64encode(json.dumps(changes).encode()).decode()
        response = {"uid": request["uid"], "allowed": True, "patchType": "JSONPatch", "patch": patch}
        review = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response}
        body = json.dumps(review).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - its name in the library
        """Say nothing."""

    def _changes(self, obj: Object) -> Iterator[tuple[str, Any]]:
        """Paths and their new values."""
        if obj["kind"] == "JobSet":
            owners = {(each["apiVersion"], each["kind"]) for each in obj["metadata"].get("ownerReferences") or []}
            if not (self.server.manages_train_jobs and PARENT in owners):
                yield "/spec/suspend", True
            return
        queue = (obj["metadata"].get("labels") or {}).get(QUEUE)
        if queue is None or not self.server.manages_train_jobs:
            return
        yield "/spec/suspend", True
        entry = {"manager": MANAGER, "trainingRuntimeSpec": {"template": {"spec": {}}}}
        yield "/spec/runtimePatches", [*(obj["spec"].get("runtimePatches") or []), entry]
        if queue == FLEET and obj["spec"].get("managedBy") in (None, DEFAULT_MANAGER):
            yield "/spec/managedBy", MULTIKUEUE
