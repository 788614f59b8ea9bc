"""Images and the chart in a registry of this machine: what is pushed, what is left alone, and what is refused."""

from __future__ import annotations

import http.client
import importlib.util
import json
import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from hack.oci.listing import listed, write_list
from hack.publish.__main__ import main
from hack.publish.chart import pack
from hack.publish.platforms import join
from hack.publish.programs import PublishError
from hack.publish.registry import Registry, recorded
from tests.hack.oci.images import image, platforms
from tests.prometheus import poll

CHART = Path(__file__).parents[3] / "charts" / "kubeflow-trainer"
PROGRAM = shutil.which("docker-registry")
needs_registry = pytest.mark.skipif(
    PROGRAM is None or shutil.which("skopeo") is None, reason="needs the Debian packages docker-registry and skopeo"
)
needs_helm = pytest.mark.skipif(importlib.util.find_spec("helm_python") is None, reason="needs helm-python-sdk")


LIST = "published.json"
PASSWORD = "secret"
HASH = "$2b$05$5dSJ0t3zDNUC6mWCG8rvROyqhB4PylMGZJo.3SyyUB1jDp272dBzm"


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A registry on a port of this machine that wants a password, and a folder in it."""
    assert PROGRAM is not None
    directory = tmp_path_factory.mktemp("registry")
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    (directory / "htpasswd").write_text(f"robot:{HASH}\n", encoding="utf-8")
    configuration = {
        "version": "0.1",
        "storage": {"filesystem": {"rootdirectory": str(directory / "blobs")}},
        "http": {"addr": f"127.0.0.1:{port}"},
        "auth": {"htpasswd": {"realm": "publishing", "path": str(directory / "htpasswd")}},
    }
    (directory / "config.yml").write_text(json.dumps(configuration), encoding="utf-8")
    with (directory / "log").open("wb") as log:
        process = subprocess.Popen([PROGRAM, "serve", str(directory / "config.yml")], stdout=log, stderr=log)
    try:
        poll(lambda: answers(port), f"the registry answers; its log is {directory / 'log'}")
        yield f"127.0.0.1:{port}/owner"
    finally:
        process.terminate()
        process.wait()


def answers(port: int) -> bool:
    """Whether it wants a password of us."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
    try:
        connection.request("GET", "/v2/")
        return connection.getresponse().status == 401
    except ConnectionRefusedError:
        return False
    finally:
        connection.close()


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str, request: pytest.FixtureRequest) -> Path:
    """Images for two platforms; credentials, and a folder of the registry that no other test uses."""
    monkeypatch.setenv("REGISTRY", f"{place}/{request.node.name.replace('_', '-')}")
    monkeypatch.setenv("REGISTRY_USERNAME", "robot")
    monkeypatch.setenv("REGISTRY_PASSWORD", PASSWORD)
    for name in ("HOME", "DOCKER_CONFIG", "XDG_RUNTIME_DIR", "XDG_CONFIG_HOME"):
        monkeypatch.setenv(name, str(tmp_path / name))
    assert main(["login"]) == 0
    joined = platforms(tmp_path / "images", "amd64", "arm64")
    join(joined)
    return joined


def push(folder: Path) -> int:
    """Push the images of a folder, with the list beside them."""
    return main(["push", str(folder / LIST), str(folder)])


def manifest(reference: str) -> bytes:
    credentials = f"--creds=robot:{PASSWORD}"
    command = ["skopeo", "inspect", "--raw", "--tls-verify=false", credentials, f"docker://{reference}"]
    return subprocess.run(command, check=True, capture_output=True).stdout


