"""Progress and metrics in the ordinary lines of a training's log, such as `Epoch 3/10 loss=0.31`.

A weak source: it counts only for trainings that print no messages. A line that might be something else, such as a
download, is left alone. Each line costs linear time, long lines are not looked at, and of one second of a log at most
`LINES_PER_SECOND` lines are.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Final, NamedTuple

from trainer.api.launcher_prefix import LauncherPrefix
from trainer.api.trainjob_status import TrainerStatus
from trainer.kube.podlogs.instant import Instant
from trainer.kube.podlogs.position import instant_of
from trainer.progress.lines.plain_metrics import is_metric, is_number, is_of_evaluation, is_of_training, metrics_in
from trainer.progress.lines.plain_places import Place, place_in
from trainer.progress.protocol import Message

LINES_PER_SECOND: Final = 100
"""Most lines of one second of the log that are looked at; beyond them only those that name an epoch."""
PLACES_PER_SECOND: Final = 10
"""Most steps or epochs of one second of the log that are told apart."""
LONGEST_LINE: Final = 1024
"""Most bytes of a line, or of the last state of one that overwrites itself."""
NAMES_LIMIT: Final = 32
"""Most names of metrics of one run."""
_COLUMNS_LIMIT: Final = 16
_MOST: Final = 2**31 - 1
_COUNTS: Final = ("progress_percentage", "current_step", "total_steps", "current_epoch", "total_epochs")
_SECOND: Final = len("2026-01-01T00:00:00")

_CANDIDATE: Final = re.compile(
    rb"poch|POCH|[Ss]tep|[Ii]ter|[Ll]oss|LOSS|[Aa]cc|\d%|\d/\d|[Bb]atch|[Tt]rain|[Vv]al|learn|[Tt]ree|progress| lr|\]\t"
)
"""A part of every line that is recognised, unless it is the row of a table."""
_ESCAPES: Final = re.compile(rb"\x1b\[[0-9;?]{0,32}+[@-~]?|[\x00-\x08\x0b-\x1f\x7f]")
_OTHER_WORK: Final = re.compile(
    r"(?<![a-z_])(?:download|upload|fetch|load(?:ed|ing)|extract|unpack|unzip|tokeniz|map(?:ping)?\b[ :(]|filter"
    r"|generating|preprocess|shard|sav(?:ed|ing)|writing|reading|pars(?:ed|ing)|build(?!ing tree)|link|compil|install"
    r"|collect|resolv|scan|cach|copy|import|convert|pulling|verif|checking|request|http|creating|computing)"
    r"|[kmgt]i?b/s|\d\s?[kmgt]i?b\b(?! *[\d|])",
    re.IGNORECASE,
)
"""Work beside the training, which has bars and steps as well."""
_EVALUATION: Final = re.compile(
    r"(?<![a-z_/])(?:test|val|valid|validation|validating|validate|eval|evaluation|evaluating|evaluate|inference"
    r"|predicting|prediction|predict|sanity|sampling)(?![a-z_/])",
    re.IGNORECASE,
)
_HEADER: Final = re.compile(r"\s*+(?:epoch|iter|step|round)\s{2,}[A-Za-z]", re.IGNORECASE)
_GAP: Final = re.compile(r"\s{2,}")
_CELL: Final = re.compile(r"(\d{1,6}+)(?:/(\d{1,6}+))?")


class PlainMessage(NamedTuple):
    """What the lines of one second and one place of the training say, and when."""

    message: Message
    time: Instant


class PlainLines:
    """Recognises the lines of one run of a training.

    Args:
        shown: the status of this run that earlier lines have led to. Default: none, it begins.
    """

    def __init__(self, shown: TrainerStatus | None = None) -> None:
        self._lowest: tuple[int, ...] = ()
        self._second = b""
        self._count = 0
        self._columns: tuple[str, ...] = ()
        self._names = set[str]()
        self._counter = _Counter(Message() if shown is None else Message.of_status(shown))

    def read(self, block: bytes) -> Iterator[PlainMessage]:
        """What whole lines of the log say, those of one second together unless they count on."""
        joined: PlainMessage | None = None
        second, places = b"", 0
        for line in block.split(b"\n"):
            if line[:_SECOND] != self._second:
                self._second, self._count = line[:_SECOND], 0
            self._count += 1
            if self._count > LINES_PER_SECOND and b"poch" not in line:
                continue
            if not self._columns and _CANDIDATE.search(line, _SECOND) is None:
                continue
            message = self._of(line.partition(b" ")[2])
            if message is None or (time := instant_of(line)) is None:
                continue
            if second != self._second:
                second, places = self._second, 0
            elif joined is not None and (places == PLACES_PER_SECOND or not _counts_on(joined.message, message)):
                joined = PlainMessage(_joined(joined.message, message), time)
                continue
            if joined is not None:
                yield joined
            joined, places = PlainMessage(message, time), places + 1
        if joined is not None:
            yield joined

    def _of(self, line: bytes) -> Message | None:
        text, ranks = _text_of(line)
        if not text or (ranks and self._lowest and ranks > self._lowest):
            return None
        message = self._of_row(text) if self._columns else None
        if message is None:
            message = self._of_text(text)
        if message is not None:
            self._lowest = ranks or self._lowest
        return message

    def _of_text(self, text: str) -> Message | None:
        if _HEADER.match(text):
            columns = _GAP.split(text.strip())
            self._columns = tuple(columns) if 2 < len(columns) <= _COLUMNS_LIMIT else ()
            return None
        metrics = [*metrics_in(text)]
        found = place_in(text, has_metrics=bool(metrics))
        if found is None and not (metrics and _is_about_metrics(text, metrics[0].start)):
            return None
        if _OTHER_WORK.search(text) is not None:
            return None
        place, start = found if found is not None else (None, metrics[0].start)
        is_eval = _EVALUATION.search(text, 0, start) is not None
        named = is_eval or (place is None and metrics[0].is_eval)
        evaluation = {
            each.name: each.value for each in metrics if each.is_eval or (named and not is_of_training(each.name))
        }
        train = {each.name: each.value for each in metrics if each.name not in evaluation}
        return self._message(None if is_eval else place, train, evaluation)

    def _of_row(self, text: str) -> Message | None:
        """The row of a table whose header came before."""
        cells = _GAP.split(text.strip(), _COLUMNS_LIMIT)
        first = _CELL.fullmatch(cells[0])
        if first is None or len(cells) < len(self._columns):
            return None
        named = zip(self._columns[1:], cells[1:], strict=False)
        values = {name.replace(" ", "_"): cell for name, cell in named if is_metric(name) and is_number(cell)}
        if not values:
            return None
        count, total = int(first[1]), _integer(first[2])
        if self._columns[0].lower() != "epoch":
            place = Place(step=count, steps=total)
        else:
            bar = place_in(text, has_metrics=True)
            steps = bar[0] if bar is not None else Place()
            place = Place(count, total, is_done=steps.step is None, step=steps.step, steps=steps.steps)
        train = {name: value for name, value in values.items() if not is_of_evaluation(name)}
        return self._message(place, train, {name: values[name] for name in values.keys() - train.keys()})

    def _message(self, place: Place | None, train: dict[str, str], evaluation: dict[str, str]) -> Message | None:
        train, evaluation = self._known(train), self._known(evaluation)
        message = Message(train_metrics=train or None, eval_metrics=evaluation or None)
        if place is not None and self._counter.take(place):
            return self._counter.on(message)
        return message if train or evaluation else None

    def _known(self, metrics: dict[str, str]) -> dict[str, str]:
        """Without names beyond `NAMES_LIMIT`."""
        room = NAMES_LIMIT - len(self._names)
        self._names |= set([name for name in metrics if name not in self._names][:room])
        return {name: value for name, value in metrics.items() if name in self._names}


class _Counter:
    """Counts epochs and steps that are done over the lines of a run."""

    def __init__(self, shown: Message) -> None:
        self._epoch: int | None = None
        """As it is written."""
        self._done = shown.current_epoch
        """Epochs that are done."""
        self._epochs = shown.total_epochs
        self._total = shown.total_steps
        """Steps of all epochs, by an earlier line."""
        self._step: int | None = None
        """As it is written."""
        self._steps: int | None = None
        self._percent: int | None = None
        self._first = 1
        """The number of the first epoch."""
        self._is_of_all = False
        """Whether the steps are those of all epochs."""

    def take(self, place: Place) -> bool:
        """Take a place; returns whether it says something."""
        if place.percent is not None:
            if self._steps is not None or self._epochs is not None:
                return False
            self._percent = place.percent
            return True
        if place.step is not None and place.steps is None and place.epoch is None and self._steps is not None:
            return False  # another count, which says less
        begins = place.epoch is not None and place.epoch != self._epoch
        if place.epoch is not None:
            self._take_epoch(place, place.epoch)
        self._take_step(place, begins=begins)
        return True

    def _take_epoch(self, place: Place, epoch: int) -> None:
        if epoch == 0:
            self._first = 0
        self._is_of_all = self._is_of_all or (place.is_fraction and place.epochs is None)
        if (place.is_done or epoch != self._epoch) and self._step is not None and not self._is_of_all:
            self._step = 0
        self._epoch, self._epochs = epoch, place.epochs or self._epochs
        self._done = epoch if place.is_fraction else max(epoch - self._first, 0) + place.is_done
        if self._epochs is not None and self._done > self._epochs:
            self._epochs = None

    def _take_step(self, place: Place, *, begins: bool) -> None:
        if place.step is None:
            return
        goes_on = begins and self._step is not None and place.step > self._step and place.steps == self._steps
        if (
            place.is_of_all
            or (place.steps is not None and place.steps == self._total)
            or (goes_on and self._is_share_of_all(place))
        ):
            self._is_of_all = True
        self._step, self._steps, self._percent = place.step, place.steps, None

    def _is_share_of_all(self, place: Place) -> bool:
        """Whether the steps of a place, read as those of all epochs, agree with its epoch."""
        if place.step is None or not place.steps or self._done is None or not self._epochs:
            return False
        return self._done * place.steps <= place.step * self._epochs <= (self._done + 1) * place.steps

    def on(self, message: Message) -> Message:
        """The message with what is done."""
        step, steps = self._step, self._steps
        if step is not None and steps is not None and self._done is not None and not self._is_of_all:
            step, steps = self._done * steps + step, steps * self._epochs if self._epochs is not None else None
        if steps is not None and (step is None or steps > _MOST or step > steps):
            steps = None
        counted = replace(
            message,
            progress_percentage=self._percent,
            current_step=step if step is not None and step <= _MOST else None,
            total_steps=steps,
            current_epoch=self._done,
            total_epochs=self._epochs,
        )
        # A total of an earlier line must not stay beside a count that has none.
        return replace(counted, cleared=frozenset(name for name in _COUNTS if getattr(counted, name) is None))


def _text_of(line: bytes) -> tuple[str, tuple[int, ...]]:
    """What a terminal would show of a line, and the ranks that launchers put before it; empty if it is too long."""
    shown = line.rstrip(b"\r")
    shown = shown[shown.rfind(b"\r") + 1 :]
    if not shown or len(shown) > LONGEST_LINE:
        return "", ()
    text = _ESCAPES.sub(b"", shown).decode(errors="replace")
    if text[:1] == "[" or (text[:1].isdigit() and ": learn" in text.expandtabs(1)):  # as of XGBoost
        found = place_in(text, has_metrics=any(metrics_in(text)))
        if found is not None and found[1] == 0:
            return text, ()
    prefix = LauncherPrefix.of(text)
    # Without a rank it may as well be `loss: `, which looks like a host.
    return (text[prefix.length :], prefix.ranks) if prefix.ranks else (text, ())


def _is_about_metrics(text: str, start: int) -> bool:
    """Whether a line without a place begins with its metrics, behind a few words at most, and is no prose."""
    before = text[:start].split()
    return len(before) <= 2 and (
        not before or before[-1][-1] in ":|-]," or _EVALUATION.search(text, 0, start) is not None
    )


def _counts_on(earlier: Message, later: Message) -> bool:
    """Whether two messages name different steps or epochs."""
    counts = ((earlier.current_epoch, later.current_epoch), (earlier.current_step, later.current_step))
    return any(None not in pair and pair[0] != pair[1] for pair in counts)


def _joined(earlier: Message, later: Message) -> Message:
    """Two messages of the same second as one."""
    return replace(
        earlier.merged(later),
        train_metrics={**(earlier.train_metrics or {}), **(later.train_metrics or {})} or None,
        eval_metrics={**(earlier.eval_metrics or {}), **(later.eval_metrics or {})} or None,
        cleared=later.cleared or earlier.cleared,
    )


def _integer(text: str | None) -> int | None:
    return None if text is None else int(text)
