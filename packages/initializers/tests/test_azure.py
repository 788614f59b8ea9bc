from __future__ import annotations

import base64
import random
import subprocess
import sys
from collections.abc import Iterator

import pytest

from packages.initializers.tests.azure import KEY, NODE, PROGRAM, AzureServer, run_azure_server, signature
from packages.initializers.tests.conftest import Initializer
from trainer_initializers.errors import UnavailableSourceError
from trainer_initializers.object_store import open_azure
from trainer_initializers.options import read_options
from trainer_initializers.parts import PART_SIZE

pytestmark = [
    pytest.mark.skipif(NODE is None, reason="Node is not installed, which runs Azurite"),
    pytest.mark.skipif(not PROGRAM.is_file(), reason="Azurite is not installed: make .venv/.azurite"),
]

BIG = random.Random(7).randbytes(PART_SIZE + 4321)
FILES = {"set/a.json": b"{}", "set/data/b.bin": BIG, "set/data/c.tmp": b"", "set/x y%20é.txt": b"name", "other": b"o"}
WRONG_KEY = base64.b64encode(b"wrong" * 13).decode()


@pytest.fixture(scope="module")
def started() -> Iterator[AzureServer]:
    yield from run_azure_server()


@pytest.fixture
def azure(started: AzureServer, initializer: Initializer) -> AzureServer:
    started.clear()
    initializer.environ |= started.environ
    return started


def run(initializer: Initializer, uri: str, command: str = "dataset", **environ: str) -> int:
    """The exit code of the program, which prints no secret."""
    with start(initializer, uri, command, **environ) as process:
        output, _ = process.communicate(timeout=60)
    for secret in (KEY, WRONG_KEY):
        assert secret not in output + initializer.message
    return process.returncode


def start(initializer: Initializer, uri: str, command: str = "dataset", **environ: str) -> subprocess.Popen[str]:
    """The program in a process of its own: obstore reads the variables of Azure from the process."""
    variables = {name: value for name, value in initializer.variables(uri, **environ).items() if value}
    program = [sys.executable, "-m", "trainer_initializers", command]
    return subprocess.Popen(program, env=variables, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)


@pytest.mark.parametrize(
    ("uri", "environ", "names"),
    [
        pytest.param("az://bucket/set", {}, ["a.json", "data/b.bin", "data/c.tmp", "x y%20é.txt"], id="prefix"),
        pytest.param("az://bucket/other", {}, ["other"], id="one blob"),
    ],
)
def test_fetch(
    initializer: Initializer, azure: AzureServer, uri: str, environ: dict[str, str], names: list[str]
) -> None:
    """The blobs below a prefix become files below the target."""
    for key, content in FILES.items():
        azure.put(key, content)
    assert run(initializer, uri, **environ) == 0, initializer.message
    base = uri.removeprefix("az://bucket/").rstrip("/").removesuffix("/*.bin")
    assert initializer.fetched() == {name: FILES.get(f"{base}/{name}", FILES["other"]) for name in sorted(names)}


def test_shared_access_signature(initializer: Initializer, azure: AzureServer) -> None:
    """A signature that may list and read takes the place of the key."""
    azure.put("set/a.json", b"{}")
    signed = {"AZURE_STORAGE_ACCOUNT_KEY": "", "AZURE_STORAGE_SAS_KEY": signature("rl")}
    assert run(initializer, "az://bucket/set", **signed) == 0, initializer.message
    assert initializer.fetched() == {"a.json": b"{}"}


