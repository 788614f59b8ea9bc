"""Where a release is said to be published."""

from __future__ import annotations

from pathlib import Path

import pytest

from hack.release.settings import release
from tests.hack.release.commits import commit


@pytest.mark.parametrize(
    ("repository", "registry", "refusal"),
    [
        pytest.param("some/one", "ghcr.io/some", "REPOSITORY=some/one is no URL", id="name of a repository"),
        pytest.param("https://github.com/some/one", "https://ghcr.io/some", "is a URL", id="URL of a registry"),
    ],
)
def test_addresses_that_nobody_can_use(tmp_path: Path, repository: str, registry: str, refusal: str) -> None:
    """They would be in every manifest, so they are refused before anything is built."""
    with pytest.raises(ValueError, match=refusal):
        release(repository, registry, commit(tmp_path))


def test_addresses(tmp_path: Path) -> None:
    """Both are without a slash at the end, and images have small letters."""
    found = release("https://github.com/Some/One/", "ghcr.io/Some/", commit(tmp_path))
    assert (found.repository, found.registry) == ("https://github.com/Some/One", "ghcr.io/some")
