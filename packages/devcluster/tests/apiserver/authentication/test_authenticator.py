"""Authentication and the files that carry secrets."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from trainer.kube.errors import ApiError
from trainer_devcluster.apiserver.authentication.authenticator import Authenticator, load_or_create_token
from trainer_devcluster.apiserver.authentication.service_account_tokens import ServiceAccountTokens
from trainer_devcluster.apiserver.authentication.user import User


@pytest.mark.parametrize(
    ("authorization", "user"),
    [
        pytest.param("Bearer wrong", None, id="a wrong token"),
        pytest.param("Basic secret", None, id="another scheme"),
    ],
)
def test_who_asks(authorization: str | None, user: User | None, tokens: ServiceAccountTokens) -> None:
    """The administrator's token authenticates; another token is refused, and a request without one is anonymous."""
    authenticator = Authenticator("secret", tokens)
    if user is not None:
        assert authenticator.authenticate(authorization) == user
        return
    with pytest.raises(ApiError) as caught:
        authenticator.authenticate(authorization)
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