def test_replaced_blob(azure: AzureServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two versions of a blob are never mixed, although lists of Azure have ETags without quotes."""
    for name, value in azure.environ.items():
        monkeypatch.setenv(name, value)
    azure.put("set/a.bin", b"old")
    store = open_azure(read_options("dataset", {"STORAGE_URI": "az://bucket/set", **azure.environ}))
    (file,) = store.files()
    assert b"".join(store.read(file, 0, 3)) == b"old"
    azure.put("set/a.bin", b"new")
    with pytest.raises(UnavailableSourceError, match="has changed while it was fetched: start again"):
        list(store.read(file, 0, 3))


def test_export_can_be_fetched(initializer: Initializer, azure: AzureServer) -> None:
    """An export writes new and changed files, large ones in blocks, and can be fetched with its checksums."""
    initializer.target.mkdir(parents=True)
    for name, content in {"adapter.safetensors": BIG, "config.json": b"{}"}.items():
        (initializer.target / name).write_bytes(content)
    assert run(initializer, "az://bucket/out/run", "export") == 0, initializer.message
    before = azure.versions()
    assert run(initializer, "az://bucket/out/run", "export") == 0, initializer.message
    assert azure.versions() == before
    (initializer.target / "config.json").write_bytes(b"[]")
    assert run(initializer, "az://bucket/out/run", "export") == 0, initializer.message
    assert azure.objects() == {"out/run/adapter.safetensors": BIG, "out/run/config.json": b"[]"}
    assert azure.versions()["out/run/adapter.safetensors"] == before["out/run/adapter.safetensors"]
    (initializer.target / "config.json").unlink()
    (initializer.target / "adapter.safetensors").unlink()
    assert run(initializer, "az://bucket/out/run") == 0, initializer.message
    assert initializer.fetched() == {"adapter.safetensors": BIG, "config.json": b"[]"}


@pytest.mark.parametrize(
    ("uri", "environ", "message"),
    [
        pytest.param("az://absent/x", {}, "there is no such container: check storageUri", id="no container"),
        pytest.param("az://bucket/absent", {}, "does not exist (404): check storageUri", id="nothing there"),
        pytest.param("az:///x", {}, "names no bucket: write az://bucket/prefix", id="no name"),
        pytest.param("az://bucket/x", {"AZURE_STORAGE_ACCOUNT_NAME": ""}, "ACCOUNT_NAME is not set", id="no account"),
        pytest.param(
            "az://bucket/x",
            {"AZURE_STORAGE_ACCOUNT_KEY": WRONG_KEY},
            "access is refused (AuthorizationFailure): grant it, or give AZURE_STORAGE_ACCOUNT_KEY",
            id="403",
        ),
        pytest.param(
            "az://bucket/x",
            {"AZURE_STORAGE_ACCOUNT_KEY": "", "AZURE_STORAGE_SAS_KEY": signature("w")},
            "access is refused (AuthorizationPermissionMismatch): grant it",
            id="403 of a signature",
        ),
        pytest.param(
            "az://bucket/x",
            {"AZURE_STORAGE_ACCOUNT_KEY": "", "AZURE_SKIP_SIGNATURE": "true"},
            "access is refused (AuthorizationFailure): grant it, or give AZURE_STORAGE_ACCOUNT_KEY",
            id="not public",
        ),
        pytest.param(
            "az://bucket/x", {"AZURE_STORAGE_ACCOUNT_KEY": "no key"}, "give AZURE_STORAGE_ACCOUNT_KEY", id="no base64"
        ),
    ],
)
def test_bad_source(
    initializer: Initializer, azure: AzureServer, uri: str, environ: dict[str, str], message: str
) -> None:
    """The termination message says what is wrong with the container, and what to do."""
    azure.put("y", b"")
    assert run(initializer, uri, **environ) == 2
    assert message in initializer.message
    assert len(initializer.message.splitlines()) == 1
    assert "Debug source" not in initializer.message


def test_no_credentials(initializer: Initializer, azure: AzureServer) -> None:
    """Without a key and without the identity of a pod the message says which variables to give."""
    # Where obstore asks for a managed identity: nobody answers there.
    environ = {"AZURE_STORAGE_ACCOUNT_KEY": "", "IDENTITY_ENDPOINT": f"{azure.url}/absent"}
    assert run(initializer, "az://bucket/x", **environ) == 2
    assert "there are no credentials: give AZURE_STORAGE_ACCOUNT_KEY by secretRef" in initializer.message
