"""`trainer compare`: what differs between two trainings."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Annotated

import typer
from rich.text import Text

from trainer.cli.columns import columns
from trainer.cli.console import Format, OutputFormat, output, printable, say_json
from trainer_dashboard.commands.history_database import DatabaseUrl, open_history
from trainer_dashboard.commands.past import moment, past_object
from trainer_dashboard.history.comparison import Comparison, Difference
from trainer_dashboard.history.comparison import compare as comparison_of
from trainer_dashboard.history.queries import TrainingRecord

_REFERENCE = "NAME, NAMESPACE/NAME (the newest of this name), or the beginning of a uid of `trainer history`."


def compare(
    left: Annotated[str, typer.Argument(metavar="A", help=_REFERENCE, show_default=False)],
    right: Annotated[str, typer.Argument(metavar="B", help="Likewise.", show_default=False)],
    *,
    form: Format = OutputFormat.TEXT,
    database: DatabaseUrl = None,
) -> None:
    """Show what differed between two trainings of the history: result, metrics, parameters, spec and runtime.

    Values that may be secret are not in the history, so a difference in them is not shown.
    """
    history = open_history(database)
    records = history.training(left), history.training(right)
    found = comparison_of(history, *records)
    if form is OutputFormat.JSON:
        say_json({"trainings": [past_object(record) for record in records]} | asdict(found))
        return
    for line in _lines(records, found):
        output().print(line)


def _lines(records: Sequence[TrainingRecord], found: Comparison) -> Iterator[Text]:
    heads = [f"{each.namespace}/{each.name} {each.uid[:8]} of {moment(each.created)}" for each in records]
    for title, differences in (
        ("Result", found.result),
        ("Metrics", found.metrics),
        ("Parameters", found.parameters),
        ("Spec", found.spec),
        ("Runtime", found.runtime),
    ):
        yield from _section(title, heads if title == "Result" else ["", ""], differences)
        yield Text()


def _section(title: str, heads: Sequence[str], differences: Sequence[Difference]) -> Iterator[Text]:
    if not differences:
        yield Text(title, style="bold").append("  the same", style="not bold default")
        return
    rows = [(title, *map(printable, heads))]
    rows += [(f"  {printable(each.field)}", _cell(each.left), _cell(each.right)) for each in differences]
    for index, line in enumerate(columns(rows)):
        is_different = bool(index) and differences[index - 1].left != differences[index - 1].right
        yield Text(line, style="bold" if not index else "" if is_different else "dim")


def _cell(value: str | None) -> str:
    return "-" if value is None else printable(value)


app = typer.Typer(add_completion=False)
app.command("compare")(compare)
