"""An explanation on a screen and as JSON."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

from rich.text import Text

from trainer.cli.console import escaped, printable
from trainer.cli.errors import ExitCode
from trainer.explain import Cause, Explanation, Subject, Verdict, words_of

EXIT_CODES = {
    Verdict.RUNNING: ExitCode.OK,
    Verdict.SUCCEEDED: ExitCode.OK,
    Verdict.WAITING: ExitCode.WAITING,
    Verdict.FAILED: ExitCode.JOB_FAILED,
}
_STYLES = {
    Verdict.RUNNING: "green",
    Verdict.SUCCEEDED: "bold green",
    Verdict.WAITING: "bold yellow",
    Verdict.FAILED: "bold red",
}
_BEFORE_SUBMISSION = {
    Verdict.RUNNING: "would run, by what is known",
    Verdict.WAITING: "would wait",
    Verdict.FAILED: "would be refused",
}
_LABEL = 9
_DETAILS = 12
"""Most lines of details."""


def lines(subject: Subject, answer: Explanation, *, is_plan: bool) -> Iterator[Text]:
    """The first cause with its remedy, then the others, notes, and what could not be read.

    Args:
        subject: the TrainJob.
        answer: about it.
        is_plan: whether it is not submitted yet.
    """
    words = _BEFORE_SUBMISSION.get(answer.verdict, "") if is_plan else ""
    first, *others = answer.causes or (None,)
    head = Text(printable(str(subject))).append(" ").append(words or words_of(answer), style=_STYLES[answer.verdict])
    if first is None:
        yield head
    else:
        yield head.append(f": {_sentence(first)}", style="default")
        yield from _about(first)
    for cause in others:
        yield Text()
        yield Text("also: ", style="bold").append(_sentence(cause), style="not bold default")
        yield from _about(cause)
    notes = (*answer.facts, *answer.notes)
    if notes or answer.unread:
        yield Text()
    for note in notes:
        yield _labelled("note", printable(note))
    for each in answer.unread:
        yield _labelled("not read", printable(f"{each.what}: {each.why}"))


def _sentence(cause: Cause) -> str:
    return printable(f"{cause.reason}: {cause.message}")


def _about(cause: Cause) -> Iterator[Text]:
    for line in cause.details[:_DETAILS]:
        yield Text(f"  | {escaped(line)}", style="dim")
    yield _labelled("remedy", printable(cause.remedy))
    for command in cause.commands:
        yield _labelled("run", printable(command))
    yield _labelled("more", printable(cause.command))


def _labelled(label: str, text: str) -> Text:
    return Text(f"  {label:<{_LABEL}}", style="bold").append(text, style="not bold default")


def as_json(subject: Subject, answer: Explanation) -> dict[str, Any]:
    """The answer as a JSON object; texts are those of the screen, without control characters."""
    return {
        "name": subject.name,
        "namespace": subject.namespace,
        "verdict": answer.verdict.value,
        "causes": [_clean(asdict(cause)) for cause in answer.causes],
        "notes": [printable(note) for note in (*answer.facts, *answer.notes)],
        "unread": [_clean(asdict(each)) for each in answer.unread],
    }


def _clean(value: Any) -> Any:
    if isinstance(value, str):
        return escaped(value)
    if isinstance(value, dict):
        return {name: _clean(member) for name, member in value.items()}
    if isinstance(value, list | tuple):
        return [_clean(item) for item in value]
    return value
