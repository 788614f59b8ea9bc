"""What a TrainJob runs, as its page and comparisons say it: program, parameters, image, code, data and resources."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final

from trainer.kube.logs.redaction import REDACTED
from trainer.kube.logs.secret_words import is_secret, names_secret
from trainer.kube.objects import Object, annotations_of, mapping_at, objects_in
from trainer_dashboard.recipe.parameters import parameters_of, with_reported
from trainer_dashboard.recipe.secret_forms import clean_text
from trainer_dashboard.recipe.shell_words import LONGEST_SCRIPT
from trainer_dashboard.recipe.user_command import MOST, UserCommand

_LONGEST_TEXT: Final = 2048
"""Characters of a word or value; scripts of whole pages are written into commands."""
_LONGEST_OPTION: Final = 128
_SEVERAL: Final = re.compile(r"--?[\w.-]{0,100}(?:tokens|secrets|passwords|keys|credentials)", re.IGNORECASE)
"""An option with several secrets behind it."""
_LONGEST_READ: Final = LONGEST_SCRIPT + 4096
"""Characters of a word or value that are read: a whole script, and a secret that begins within it."""
_MOST_READ: Final = 64 * 1024
"""Characters of all words, or all values, that are read: to look for secrets takes a microsecond for each of them."""
_MORE: Final = "..."
"""Stands for the words and values beyond."""
_REVISIONS: Final = frozenset({"git-revision", "git-commit", "git-sha", "revision"})
"""The last parts of annotations that name the revision of the code."""
_DATA: Final = (("dataset", "dataset"), ("model", "model"))


_NONE: Final[Mapping[str, str]] = {}


def recipe_of(job: Object, reported: Mapping[str, str] = _NONE) -> Object:
    """What the TrainJob itself says; what it leaves to its runtime is empty.

    Args:
        job: the TrainJob.
        reported: parameters that its reporter has found, without secrets. Default: none.
    """
    trainer = mapping_at(job, "spec", "trainer")
    said = UserCommand.of(job)
    # Together: an option at the end of the command has its value in the arguments.
    words = _without_secrets(_read([*said.command, *said.args]))
    shown = [_cut(word) for word in words]
    variables = objects_in(trainer.get("env"))[:MOST]
    values = _read([str(each.get("value") or "") for each in variables])
    return {
        "image": _shown(str(trainer.get("image") or "")),
        "command": shown[: len(said.command)],
        "args": shown[len(said.command) :],
        "parameters": list(with_reported(parameters_of(words), reported).items()),
        "repository": _shown(said.repository),
        "revision": _shown(said.revision or revision_of(job)),
        "isPacked": said.is_packed,
        "env": [_variable(each, value) for each, value in zip(variables, values, strict=False)],
        "resources": _resources(mapping_at(trainer, "resourcesPerNode")),
        "processes": str(trainer.get("numProcPerNode") or ""),
        "data": [
            [title, _shown(str(uri))]
            for field, title in _DATA
            if (uri := mapping_at(job, "spec", "initializer", field).get("storageUri"))
        ],
    }


def _read(texts: Sequence[str]) -> list[str]:
    """The texts of which enough is read; what is left out of them is not shown either."""
    found: list[str] = []
    left = _MOST_READ
    for text in texts:
        part = text[:_LONGEST_READ]
        if len(part) > left:
            # Not a part of it, which might end within a secret.
            return [*found, _MORE]
        found.append(part)
        left -= len(part)
    return found


def _shown(text: str) -> str:
    return _cut(clean_text(text[:_LONGEST_READ]))


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST_TEXT else f"{text[:_LONGEST_TEXT]}{_MORE}"


def _without_secrets(words: Sequence[str]) -> list[str]:
    """The words without what is a secret by its form, or by the name of its option or variable."""
    shown: list[str] = []
    before = ""
    for word in words:
        name, sign, value = word.partition("=")
        if _SEVERAL.fullmatch(before) and not word.startswith("-") and is_secret(before, word):
            shown.append(REDACTED)
            continue
        if before.startswith("-") and names_secret(before) and not word.startswith("--") and is_secret(before, word):
            shown.append(REDACTED)
        elif sign and not any(map(str.isspace, name)) and names_secret(name) and is_secret(name, value):
            shown.append(f"{name}={REDACTED}")
        else:
            shown.append(_cleaned_behind(before, word))
        before = "" if sign else word
    return shown


def _cleaned_behind(option: str, word: str) -> str:
    """A word without secrets, some of which have their form only behind their option, such as `-u name:password`."""
    if not option.startswith("-") or len(option) > _LONGEST_OPTION:
        return clean_text(word)
    cleaned = clean_text(f"{option} {word}")
    return cleaned.removeprefix(f"{option} ") if cleaned.startswith(f"{option} ") else clean_text(word)


def revision_of(job: Object) -> str:
    """The revision of the code that an annotation names, or ""."""
    found = (value for name, value in annotations_of(job).items() if name.rpartition("/")[2] in _REVISIONS)
    return next(found, "")


def _variable(variable: Object, value: str) -> Object:
    """A variable; `origin` says where a value that is elsewhere comes from."""
    name = _cut(str(variable.get("name") or ""))
    origins = mapping_at(variable, "valueFrom")
    kind = next(iter(origins), "")
    source = mapping_at(origins, kind)
    parts = (source.get("name"), source.get("key"), source.get("fieldPath"), source.get("resource"))
    origin = " ".join([kind.removesuffix("KeyRef").removesuffix("Ref"), *(str(part) for part in parts if part)])
    return {
        "name": name,
        "value": REDACTED if names_secret(name) and is_secret(name, value) else _shown(value),
        "origin": origin if kind else "",
    }


def _resources(resources: Object) -> dict[str, str]:
    """Requests, and the limits of what is not requested."""
    both = {**mapping_at(resources, "limits"), **mapping_at(resources, "requests")}
    return {name: str(amount) for name, amount in both.items()}


def reported_without_secrets(reported: Mapping[str, str]) -> dict[str, str]:
    """Parameters that a reporter has found as they are shown: its own rule for secrets knows names alone."""
    return {
        clean_text(name): REDACTED if is_secret(name, value) else clean_text(value) for name, value in reported.items()
    }
