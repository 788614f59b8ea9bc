"""Code that nodes fetch from a git repository: `--code-from git+https://HOST/REPOSITORY@REVISION`."""

from __future__ import annotations

import os
import re
import subprocess
from dataclasses import dataclass
from urllib.parse import urlsplit

from trainer.cli.console import printable
from trainer.cli.errors import BadInputError

_FORM = "git+https://HOST/REPOSITORY@REVISION, where the revision is a commit, a branch or a tag"
_COMMIT = re.compile(r"[0-9a-f]{40}([0-9a-f]{24})?")
_REVISION = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_./-]*")
_SECONDS = 30


@dataclass(frozen=True, slots=True)
class GitCode:
    """One commit of a repository."""

    url: str
    commit: str


def git_code(reference: str) -> GitCode:
    """The commit that a reference means now, so that all nodes, and each start anew, run the same code.

    Raises:
        BadInputError: the reference is wrong, has a password, or its revision cannot be found from here.
    """
    url, separator, revision = reference.removeprefix("git+").rpartition("@")
    parts = urlsplit(url)
    if not reference.startswith("git+") or not separator or parts.scheme not in {"https", "ssh", "file"}:
        raise BadInputError(f"--code-from: must be {_FORM}")
    if parts.password or (parts.scheme == "https" and parts.username):
        raise BadInputError(
            "--code-from: must have no user or password, which everybody could read who may read the TrainJob: "
            "give them to git in the image, or by --secret-env and GIT_CONFIG_* variables"
        )
    if _COMMIT.fullmatch(revision):
        return GitCode(url, revision)
    if not _REVISION.fullmatch(revision):
        raise BadInputError(f"--code-from: {printable(revision)} is no revision: must be {_FORM}")
    return GitCode(url, _resolved(url, revision))


def _resolved(url: str, revision: str) -> str:
    names = [f"refs/tags/{revision}^{{}}", f"refs/tags/{revision}", f"refs/heads/{revision}"]
    remedy = "write the commit of 40 digits instead, which needs no look-up"
    try:
        answer = subprocess.run(
            ["git", "ls-remote", "--exit-code", "--", url, *names], capture_output=True, text=True, timeout=_SECONDS,
            check=False, env={**os.environ, "GIT_TERMINAL_PROMPT": "0"},
        )  # fmt: skip
    except FileNotFoundError:
        raise BadInputError(f"--code-from: this machine has no git to look {revision} up: {remedy}") from None
    except subprocess.TimeoutExpired:
        raise BadInputError(f"--code-from: {url} does not answer within {_SECONDS} s: {remedy}") from None
    found: dict[str, str] = {}
    for line in answer.stdout.splitlines():
        commit, _, name = line.partition("\t")
        found[name] = commit
    commit = next((found[name] for name in names if name in found), "")
    if not commit:
        why = f": {printable(answer.stderr)}" if answer.stderr.strip() else ""
        raise BadInputError(f"--code-from: {url} has no branch or tag {revision}{why}: {remedy}")
    return commit
