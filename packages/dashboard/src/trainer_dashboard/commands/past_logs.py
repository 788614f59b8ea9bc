"""The last lines of logs from the history, where the cluster has them no more."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from rich.console import Console

from trainer.cli.errors import CommandError
from trainer.cli.logs.choice import LogChoice, LogRequest
from trainer.cli.logs.printer import LogPrinter
from trainer.framework.plugin_api.runtime_info import LAUNCHER
from trainer.kube.clock import SystemClock
from trainer.kube.podlogs.instant import Instant
from trainer.progress.lines.log_lines import log_lines
from trainer_dashboard.commands.past import say_gone
from trainer_dashboard.history.queries import History, LogTail, TrainingRecord


def print_past_logs(console: Console, request: LogRequest, history: History, record: TrainingRecord) -> None:
    """Print what was kept of the logs that a request names; blocks.

    Raises:
        CommandError: nothing was.
    """
    tails = history.log_tails(record.uid)
    picked = _picked(tails, request.choice)
    if not picked:
        kept = ", ".join(dict.fromkeys(f"{each.node}/{each.container}" for each in tails))
        what = f"only these: {kept}" if kept else "none"
        raise CommandError(f"of the logs of TrainJob {record.name} the history has {what}")
    say_gone(record)
    since = None if request.since is None else Instant.of(SystemClock().now() - request.since)
    printer, sources = LogPrinter(console), _sources(picked)
    for tail in picked:
        block = "".join(f"{line}\n" for line in tail.lines).encode(errors="replace")
        lines = list(log_lines(block, with_messages=request.progress)) if block else []
        if since is not None:
            lines = [each for each in lines if not each.stamp or (Instant.parse(each.stamp) or since) >= since]
        if request.tail is not None:
            lines = lines[len(lines) - min(request.tail, len(lines)) :]
        texts = (f"{each.stamp} {each.text}" if request.timestamps and each.stamp else each.text for each in lines)
        printer.print(sources[tail] if request.choice.all_nodes else "", *texts)


def _picked(tails: Sequence[LogTail], choice: LogChoice) -> list[LogTail]:
    """As for logs of the cluster: the first node's container that trains, unless others are named."""
    if choice.all_nodes:
        return [tail for tail in tails if choice.container in {"", tail.container}]
    named = [tail for tail in tails if (tail.container == choice.container if choice.container else tail.is_training)]
    if choice.node:
        number = choice.node.lstrip("0") or "0"
        meant = [tail for tail in named if choice.node in {tail.node, tail.pod} or _number(tail) == number]
        return sorted(meant, key=lambda tail: tail.node.startswith(f"{LAUNCHER}-"))[:1]
    return ([tail for tail in named if tail.is_primary] or named)[:1]


def _number(tail: LogTail) -> str:
    return tail.node.rpartition("-")[2]


def _sources(tails: Sequence[LogTail]) -> dict[LogTail, str]:
    """The prefixes of their lines: the node, with the container where a node has several."""
    nodes = Counter(tail.node for tail in tails)
    return {tail: tail.node if nodes[tail.node] == 1 else f"{tail.node}/{tail.container}" for tail in tails}
