"""A mutating webhook of somebody else, which the API server calls for what is created in one namespace."""

from __future__ import annotations

import base64
import json
import ssl
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import yaml

from e2e.kubectl import Kubectl
from trainer.keyring import CA_CERTIFICATES, CERTIFICATE, KEY
from trainer.keyring.keyring import new_keyring

Object = dict[str, Any]
Changes = Callable[[Object], Iterable[tuple[str, Any]]]
"""Paths of an object, as JSON pointers, and their new values."""

HOST = "127.0.0.1"


@contextmanager
def mutating_webhook(
    kubectl: Kubectl, directory: Path, name: str, rules: Sequence[tuple[str, str, str]], changes: Changes
) -> Iterator[None]:
    """Serve it until the context is left.

    Args:
        kubectl: of an administrator, in the namespace.
        directory: where its key goes.
        name: of its configuration, followed by the namespace.
        rules: group, version and resource of what it is called for.
        changes: what it does to an object.
    """
    now, life = datetime.now(UTC), timedelta(days=1)
    keyring = new_keyring(name, life, [HOST], life, now).to_data()
    pair = directory / f"{name}.pem"
    pair.write_bytes(keyring[CERTIFICATE] + keyring[KEY])
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(pair)
    server = _Server((HOST, 0), _Handler)
    server.changes = changes
    server.socket = context.wrap_socket(server.socket, server_side=True)
    thread = Thread(target=server.serve_forever)
    thread.start()
    bundle = base64.b64encode(keyring[CA_CERTIFICATES]).decode()
    configuration = _configuration(f"{name}-{kubectl.namespace}", kubectl.namespace, rules, server, bundle)
    kubectl.kubectl("apply", "-f", "-", stdin=yaml.safe_dump(configuration))
    try:
        yield
    finally:
        kubectl.kubectl("delete", "mutatingwebhookconfiguration", configuration["metadata"]["name"])
        server.shutdown()
        thread.join()
        server.server_close()


def _configuration(
    name: str, namespace: str, rules: Sequence[tuple[str, str, str]], server: _Server, bundle: str
) -> Object:
    called_for = [
        {"apiGroups": [group], "apiVersions": [version], "resources": [resource], "operations": ["CREATE"]}
        for group, version, resource in rules
    ]
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "MutatingWebhookConfiguration",
        "metadata": {"name": name},
        "webhooks": [
            {
                "name": "mutate.example.com",
                "admissionReviewVersions": ["v1"],
                "sideEffects": "None",
                "clientConfig": {"url": f"https://{HOST}:{server.server_port}/", "caBundle": bundle},
                "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": namespace}},
                "rules": called_for,
            }
        ],
    }


class _Server(ThreadingHTTPServer):
    changes: Changes


class _Handler(BaseHTTPRequestHandler):
    server: _Server

    def do_POST(self) -> None:
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["request"]
        found = self.server.changes(request["object"])
        changes = [{"op": "add", "path": path, "value": value} for path, value in found]
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
