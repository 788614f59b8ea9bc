"""Which files of a folder are not packed: what `.trainerignore` or git ignores, what tools make, and likely secrets."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto
from pathlib import Path

from pathspec import GitIgnoreSpec

from trainer.cli.console import printable
from trainer.cli.errors import BadInputError
from trainer.cli.run.secret_names import is_secret

IGNORE_FILE = ".trainerignore"
"""Name of the ignore file, in the format of .gitignore, in any folder; it takes precedence over git's."""
_OF_GIT = ".gitignore"
_FILES = (IGNORE_FILE, _OF_GIT)
_EXCLUDE = "info/exclude"
"""In the directory of git: what the owner of a repository has git ignore without telling others."""
_MADE_BY_TOOLS = frozenset(
    {
        ".git", ".hg", ".svn", "__pycache__", ".ipynb_checkpoints", ".mypy_cache", ".pytest_cache", ".ruff_cache",
        ".tox", ".nox", ".eggs", "node_modules", ".DS_Store", ".idea", ".vscode", IGNORE_FILE, _OF_GIT,
    }
)  # fmt: skip
"""Names that are never packed."""


class Verdict(Enum):
    """Whether a file or directory is packed."""

    PACKED = auto()
    IGNORED = auto()
    SECRET = auto()
    """It would be packed if its name were not one of those that usually hold secrets."""


@dataclass(frozen=True, slots=True)
class Ignores:
    """The rules that hold in one folder."""

    folder: Path
    specs: tuple[tuple[str, Path, GitIgnoreSpec], ...] = ()
    """The file, the folder it stands in, and its patterns; the nearest first."""

    @classmethod
    def of(cls, folder: Path) -> Ignores:
        """The rules at the top of what is packed: its own, and those of git above it in the same repository."""
        above: list[Path] = []
        for parent in (folder, *folder.parents):
            above.append(parent)
            if (parent / ".git").exists():
                break
        else:
            above = [folder]  # no repository
        top = above[-1]
        exclude = _git_directory(top) / _EXCLUDE
        ignores = cls(top, ((_OF_GIT, top, _spec(exclude)),) if exclude.is_file() else ())
        for each in reversed(above):
            ignores = ignores.below(each)
        return ignores

    def below(self, folder: Path) -> Ignores:
        """The rules in a folder of this one.

        Raises:
            BadInputError: an ignore file cannot be read, or a pattern is wrong.
        """
        own = []
        for name in _FILES:
            file = folder / name
            if file.is_file():
                own.append((name, folder, _spec(file)))
        return Ignores(folder, (*own, *self.specs))

    def match(self, path: Path, *, is_folder: bool) -> Verdict:
        """Whether a file or directory of this folder is packed; secrets are where `.trainerignore` takes them back."""
        if path.name in _MADE_BY_TOOLS or path.suffix == ".pyc" or (is_folder and (path / "pyvenv.cfg").is_file()):
            return Verdict.IGNORED
        ignored = self._decision(IGNORE_FILE, path, is_folder=is_folder)
        if ignored is None and not self._decision(_OF_GIT, path, is_folder=is_folder):
            return Verdict.SECRET if is_secret(path, is_folder=is_folder) else Verdict.PACKED
        return Verdict.PACKED if ignored is False else Verdict.IGNORED

    def _decision(self, file: str, path: Path, *, is_folder: bool) -> bool | None:
        """Whether the nearest files of this name that say something about a path ignore it."""
        for name, folder, spec in self.specs:
            if name == file:
                relative = path.relative_to(folder).as_posix() + ("/" if is_folder else "")
                decision = spec.check_file(relative).include
                if decision is not None:
                    return decision
        return None


def _git_directory(top: Path) -> Path:
    """Where git keeps a repository; that of a worktree or a submodule is elsewhere, which a file says."""
    directory = top / ".git"
    try:
        directory = top / directory.read_text().removeprefix("gitdir:").strip()
        return directory / (directory / "commondir").read_text().strip()
    except (OSError, ValueError):  # an ordinary repository, or a submodule
        return directory


def _spec(file: Path) -> GitIgnoreSpec:
    try:
        lines = file.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError as error:
        raise BadInputError(f"{printable(str(file))} cannot be read: {error.strerror}") from None
    try:
        return GitIgnoreSpec.from_lines(lines)
    except ValueError:
        for number, line in enumerate(lines, start=1):
            _check_pattern(file, number, line)
        raise


def _check_pattern(file: Path, number: int, line: str) -> None:
    try:
        GitIgnoreSpec.from_lines([line])
    except ValueError:
        raise BadInputError(
            f"{printable(str(file))}: line {number}: {printable(line)[:80]} is no pattern of .gitignore"
        ) from None