@needs_registry
def test_push(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The registry has all platforms under the digest that was known before; a second push finds it there."""
    assert push(folder) == 0
    (pushed,) = recorded(folder / LIST)
    (built,) = listed(folder)
    assert (pushed.digest, pushed.platforms) == (built.digest, built.platforms)
    assert pushed.reference == f"{os.environ['REGISTRY']}/trainer-operator:9.8.7"
    entries = json.loads(manifest(pushed.reference))["manifests"]
    assert {entry["platform"]["architecture"] for entry in entries} == {"amd64", "arm64"}
    for _, digest in pushed.platforms:
        assert json.loads(manifest(f"{pushed.name}@{digest}"))["layers"]
    capsys.readouterr()
    assert push(folder) == 0
    assert "skopeo copy" not in capsys.readouterr().err
    assert recorded(folder / LIST) == (pushed,)
    assert main(["subjects", str(folder / LIST)]) == 0
    assert capsys.readouterr().out == f"{built.digest[7:]}  {os.environ['REGISTRY']}/trainer-operator\n"


@needs_registry
def test_a_version_is_published_once(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A tag that names another image is left as it is, with both digests in the message."""
    assert push(folder) == 0
    before = manifest(recorded(folder / LIST)[0].reference)
    other = tmp_path / "other"
    write_list([image(other, "trainer-operator", "amd64", "changed")], other)
    assert push(other) == 1
    said = capsys.readouterr().err
    assert recorded(folder / LIST)[0].digest in said
    assert listed(other)[0].digest in said
    assert "set the next one" in said
    assert manifest(recorded(folder / LIST)[0].reference) == before


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Runs Python in a process of its own: Helm brings Go's runtime with it."""
    command = [sys.executable, *arguments]
    return subprocess.run(command, cwd=CHART.parents[1], capture_output=True, text=True, check=False)


@needs_registry
@needs_helm
def test_chart(folder: Path, tmp_path: Path) -> None:
    """Helm pulls what was pushed, byte by byte; the digest follows from the chart alone."""
    packaging = "import sys, helm_python; print(helm_python.package(sys.argv[1], destination=sys.argv[2]))"
    package = Path(run("-c", packaging, str(CHART), str(tmp_path)).stdout.strip())
    packed = pack(package, tmp_path / "chart")
    assert pack(package, tmp_path / "again").digest == packed.digest
    write_list([packed], tmp_path / "chart")
    assert push(tmp_path / "chart") == 0
    (pushed,) = recorded(tmp_path / "chart" / LIST)
    assert (pushed.name, pushed.digest) == (f"{os.environ['REGISTRY']}/charts/kubeflow-trainer", packed.digest)
    pulling = "import sys, helm_python as helm; helm.pull(sys.argv[1], destination=sys.argv[2], plain_http=True)"
    pulled = tmp_path / "pulled"
    pulled.mkdir()
    done = run("-c", pulling, f"oci://{pushed.reference}", str(pulled))
    assert done.returncode == 0, done.stderr
    assert [path.read_bytes() for path in pulled.glob("*.tgz")] == [package.read_bytes()]


@needs_registry
@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        pytest.param("REGISTRY_PASSWORD", "wrong", "skopeo login ended with exit code 1", id="wrong-password"),
        pytest.param("REGISTRY_PASSWORD", "", "the variable REGISTRY_PASSWORD is not set", id="no-password"),
        pytest.param("REGISTRY_USERNAME", "", "the variable REGISTRY_USERNAME is not set", id="no-name"),
    ],
)
def test_credentials_that_are_refused(
    name: str, value: str, said: str, folder: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """The password is read from a variable, and never shown."""
    monkeypatch.setenv(name, value)
    assert main(["login"]) == 1
    output = "".join(capfd.readouterr())
    assert said in output
    assert PASSWORD not in output


@needs_registry
def test_without_credentials(folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """An image that may not be seen is not taken for one that is missing."""
    monkeypatch.setenv("DOCKER_CONFIG", str(folder / "nothing"))
    monkeypatch.setenv("HOME", str(folder / "nothing"))
    assert push(folder) == 1
    said = capsys.readouterr().err
    assert "cannot be looked up" in said
    assert "make registry-login" in said


@needs_registry
def test_a_registry_that_does_not_answer(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """That is no missing image: nothing is pushed, and the message says what the registry said."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    monkeypatch.setenv("REGISTRY", f"127.0.0.1:{port}/owner")
    assert push(folder) == 1
    said = capsys.readouterr().err
    assert "cannot be looked up" in said
    assert "connection refused" in said


@pytest.mark.parametrize("place", ["", "registry.example.com", "https://ghcr.io/owner", "ghcr.io/owner/", "/owner"])
def test_no_registry(place: str) -> None:
    """What is no registry is refused before anything is sent to it, the placeholder of the documentation included."""
    with pytest.raises(PublishError, match=r"REGISTRY=HOST/OWNER"):
        Registry(place)
