"""Semantic versions."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar, Final

from trainer_devcluster.apiserver.cel.errors import EvaluationError

if TYPE_CHECKING:
    from trainer_devcluster.apiserver.cel.signatures import Function

_NUMBER: Final = r"(0|[1-9]\d*)"
_VERSION: Final = re.compile(
    rf"{_NUMBER}\.{_NUMBER}\.{_NUMBER}(?:-((?:0|[1-9]\d*|\d*[A-Za-z-][\dA-Za-z-]*)(?:\.(?:0|[1-9]\d*|\d*[A-Za-z-][\dA-Za-z-]*))*))?"
    r"(?:\+([\dA-Za-z-]+(?:\.[\dA-Za-z-]+)*))?",
    re.ASCII,
)


@dataclass(frozen=True, slots=True)
class Semver:
    """A version; what follows a plus sign does not count when two are compared."""

    CEL_TYPE: ClassVar[str] = "kubernetes.Semver"
    major: int
    minor: int
    patch: int
    release: str = ""
    """What follows a minus sign."""
    build: str = field(default="", compare=False)

    @classmethod
    def parse(cls, text: str, normalize: bool = False) -> Semver:
        """Read a version.

        Args:
            text: the version.
            normalize: whether a leading v, missing parts and leading zeros are allowed.

        Raises:
            EvaluationError: it is none.
        """
        match = _VERSION.fullmatch(_normalized(text) if normalize else text)
        if match is None:
            raise EvaluationError(f"semver parse error during conversion from string: invalid version {text!r}")
        major, minor, patch, release, build = match.groups()
        return cls(int(major), int(minor), int(patch), release or "", build or "")

    @property
    def rank(self) -> tuple[int, int, int, bool, list[tuple[bool, int, str]]]:
        """A sort key."""
        parts = [(not part.isdecimal(), int(part) if part.isdecimal() else 0, part) for part in self.release.split(".")]
        return self.major, self.minor, self.patch, not self.release, parts


def _normalized(text: str) -> str:
    version, minus, rest = text.removeprefix("v").partition("-")
    numbers = [number.lstrip("0") or "0" if number.isdecimal() else number for number in version.split(".")]
    return ".".join([*numbers, "0", "0"][: max(len(numbers), 3)]) + minus + rest


def _is_semver(text: str, normalize: bool = False) -> bool:
    try:
        Semver.parse(text, normalize)
    except EvaluationError:
        return False
    return True


SIGNATURES: Final[list[tuple[str, Function]]] = [
    ("semver(string) -> kubernetes.Semver", Semver.parse),
    ("semver(string, bool) -> kubernetes.Semver", Semver.parse),
    ("isSemver(string) -> bool", _is_semver),
    ("isSemver(string, bool) -> bool", _is_semver),
    ("kubernetes.Semver.major() -> int", lambda version: version.major),
    ("kubernetes.Semver.minor() -> int", lambda version: version.minor),
    ("kubernetes.Semver.patch() -> int", lambda version: version.patch),
    ("kubernetes.Semver.isGreaterThan(kubernetes.Semver) -> bool", lambda a, b: a.rank > b.rank),
    ("kubernetes.Semver.isLessThan(kubernetes.Semver) -> bool", lambda a, b: a.rank < b.rank),
    ("kubernetes.Semver.compareTo(kubernetes.Semver) -> int", lambda a, b: (a.rank > b.rank) - (a.rank < b.rank)),
]
