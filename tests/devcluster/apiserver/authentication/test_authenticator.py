"""Authentication and the files that carry secrets."""

from __future__ import annotations

import stat
from typing import TYPE_CHECKING

import pytest
import yaml

from trainer.devcluster.apiserver.authentication.authenticator import Authenticator, load_or_create_token
from trainer.devcluster.apiserver.authentication.user import ADMINISTRATOR, ANONYMOUS
from trainer.devcluster.apiserver.kubeconfig import kubeconfig
from trainer.devcluster.apiserver.status import StatusError

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(
    ("authorization", "path", "allowed"),
    [
        pytest.param("Bearer secret", "/api/v1/pods", True, id="the token"),
        pytest.param("bearer secret", "/api/v1/pods", True, id="scheme in any case"),
        pytest.param("Bearer wrong", "/api/v1/pods", False, id="a wrong token"),
        pytest.param("Bearer wrong", "/version", False, id="a wrong token where none is needed"),
        pytest.param("Basic secret", "/api/v1/pods", False, id="another scheme"),
        pytest.param("Bearer gehe\u00efm", "/api/v1/pods", False, id="not ASCII"),
        pytest.param(None, "/api/v1/pods", False, id="anonymous"),
        pytest.param(None, "/api", False, id="anonymous discovery"),
        pytest.param(None, "/version/", True, id="anonymous version"),
        pytest.param(None, "/readyz", True, id="anonymous health"),
    ],
)
def test_who_may_ask(authorization: str | None, path: str, allowed: bool) -> None:
    """The administrator may do everything, nobody else more than look whether the server is there."""
    authenticator = Authenticator("secret")
    if allowed:
        expected = ANONYMOUS if authorization is None else ADMINISTRATOR
        assert authenticator.authenticate(authorization, path) == expected
        return
    with pytest.raises(StatusError) as caught:
        authenticator.authenticate(authorization, path)
    assert caught.value.code == 401


def test_token_is_made_once(tmp_path: Path) -> None:
    """The token outlives a restart and is readable by its owner only."""
    path = tmp_path / "data" / "token"
    token = load_or_create_token(path)
    assert len(token) > 30
    assert load_or_create_token(path) == token
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


@pytest.mark.parametrize("content", [b"\xff\xfe", b"two words", b"two\nlines"])
def test_unusable_token(tmp_path: Path, content: bytes) -> None:
    """A token that no header can carry is refused with the name of its file."""
    (tmp_path / "token").write_bytes(content)
    with pytest.raises(OSError, match="delete it") as caught:
        load_or_create_token(tmp_path / "token")
    assert caught.value.filename == str(tmp_path / "token")


def test_kubeconfig_has_one_context() -> None:
    """Cluster, user and context have the same name and the context is current."""
    document = yaml.safe_load(kubeconfig("https://127.0.0.1:1", "secret", "PEM"))
    assert document["current-context"] == document["contexts"][0]["name"] == "trainer-dev"
    assert document["users"][0]["user"] == {"token": "secret"}
    assert document["clusters"][0]["cluster"]["server"] == "https://127.0.0.1:1"
