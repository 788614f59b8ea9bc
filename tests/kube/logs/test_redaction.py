"""Credentials in log events."""

from __future__ import annotations

import base64
from enum import Enum

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainer.kube.logs.redaction import LONGEST_VALUE, redact

JWT = "eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiJ4In0.c2lnbmF0dXJl"
KEY = "-----BEGIN EC PRIVATE KEY-----\nMHcCAQ\n-----END EC PRIVATE KEY-----"


class Kind(Enum):
    A = 1


class Request:
    def __repr__(self) -> str:
        return f"<Request Authorization: Bearer {JWT}>"


def redacted(**values: object) -> dict[str, object]:
    return dict(redact(None, "info", dict(values)))


@pytest.mark.parametrize(
    "key",
    [
        "token",
        "bearerToken",
        "access_token",
        "Authorization",
        "proxy-authorization",
        "password",
        "Set-Cookie",
        "api_key",
        "private_key",
        "client-key-data",
        "client_secret",
        "aws_secret_access_key",
        "id_token",
        "tokens",
    ],
)
def test_keys_of_secrets(key: str) -> None:
    """Whatever the value looks like, the key says that nobody may read it."""
    assert redacted(**{key: "hunter2"}) == {key: "[redacted]"}
    assert redacted(headers={key: ["hunter2"]}) == {"headers": {key: "[redacted]"}}


@pytest.mark.parametrize(
    ("key", "value"),
    [
        pytest.param("secret", "my-secret", id="name-of-a-secret"),
        pytest.param("tokens", 7, id="number"),
        pytest.param("password", None, id="absent"),
        pytest.param("reconcile_id", "5f0c", id="id"),
        pytest.param("url", "https://10.0.0.1:6443/api/v1/pods?watch=true", id="url"),
        pytest.param("event", "basic authentication is not supported", id="prose"),
        pytest.param("key", "ns/name", id="object-key"),
        pytest.param("event", "unknown option 'token=' in file", id="quote-that-closes"),
        pytest.param("event", 'TOKEN="" {"max_token": 512, "token": null}', id="no-text"),
    ],
)
def test_what_people_need_stays(key: str, value: object) -> None:
    """What is no credential is left as it is."""
    assert redacted(**{key: value}) == {key: value}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param(f"sent Authorization: Bearer {JWT}.", "sent Authorization: Bearer [redacted]", id="bearer"),
        pytest.param("Basic " + base64.b64encode(b"user:password").decode(), "Basic [redacted]", id="basic"),
        pytest.param(f"token {JWT!r} expired", "token '[redacted]' expired", id="jwt"),
        pytest.param(f"sent id-{JWT}", "sent id-[redacted]", id="jwt-behind-a-dash"),
        pytest.param("via http://user:hunter2@proxy:80", "via http://user:[redacted]@proxy:80", id="url"),
        pytest.param(f"read {KEY} from file", "read [redacted] EC PRIVATE KEY----- from file", id="pem"),
        pytest.param(KEY[:40], "[redacted]", id="pem-cut"),
        pytest.param("GET /x?token=hunter2&a=b", "GET /x?token=[redacted]&a=b", id="query"),
        pytest.param("{'access_token': 'hunter2'}", "{'access_token': '[redacted]'}", id="repr"),
        pytest.param("Namespace(api_key='hunter2', lr=1)", "Namespace(api_key='[redacted]', lr=1)", id="namespace"),
        pytest.param('export TOKEN="hunter 2" A=b', 'export TOKEN="[redacted]" A=b', id="script"),
        pytest.param("""{'password': "hunter'2", 'a': 1}""", """{'password': "[redacted]", 'a': 1}""", id="apostrophe"),
        pytest.param(r'{"password": "hun\"ter", "a": 1}', '{"password": "[redacted]", "a": 1}', id="escaped quote"),
        pytest.param('TOKEN="hunter2\nnext line', 'TOKEN="[redacted]\nnext line', id="quote that is not closed"),
        pytest.param('{"password": "hunter2", "a": 1}', '{"password": "[redacted]", "a": 1}', id="json"),
    ],
)
def test_text_with_secrets(text: str, expected: str) -> None:
    """Credentials are recognised by their form in the message, in tracebacks and in nested values."""
    assert redacted(event=text) == {"event": expected}
    assert redacted(sent=[{"x": (text,)}]) == {"sent": [{"x": [expected]}]}


def test_a_secret_that_is_cut() -> None:
    """Nothing is shown of the word in which a text is cut: the half of a password does not look like one."""
    before = "x" * (LONGEST_VALUE - 40)
    secret = f" http://user:hunter2{'2' * 100}@proxy"
    shown = str(redacted(event=before + secret)["event"])
    assert shown == f"{before} [{len(secret)} characters left out]"


def test_contents_of_secret_objects() -> None:
    """An object of kind Secret shows its name and which keys it has data for no more."""
    secret = {"kind": "Secret", "metadata": {"name": "s"}, "data": {"k": "aHVzaA=="}, "stringData": {}}
    expected = {"kind": "Secret", "metadata": {"name": "s"}, "data": "[redacted]", "stringData": {}}
    assert redacted(obj=secret) == {"obj": expected}
    config_map = {"kind": "ConfigMap", "data": {"k": "v"}}
    assert redacted(obj=config_map) == {"obj": config_map}


def test_contents_of_lists_of_secrets() -> None:
    """The items of a list do not say their kind, which the list does."""
    items = [{"metadata": {"name": "s"}, "data": {"k": "aHVzaA=="}}]
    expected = [{"metadata": {"name": "s"}, "data": "[redacted]", "kind": "Secret"}]
    assert redacted(got={"kind": "SecretList", "items": items}) == {"got": {"kind": "SecretList", "items": expected}}
    config_maps = {"kind": "ConfigMapList", "items": [{"data": {"k": "v"}}]}
    assert redacted(got=config_maps) == {"got": config_maps}


def test_copy_of_a_secret_in_its_annotation() -> None:
    """What kubectl apply has noted about an object holds all that was applied."""
    note = {"kubectl.kubernetes.io/last-applied-configuration": '{"kind":"Secret","stringData":{"k":"hush"}}'}
    obj = {"kind": "Secret", "metadata": {"annotations": note}}
    assert "hush" not in str(redacted(obj=obj))


def test_other_objects_are_shown_as_their_representation() -> None:
    """An object whose representation has a credential does not slip through."""
    assert redacted(request=Request(), kind=Kind.A) == {
        "request": "<Request Authorization: Bearer [redacted]>",
        "kind": "<Kind.A: 1>",
    }


def test_nesting_is_limited() -> None:
    """A value that contains itself ends somewhere."""
    endless: dict[str, object] = {}
    endless["self"] = endless
    assert "[redacted]" in str(redacted(value=endless))


_PARTS = (
    "token", "password", "=", ":", "'", '"', "Bearer", "Basic", " ", "eyJ", "eyJhbGciOi", ".", "-", "/", "://", "user",
    "@", "-----BEGIN PRIVATE KEY-----", "hunter2", "0123456789abcdef", "\n",
)  # fmt: skip


@given(st.lists(st.sampled_from(_PARTS), max_size=8).map("".join))
def test_a_value_is_redacted_wherever_it_stands(text: str) -> None:
    """A text alone, which may be passed over, shows no more than the same text within a list, which is searched."""
    shown = redacted(alone=text, listed=[text])
    assert [shown["alone"]] == shown["listed"]
