"""What a release is made from: a commit, and the addresses at which it will be published."""

from __future__ import annotations

import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
REPOSITORY = "https://github.com/example/trainer-operator"
"""A placeholder: who releases names the repository, since readmes and metadata of packages link to it."""
REGISTRY = "registry.example.com"
"""A placeholder: who releases names the registry, and the folder in it, that nodes pull images from."""
VERSION_FILE = "trainer/__init__.py"
_VERSION = re.compile(r'^__version__ = "(.+)"$', re.MULTILINE)


class GitError(RuntimeError):
    """What a commit says cannot be had; the message quotes git."""


@dataclass(frozen=True)
class Release:
    """One version of everything."""

    version: str
    commit: str
    epoch: int
    """Time of the commit in seconds since 1970: the time of whatever is made from it."""
    repository: str = REPOSITORY
    """URL of the repository on GitHub, without a slash at its end."""
    registry: str = REGISTRY
    """Registry of the images, with the folder in it, in small letters; without a slash at its end."""

    @property
    def tag(self) -> str:
        """The tag of the commit."""
        return f"v{self.version}"


def release(repository: str = REPOSITORY, registry: str = REGISTRY, root: Path = ROOT) -> Release:
    """Give the release of the commit that is checked out.

    Raises:
        ValueError: the repository is no URL, the registry is one, or the commit has no version.
    """
    if not repository.startswith("https://"):
        raise ValueError(f"REPOSITORY={repository} is no URL of a repository: REPOSITORY=https://github.com/OWNER/NAME")
    if "://" in registry:
        raise ValueError(f"REGISTRY={registry} is a URL, which no image begins with: REGISTRY=HOST/OWNER")
    commit = git("rev-parse", "HEAD", root=root)
    version = version_in(git("show", f"{commit}:{VERSION_FILE}", root=root))
    epoch = int(git("show", "--no-patch", "--format=%ct", commit, root=root))
    return Release(version, commit, epoch, repository.rstrip("/"), registry.rstrip("/").lower())


def version_in(source: str) -> str:
    """Give the version that the text of VERSION_FILE names.

    Raises:
        ValueError: it names none.
    """
    found = _VERSION.search(source)
    if found is None:
        raise ValueError(f'{VERSION_FILE}: no line __version__ = "..."')
    return found[1]


def git(*arguments: str, root: Path = ROOT) -> str:
    """Give what git prints, without white space around it.

    Raises:
        GitError: there is no git, `root` is no checkout, or git fails.
    """
    if shutil.which("git") is None or not (root / ".git").exists():
        raise GitError(f"{root} is no checkout with git: version, time and revision are those of a commit")
    done = subprocess.run(["git", *arguments], cwd=root, capture_output=True, text=True, check=False)
    if done.returncode:
        raise GitError(f"git {arguments[0]} failed in {root}:\n{done.stderr.strip()}")
    return done.stdout.strip()
