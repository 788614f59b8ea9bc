from __future__ import annotations

import pytest

from packages.initializers.tests.conftest import Initializer
from trainer_initializers.endpoints import endpoint_of
from trainer_initializers.options import read_options

CREDENTIALS = {"ACCESS_KEY_ID": "test", "SECRET_ACCESS_KEY": "test"}


@pytest.mark.parametrize(
    ("environ", "url"),
    [
        pytest.param({}, None, id="none"),
        pytest.param({"ENDPOINT": "https://s3.custom.com"}, "https://s3.custom.com", id="released"),
        pytest.param({"ENDPOINT_URL": "s3.custom.com"}, "https://s3.custom.com", id="KEP-2170"),
        pytest.param({"ENDPOINT_URL": "http://10.0.0.1:9000/"}, "http://10.0.0.1:9000", id="http and slash"),
        pytest.param({"ENDPOINT": "[::1]:9000"}, "https://[::1]:9000", id="IPv6 and port"),
        pytest.param({"ENDPOINT": " s3.custom.com\n"}, "https://s3.custom.com", id="line break"),
        pytest.param({"ENDPOINT": "a.com", "ENDPOINT_URL": "https://a.com"}, "https://a.com", id="both, one server"),
        pytest.param({"OTHER": "a.com"}, "https://a.com", id="of the provider"),
        pytest.param({"OTHER": "a.com", "ENDPOINT_URL": "b.com"}, "https://b.com", id="ours first"),
    ],
)
def test_endpoint(environ: dict[str, str], url: str | None) -> None:
    """Both names count, with a scheme or without one, before the variables of the provider."""
    assert endpoint_of(read_options("dataset", {"STORAGE_URI": "s3://bucket", **environ}), "OTHER") == url


@pytest.mark.parametrize(
    ("value", "message"),
    [
        pytest.param("http://", "names no host", id="no host"),
        pytest.param("ftp://s3.custom.com", "has the scheme ftp", id="scheme"),
        pytest.param("s3.custom.com:99999", "Port out of range", id="port"),
        pytest.param("s3.custom.com:x", "Port could not be cast", id="no port"),
        pytest.param("s3 custom com", "has spaces", id="spaces"),
        pytest.param("https://a\u00e9.com", "or characters that no URL has", id="characters"),
        pytest.param("https://[::1", "Invalid IPv6", id="bracket"),
        pytest.param("https://a.com?x=1", "is more than a server", id="query"),
        pytest.param("https://user:hunter2@a.com", "has a user", id="user"),
    ],
)
@pytest.mark.parametrize(
    ("uri", "name"),
    [
        ("s3://bucket/x", "ENDPOINT"),
        ("s3://bucket/x", "AWS_ENDPOINT_URL"),
        ("gs://bucket/x", "ENDPOINT_URL"),
        ("az://bucket/x", "AZURE_STORAGE_ENDPOINT"),
        ("hf://me/data", "HF_ENDPOINT"),
    ],
)
def test_bad_endpoint(
    initializer: Initializer, capfd: pytest.CaptureFixture[str], uri: str, name: str, value: str, message: str
) -> None:
    """What is no server is one sentence with its variable, is not tried again, and never a traceback of a library."""
    environ = {**CREDENTIALS, "AZURE_STORAGE_ACCOUNT_NAME": "account", name: value}
    assert initializer.run(uri, **environ) == 2
    assert message in initializer.message
    assert initializer.message.startswith(f"dataset: {name}=")
    assert initializer.message.endswith(": write it as s3.example.com or https://s3.example.com:9000")
    assert "hunter2" not in initializer.message
    errors = capfd.readouterr().err
    assert errors == f"error: {initializer.message}\n"


def test_two_servers(initializer: Initializer) -> None:
    """Two variables with two servers are refused."""
    assert initializer.run("s3://bucket/x", ENDPOINT="a.com", ENDPOINT_URL="b.com", **CREDENTIALS) == 2
    assert "ENDPOINT and ENDPOINT_URL name two servers" in initializer.message


@pytest.mark.parametrize(
    ("uri", "environ", "message"),
    [
        pytest.param("s3://b b/x", {}, "has no name of a bucket before its path: 'b b'", id="bucket"),
        pytest.param("gs://b\u00e9/x", {}, "has no name of a bucket", id="bucket of Google"),
        pytest.param("s3://bucket/x", {"REGION": "us east"}, "REGION='us east' is no region", id="region"),
        pytest.param("s3://bucket/x", {"REGION": "a/b"}, "REGION='a/b' is no region", id="region with a slash"),
    ],
)
def test_what_would_make_no_url(
    initializer: Initializer, capfd: pytest.CaptureFixture[str], uri: str, environ: dict[str, str], message: str
) -> None:
    """Buckets and regions of which no URL can be made are refused before the library sees them."""
    assert initializer.run(uri, **CREDENTIALS, **environ) == 2
    assert message in initializer.message
    assert capfd.readouterr().err == f"error: {initializer.message}\n"
