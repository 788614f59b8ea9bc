"""Which lines of a log are read as messages, and what is said of others."""

from __future__ import annotations

import pytest

from trainer.api.progress_tags import TAG
from trainer.progress.message_reader import MessageReader
from trainer.progress.protocol import RejectedMessageError


def steps_of(reader: MessageReader, *texts: str) -> list[int | None]:
    """The steps of the messages in lines of a log."""
    block = "".join(f"2026-01-01T00:00:00Z {text}\n" for text in texts).encode()
    return [timed.message.current_step for timed in reader.read(block)]


def step(number: int, prefix: str = "") -> str:
    return f'{prefix}{TAG} {{"currentStep": {number}}}'


@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        pytest.param([step(1, "[default0]:"), step(2, "[default1]:"), step(3, "[default0]:")], [1, 3], id="of two"),
        pytest.param([step(1, "worker-0: "), step(2, "worker-1: "), step(3)], [1, 2, 3], id="without ranks"),
        pytest.param([step(1, "[default0]:"), f"[default1]:{TAG} x"], [1], id="what another rank has wrong"),
    ],
)
def test_ranks(texts: list[str], expected: list[int]) -> None:
    """Of several ranks those of the lowest that has reported count, and lines without a rank always."""
    errors: list[RejectedMessageError] = []
    reader = MessageReader(errors.append)
    assert [found for text in texts for found in steps_of(reader, text)] == expected
    assert steps_of(MessageReader(errors.append), *texts) == expected
    assert errors == []


def test_another_run() -> None:
    """In another run another rank may report."""
    reader = MessageReader(list[object]().append)
    assert steps_of(reader, step(1, "[default0]:"), step(2, "[default1]:")) == [1]
    reader.restart()
    assert steps_of(reader, step(3, "[default1]:")) == [3]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param(
            f"{TAG} x", ['Invalid value: "x": must be one JSON object: Expecting value at character 1'], id="no"
        ),
        pytest.param(
            step(1, "INFO:root:"),
            ['the tag stands behind "INFO:root:", which no known launcher writes: print it at the beginning of a line'],
            id="a logger",
        ),
        pytest.param(f"print('{step(1)}')", [], id="code"),
        pytest.param(f"said {TAG} {{}}", [], id="nothing that would be lost"),
    ],
)
def test_what_is_no_message(text: str, expected: list[str]) -> None:
    """Tagged lines that are no messages are named, and so are messages behind text; code that is quoted is not."""
    errors: list[RejectedMessageError] = []
    assert steps_of(MessageReader(errors.append), text) == []
    assert [str(error) for error in errors] == expected


def test_message_takes_over_from_plain_lines() -> None:
    """Ordinary lines count until the first message; what follows them in the log is not read again."""
    reader = MessageReader(list[RejectedMessageError]().append, with_plain_lines=True)

    assert steps_of(reader, "step 3/10 loss=0.5") == [3]
    assert steps_of(reader, step(7)) == [7]
    assert steps_of(reader, "step 8/10 loss=0.4") == []


def test_checkpoint_does_not_take_over() -> None:
    """A message about a checkpoint and nothing else is no report of progress."""
    reader = MessageReader(list[RejectedMessageError]().append, with_plain_lines=True)

    assert steps_of(reader, f'{TAG} {{"checkpoint": {{"step": 3}}}}') == [None]
    assert steps_of(reader, "step 3/10 loss=0.5") == [3]


def test_plain_lines_are_off_by_default() -> None:
    """A reader that was not asked for ordinary lines leaves them alone."""
    assert steps_of(MessageReader(list[RejectedMessageError]().append), "step 3/10 loss=0.5") == []
