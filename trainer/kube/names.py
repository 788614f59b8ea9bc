"""Names: what the parts of Kubernetes names may look like, and what its validation says about those that do not.

Rules: Kubernetes documentation, "Object Names and IDs" and "Labels and Selectors".
"""

from __future__ import annotations

import re
from typing import Final

_SUBDOMAIN = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_QUALIFIED_PART = re.compile(r"([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]")
_PATH_SEGMENT = re.compile(r"(?!\.{1,2}\Z)[!-~]{1,253}")
_LABEL_VALUE = re.compile(r"(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?")

_SUBDOMAIN_TEXT: Final = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and "
    f"end with an alphanumeric character (e.g. 'example.com', regex used for validation is '{_SUBDOMAIN.pattern}')"
)
_QUALIFIED_TEXT: Final = (
    "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character "
    f"(e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '{_QUALIFIED_PART.pattern}')"
)
_LABEL_VALUE_TEXT: Final = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and "
    "end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is "
    f"'{_LABEL_VALUE.pattern}')"
)


def subdomain_problems(text: str) -> list[str]:
    """The rules of an RFC 1123 subdomain that a text breaks; empty if it is one."""
    return matching(text, _SUBDOMAIN, 253, _SUBDOMAIN_TEXT)


def qualified_name_problems(text: str) -> list[str]:
    """The rules that a label, annotation or finalizer name (`prefix/name` or `name`) breaks; empty if it is valid."""
    prefix, slash, name = text.rpartition("/")
    problems: list[str] = []
    if "/" in prefix:
        example = "with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
        return [f"a qualified name {_QUALIFIED_TEXT} {example}"]
    if slash and not prefix:
        problems.append("prefix part must be non-empty")
    elif slash:
        problems += [f"prefix part {problem}" for problem in subdomain_problems(prefix)]
    if not name:
        problems.append("name part must be non-empty")
    elif len(name) > 63:
        problems.append("name part must be no more than 63 bytes")
    if not _QUALIFIED_PART.fullmatch(name):
        problems.append(f"name part {_QUALIFIED_TEXT}")
    return problems


def is_path_segment(text: str) -> bool:
    """Whether a URL can have the text as the name of an object, which names of every kind fit, those of roles too."""
    return _PATH_SEGMENT.fullmatch(text) is not None and not any(character in text for character in "/%?#")


def label_value_problems(text: str) -> list[str]:
    """The rules that the value of a label breaks; empty if it is valid."""
    return matching(text, _LABEL_VALUE, 63, _LABEL_VALUE_TEXT)


def matching(text: str, pattern: re.Pattern[str], length: int, explanation: str) -> list[str]:
    """The rules of length and form that a text breaks; empty if it breaks none."""
    problems = [] if len(text) <= length else [f"must be no more than {length} bytes"]
    if not pattern.fullmatch(text):
        problems.append(explanation)
    return problems
