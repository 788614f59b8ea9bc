"""Credentials in log events."""

from __future__ import annotations

from enum import Enum

import pytest

from trainer.kube.logs.redaction import redact


class Kind(Enum):
    A = 1


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
        pytest.param("key", "ns/name", id="object-key"),
    ],
)
def test_what_people_need_stays(key: str, value: object) -> None:
    """What is no credential is left as it is."""
    assert redacted(**{key: value}) == {key: value}


def test_contents_of_secret_objects() -> None:
    """An object of kind Secret shows its name and which keys it has data for no more."""
    secret = {"kind": "Secret", "metadata": {"name": "s"}, "data": {"k": "aHVzaA=="}, "stringData": {}}
    expected = {"kind": "Secret", "metadata": {"name": "s"}, "data": "[redacted]", "stringData": {}}
    assert redacted(obj=secret) == {"obj": expected}
    config_map = {"kind": "ConfigMap", "data": {"k": "v"}}
    assert redacted(obj=config_map) == {"obj": config_map}


def test_copy_of_a_secret_in_its_annotation() -> None:
    """What kubectl apply has noted about an object holds all that was applied."""
    note = {"kubectl.kubernetes.io/last-applied-configuration": '{"kind":"Secret","stringData":{"k":"hush"}}'}
    obj = {"kind": "Secret", "metadata": {"annotations": note}}
    assert "hush" not in str(redacted(obj=obj))


def test_other_objects_are_shown_as_their_representation() -> None:
    """As the renderer would show them."""
    assert redacted(kind=Kind.A) == {"kind": "<Kind.A: 1>"}


def test_nesting_is_limited() -> None:
    """A value that contains itself ends somewhere."""
    endless: dict[str, object] = {}
    endless["self"] = endless
    assert "[redacted]" in str(redacted(value=endless))
