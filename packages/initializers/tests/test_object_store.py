from __future__ import annotations

import random
from collections.abc import Iterator

import pytest

from packages.initializers.tests.conftest import Initializer
from packages.initializers.tests.s3 import S3Server, run_s3_server
from packages.initializers.tests.servers import AnswerFault, RangeServer
from packages.initializers.tests.servers.s3_server import LIBRARIES
from trainer_initializers.index import FileIndex
from trainer_initializers.parts import PART_SIZE
from trainer_initializers.shared_directory import SharedDirectory

pytestmark = pytest.mark.skipif(not LIBRARIES.is_dir(), reason="moto is not installed: make .venv/.s3-server")

BIG = random.Random(9).randbytes(PART_SIZE + 4321)
FILES = {"set/a.json": b"{}", "set/data/b.bin": BIG, "set/data/c.tmp": b"", "set/x y%20é.txt": b"name", "other": b"o"}


@pytest.fixture(scope="module")
def started(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3Server]:
    yield from run_s3_server(tmp_path_factory.mktemp("bucket"))


@pytest.fixture
def s3(started: S3Server) -> S3Server:
    started.clear()
    for key, content in FILES.items():
        started.put(key, content)
    return started


@pytest.mark.parametrize(
    ("uri", "environ", "names"),
    [
        pytest.param("s3://bucket/set", {}, ["a.json", "data/b.bin", "data/c.tmp", "x y%20é.txt"], id="prefix"),
        pytest.param("s3://bucket/set/", {"IGNORE_PATTERNS": "*.tmp,set/x*"}, ["a.json", "data/b.bin"], id="ignored"),
        pytest.param("s3://bucket/set/data/*.bin", {}, ["b.bin"], id="glob"),
        pytest.param("s3://bucket/other", {}, ["other"], id="one object"),
    ],
)
def test_fetch(initializer: Initializer, s3: S3Server, uri: str, environ: dict[str, str], names: list[str]) -> None:
    """The objects below a prefix become files below the target; patterns fit paths and whole keys."""
    assert initializer.run(uri, **s3.environ, **environ) == 0, initializer.message
    base = uri.removeprefix("s3://bucket/").rstrip("/").removesuffix("/*.bin")
    assert initializer.fetched() == {name: FILES.get(f"{base}/{name}", FILES["other"]) for name in sorted(names)}


def test_google_speaks_the_same(initializer: Initializer, s3: S3Server) -> None:
    """`gs://` reads the XML interface of Google, which lists and serves as S3 does.

    The emulators of Google's storage in Python and Node have the JSON interface only.
    """
    assert initializer.run("gs://bucket/set/data", **google(s3.url)) == 0, initializer.message
    assert initializer.fetched() == {"b.bin": BIG, "c.tmp": b""}


def google(url: str) -> dict[str, str]:
    """Variables with which `gs://` reaches a server."""
    return {"ENDPOINT": url, "ACCESS_TOKEN": "very-secret"}


@pytest.mark.parametrize("scheme", ["s3", "gs"])
def test_export_writes_what_has_changed(initializer: Initializer, s3: S3Server, scheme: str) -> None:
    """An export uploads new and changed files, in parts where they are large, and then the index."""
    uri, initializer.environ = f"{scheme}://bucket/out/run", s3.environ if scheme == "s3" else google(s3.url)
    target = initializer.target
    target.mkdir(parents=True)
    for name, content in {"adapter.safetensors": BIG, "config.json": b"{}"}.items():
        (target / name).write_bytes(content)
    assert initializer.run(uri, "export") == 0, initializer.message
    before = s3.versions()
    assert initializer.run(uri, "export") == 0
    assert s3.versions() == before
    (target / "config.json").write_bytes(b"[]")
    assert initializer.run(uri, "export") == 0
    objects = s3.objects()
    assert {key: objects[key] for key in objects if key.startswith("out/")} == {
        "out/run/adapter.safetensors": BIG,
        "out/run/config.json": b"[]",
    }
    assert s3.versions()["out/run/adapter.safetensors"] == before["out/run/adapter.safetensors"]


def test_export_can_be_fetched(initializer: Initializer, s3: S3Server) -> None:
    """What was exported is fetched with the checksums of its index."""
    initializer.target.mkdir(parents=True)
    (initializer.target / "model.safetensors").write_bytes(BIG)
    assert initializer.run("s3://bucket/out", "export", **s3.environ) == 0
    again = type(initializer)(initializer.directory / "again")
    again.directory.mkdir()
    assert again.run("s3://bucket/out", "model", **s3.environ) == 0, again.message
    assert again.fetched() == {"model.safetensors": BIG}
    index = FileIndex.read(SharedDirectory.open(again.target))
    assert index is not None
    assert str(index.files[0].digest).startswith("sha256:")


