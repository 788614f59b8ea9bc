"""Probes as real containers answer them, in every pod network."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID

from packages.devcluster.tests.kubelet.fakes import OpenRunner, PodRunner, make_pod, shell, terminated
from packages.devcluster.tests.kubelet.modes import every_mode, simplest_isolated_mode, simplest_mode
from trainer.kube.objects import Object

SERVER = """
import http.server, os, sys
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200 if self.path == "/ready" and self.headers["A"] == "b" else 503)
        self.end_headers()
server = http.server.HTTPServer((os.environ["ADDRESS"], 0), Handler)
print(server.server_port, flush=True)
open("port", "w").write(str(server.server_port))
server.serve_forever()
"""
ADDRESS = {"name": "ADDRESS", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}}


def is_ready(runner: PodRunner) -> bool:
    statuses = runner.api.status("pod").get("containerStatuses") or [{}]
    return bool(statuses[0].get("ready"))


def conditions(runner: PodRunner) -> dict[str, str]:
    entries = runner.api.status("pod")["conditions"]
    return {entry["type"]: entry["status"] for entry in entries if entry["type"] in ("Ready", "ContainersReady")}


def complaints(runner: PodRunner) -> list[str]:
    return [message for kind, reason, message in runner.api.events if (kind, reason) == ("Warning", "Unhealthy")]


def probing(port: int, *, http: Object | None = None, **fields: Any) -> Object:
    action: Object = {"httpGet": {"port": port, **http}} if http is not None else {"tcpSocket": {"port": port}}
    return {"readinessProbe": {**action, "periodSeconds": 0.05, **fields}}


def serving(port: int) -> str:
    """A program that listens at the pod's address."""
    script = SERVER.replace(", 0)", f", {port})")
    return f"exec python -c '{script}'"


def once_there(file: Path, script: str) -> str:
    """A program that begins when the test has made a file."""
    return f"until test -e {file}; do sleep 0.02; done; {script}"


@every_mode
async def test_tcp(open_runner: OpenRunner, mode: str, tmp_path: Path) -> None:
    """A pod is ready as soon as its port takes connections; the probe comes from the network of the pod."""
    begin = tmp_path / "begin"
    pod = make_pod("pod", shell(once_there(begin, serving(29471)), env=[ADDRESS], **probing(29471)))
    async with open_runner(mode) as runner, runner.run(pod):
        await runner.api.wait_until(lambda: bool(complaints(runner)))
        status = runner.api.status("pod")
        assert (status["phase"], is_ready(runner)) == ("Running", False)
        assert conditions(runner) == {"Ready": "False", "ContainersReady": "False"}
        refused = f"Readiness probe failed: dial tcp {status['podIP']}:29471: connect: connection refused"
        assert complaints(runner)[0] == refused
        begin.touch()
        await runner.api.wait_until(lambda: is_ready(runner))
        assert conditions(runner) == {"Ready": "True", "ContainersReady": "True"}


@simplest_mode
async def test_http(open_runner: OpenRunner, mode: str) -> None:
    """Path and headers are those of the probe; any answer below 400 will do."""
    http = {"path": "/ready", "httpHeaders": [{"name": "a", "value": "b"}]}
    pod = make_pod("pod", shell(serving(29472), env=[ADDRESS], **probing(29472, http=http)))
    async with open_runner(mode) as runner, runner.run(pod):
        await runner.api.wait_until(lambda: is_ready(runner))


@simplest_mode
async def test_http_status(open_runner: OpenRunner, mode: str) -> None:
    """A server that answers with an error is not ready."""
    pod = make_pod("pod", shell(serving(29473), env=[ADDRESS], **probing(29473, http={"path": "/other"})))
    async with open_runner(mode) as runner, runner.run(pod):
        reported = "Readiness probe failed: HTTP probe failed with statuscode: 503"
        await runner.api.wait_until(lambda: reported in complaints(runner))


SECURE_SERVER = """
import http.server, ssl
server = http.server.HTTPServer(("127.0.0.1", 29475), http.server.SimpleHTTPRequestHandler)
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain("server.pem")
server.socket = context.wrap_socket(server.socket, server_side=True)
server.serve_forever()
"""


