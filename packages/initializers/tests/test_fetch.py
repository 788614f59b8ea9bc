"""Names of files that a source may have."""

from __future__ import annotations

import pytest

from trainer_initializers.errors import TransferError
from trainer_initializers.fetch import checked
from trainer_initializers.file_store import RemoteFile
from trainer_initializers.options import read_options

OPTIONS = read_options("dataset", {"STORAGE_URI": "s3://bucket"})


@pytest.mark.parametrize(
    "names",
    [
        pytest.param(["/etc/passwd"], id="absolute"),
        pytest.param(["../a"], id="above"),
        pytest.param(["a/../../b"], id="above by a detour"),
        pytest.param(["a//b"], id="two slashes"),
        pytest.param(["./a"], id="dot"),
        pytest.param(["a/"], id="slash at the end"),
        pytest.param([""], id="empty"),
        pytest.param(["."], id="the directory"),
        pytest.param(["a\0b"], id="zero byte"),
        pytest.param(["a", "a"], id="twice"),
        pytest.param(["a", "a/b"], id="file and directory"),
        pytest.param([".trainer-index.json"], id="index"),
        pytest.param(["a/.dataset.fetching/log"], id="name of what is being filled"),
        pytest.param(["\ud800"], id="no text"),
        pytest.param(["a/" + "b" * 256], id="long"),
        pytest.param(["a/" * 1_000_000 + "b"], id="deep"),
        pytest.param([".Trainer-Index.JSON"], id="index where case does not count"),
        pytest.param([], id="none"),
    ],
)
def test_names_that_are_refused(names: list[str]) -> None:
    """Files that would lie elsewhere, or in each other's place, are refused before one is fetched."""
    with pytest.raises(TransferError, match="bucket"):
        checked([RemoteFile(name, 1, "1") for name in names], OPTIONS)


def test_names_that_are_taken() -> None:
    """Everything else is a name."""
    files = [RemoteFile(name, 1, "1") for name in ("a/b.c", ".hidden", "a/..b", "a b\n", "\u00e9")]
    assert checked(files, OPTIONS) == files