@pytest.mark.parametrize(
    ("uri", "environ", "message"),
    [
        pytest.param("s3://absent/x", {}, "there is no such bucket: check storageUri", id="no bucket"),
        pytest.param("s3://bucket/absent", {}, "does not exist (404): check storageUri", id="nothing there"),
        pytest.param("s3:///x", {}, "names no bucket: write s3://bucket/prefix", id="no name"),
        pytest.param("s3://bucket/set", {"SECRET_ACCESS_KEY": ""}, "ACCESS_KEY_ID and SECRET_ACCESS_KEY", id="half"),
        pytest.param("gs://absent/x", {}, "there is no such bucket: check storageUri", id="no bucket at Google"),
        pytest.param("gs://bucket/absent", {}, "does not exist (404): check storageUri", id="nothing at Google"),
        pytest.param(
            "gs://bucket/x", {"GOOGLE_SERVICE_ACCOUNT_KEY": "{"}, "give GOOGLE_SERVICE_ACCOUNT_KEY", id="no JSON"
        ),
        pytest.param("s3://bucket/set", {"ROLE_ARN": "arn:x"}, "needs a token of the pod's service account", id="role"),
    ],
)
def test_bad_source(
    initializer: Initializer,
    s3: S3Server,
    monkeypatch: pytest.MonkeyPatch,
    uri: str,
    environ: dict[str, str],
    message: str,
) -> None:
    """The termination message says what is wrong with the bucket, and what to do."""
    for name, value in environ.items():
        monkeypatch.setenv(name, value)  # obstore reads those of the provider from the process
    assert initializer.run(uri, **{**s3.environ, "ACCESS_TOKEN": "x", **environ}) == 2
    assert message in initializer.message
    assert "test-secret-key" not in initializer.message


@pytest.mark.parametrize(
    ("uri", "status", "message"),
    [
        pytest.param("s3://b/x", 403, "access is refused (403): grant it, or give ACCESS_KEY_ID", id="403"),
        pytest.param("s3://b/x", 401, "access is refused (401): grant it, or give ACCESS_KEY_ID", id="401"),
        pytest.param("s3://b/x", 301, "is in another region: set REGION", id="another region"),
        pytest.param("s3://b/x", 500, "try again later", id="500"),
        pytest.param("gs://b/x", 403, "(403): grant it, or give GOOGLE_SERVICE_ACCOUNT_KEY", id="403 of Google"),
        pytest.param("gs://b/x", 401, "(401): grant it, or give GOOGLE_SERVICE_ACCOUNT_KEY", id="401 of Google"),
        pytest.param("gs://b/x", 503, "try again later", id="503 of Google"),
    ],
)
def test_answers(initializer: Initializer, server: RangeServer, uri: str, status: int, message: str) -> None:
    """Answers of a store that refuses, redirects or fails become one line with the remedy."""
    server.faults.append(AnswerFault(status=status, times=1000))
    environ = {"ACCESS_KEY_ID": "AKIATEST", "SECRET_ACCESS_KEY": "very-secret", **google(server.url)}
    assert initializer.run(uri, **environ) == (1 if status >= 500 else 2)
    assert message in initializer.message, initializer.message
    assert len(initializer.message.splitlines()) == 1
    assert "very-secret" not in initializer.message


def test_no_credentials(initializer: Initializer, server: RangeServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without keys and without the identity of a node the message says which variables to give."""
    monkeypatch.setenv("AWS_METADATA_ENDPOINT", server.url)
    server.faults.append(AnswerFault(status=404, times=1000))
    assert initializer.run("s3://bucket/x", ENDPOINT=server.url) == 2
    assert "there are no credentials: give ACCESS_KEY_ID and SECRET_ACCESS_KEY by secretRef" in initializer.message


def test_no_credentials_of_google(
    initializer: Initializer, server: RangeServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same for `gs://`, whose nodes have an identity, too."""
    monkeypatch.setenv("GCE_METADATA_HOST", server.url.removeprefix("http://"))
    server.faults.append(AnswerFault(status=404, times=1000))
    assert initializer.run("gs://bucket/x", ENDPOINT=server.url) == 2
    assert "there are no credentials: give GOOGLE_SERVICE_ACCOUNT_KEY by secretRef" in initializer.message


def test_account_of_azure(initializer: Initializer) -> None:
    """Azure needs the name of the account."""
    assert initializer.run("az://container/x") == 2
    assert "AZURE_STORAGE_ACCOUNT_NAME is not set" in initializer.message