@pytest.fixture(scope="module")
def certificate() -> str:
    """A certificate that nobody trusts, and its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "nobody")])
    now = datetime.now(UTC)
    builder = x509.CertificateBuilder(name, name, key.public_key(), 1, now, now + timedelta(days=1))
    texts = (
        builder.sign(key, SHA256()).public_bytes(Encoding.PEM),
        key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()),
    )
    return b"".join(texts).decode()


@simplest_mode
async def test_https(open_runner: OpenRunner, mode: str, certificate: str) -> None:
    """The certificate of the server is not verified, as in Kubernetes."""
    http = {"path": "/", "scheme": "HTTPS", "host": "127.0.0.1"}
    script = f"echo '{certificate}' > server.pem; exec python -c '{SECURE_SERVER}'"
    pod = make_pod("pod", shell(script, **probing(29475, http=http)))
    async with open_runner(mode) as runner, runner.run(pod):
        await runner.api.wait_until(lambda: is_ready(runner))


@simplest_mode
async def test_http_of_something_else(open_runner: OpenRunner, mode: str) -> None:
    """A server that speaks another protocol is not ready."""
    script = (
        'import socket; s = socket.create_server(("127.0.0.1", 29474))\nwhile True: s.accept()[0].send(b"SSH-2.0\\n")'
    )
    pod = make_pod("pod", shell(f"exec python -c '{script}'", **probing(29474, http={})))
    async with open_runner(mode) as runner, runner.run(pod):
        problem = 'net/http: HTTP/1.x transport connection broken: malformed HTTP response "SSH-2.0"'
        reported = f'Readiness probe failed: Get "http://127.0.0.1:29474/": {problem}'
        await runner.api.wait_until(lambda: reported in complaints(runner))


def commanding(script: str, **fields: Any) -> Object:
    return {"readinessProbe": {"exec": {"command": ["sh", "-c", script]}, "periodSeconds": 0.05, **fields}}


@simplest_isolated_mode
async def test_exec(open_runner: OpenRunner, mode: str, tmp_path: Path) -> None:
    """A command sees files, processes, variables and working directory of the container."""
    check = 'test "$NAME" = value && test -e /probe-volume/made && test "$PWD" = /probe-volume && kill -0 $(cat pid)'
    begin = tmp_path / "begin"
    container = shell(
        once_there(begin, "echo $$$$ > pid; touch made; exec sleep 60"),
        env=[{"name": "NAME", "value": "value"}],
        workingDir="/probe-volume",
        volumeMounts=[{"name": "v", "mountPath": "/probe-volume"}],
        **commanding(check),
    )
    async with (
        open_runner(mode) as runner,
        runner.run(make_pod("pod", container, volumes=[{"name": "v", "emptyDir": {}}])),
    ):
        await runner.api.wait_until(lambda: bool(complaints(runner)))
        begin.touch()
        await runner.api.wait_until(lambda: is_ready(runner))


@simplest_mode
async def test_exec_tells_what_it_prints(open_runner: OpenRunner, mode: str) -> None:
    """The event has the output of the command, which may be none."""
    container = shell("sleep 60", **commanding("echo out; echo err >&2; exit 3"))
    silent = shell("sleep 60", "silent", **commanding("exit 4"))
    async with open_runner(mode) as runner, runner.run(make_pod("pod", container, silent)):
        expected = {
            "Readiness probe failed: out\nerr\n",
            "Readiness probe failed: ",
        }
        await runner.api.wait_until(lambda: expected <= set(complaints(runner)))


@simplest_isolated_mode
async def test_exec_that_hangs(open_runner: OpenRunner, mode: str) -> None:
    """It is killed when its time is over."""
    pod = make_pod("pod", shell("sleep 60", **commanding("sleep 60", timeoutSeconds=0.1)))
    async with open_runner(mode) as runner, runner.run(pod):
        reported = 'Readiness probe failed: command timed out: "sh -c sleep 60" timed out after 0.1s'
        await runner.api.wait_until(lambda: reported in complaints(runner))


@simplest_mode
async def test_exec_of_nothing(open_runner: OpenRunner, mode: str) -> None:
    """A command that does not exist says nothing about the container, so a liveness probe does not end it."""
    probe = {"exec": {"command": ["no-such-program"]}, "periodSeconds": 0.05}
    async with open_runner(mode) as runner, runner.run(make_pod("pod", shell("sleep 60", livenessProbe=probe))):
        problem = 'exec: "no-such-program": executable file not found in $PATH'
        reported = f"Liveness probe errored and resulted in unknown state: {problem}"
        await runner.api.wait_until(lambda: complaints(runner).count(reported) > 3)
        assert runner.api.status("pod")["phase"] == "Running"


@simplest_isolated_mode
async def test_pod_ends_while_it_is_probed(open_runner: OpenRunner, mode: str) -> None:
    """Its exit code is reported although a probe is under way."""
    pod = make_pod("pod", shell("sleep 0.2; exit 3", **commanding("sleep 60", timeoutSeconds=60)))
    async with open_runner(mode) as runner:
        status = await runner.run_to_end(pod)
        assert (status["phase"], terminated(status)["exitCode"]) == ("Failed", 3)


@pytest.mark.root
async def test_unreachable_port(open_runner: OpenRunner) -> None:
    """A connection that nobody answers counts as failed when its time is over."""
    probe = {"tcpSocket": {"port": 1, "host": "10.88.255.254"}, "timeoutSeconds": 0.1, "periodSeconds": 0.05}
    async with open_runner("netns") as runner, runner.run(make_pod("pod", shell("sleep 60", readinessProbe=probe))):
        reported = "Readiness probe failed: dial tcp 10.88.255.254:1: i/o timeout"
        await runner.api.wait_until(lambda: reported in complaints(runner))
