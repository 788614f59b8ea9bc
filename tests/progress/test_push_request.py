"""What pods post about their progress."""

from __future__ import annotations

import json
from typing import Any

import pytest

from trainer.api.invalid_object import InvalidObjectError
from trainer.kube.podlogs.instant import Instant
from trainer.progress.push_request import parse_push

TIME = "2026-01-02T10:00:00Z"
NOW = Instant.parse("2026-01-02T12:00:00Z")


def body(**status: Any) -> bytes:
    return json.dumps({"trainerStatus": {"lastUpdatedTime": TIME} | status}).encode()


@pytest.mark.parametrize(
    ("posted", "shown"),
    [
        pytest.param(body(), {}, id="nothing-but-a-time"),
        pytest.param(
            body(
                progressPercentage=42,
                estimatedRemainingSeconds=120,
                metrics=[{"name": "loss", "value": "0.12"}, {"name": "eval_loss", "value": "nan"}],
            ),
            {
                "progressPercentage": 42,
                "estimatedRemainingSeconds": 120,
                "estimatedRemainingTimeSummary": "2 minutes",
                "trainMetrics": {"loss": "0.12", "eval_loss": "nan"},
            },
            id="all",
        ),
        pytest.param(body(lastUpdatedTime="2026-01-02T11:00:00.123456+01:00"), {}, id="as-python-writes-times"),
        pytest.param(
            body(checkpoint={"step": 7, "path": "step-7"}),
            {"checkpoint": {"step": 7, "path": "step-7", "time": TIME}},
            id="checkpoint",
        ),
        pytest.param(
            body(checkpoint={"step": 7, "time": "2026-01-02T09:00:00.5Z"}),
            {"checkpoint": {"step": 7, "time": "2026-01-02T09:00:00Z"}},
            id="checkpoint-of-before",
        ),
    ],
)
def test_posted(posted: bytes, shown: dict[str, Any]) -> None:
    """A body becomes the status that it tells, to the second."""
    push = parse_push(posted).push
    assert push.trainer_status is not None
    assert NOW is not None
    assert push.trainer_status.status(NOW).to_object() == shown | {"lastUpdatedTime": TIME}


def test_a_clock_that_is_ahead() -> None:
    """Progress of the future would hide all that follows."""
    push = parse_push(body(lastUpdatedTime="2999-01-01T00:00:00Z")).push
    assert push.trainer_status is not None
    assert NOW is not None
    assert push.trainer_status.status(NOW).last_updated_time == "2026-01-02T12:00:00Z"


@pytest.mark.parametrize(
    ("posted", "errors"),
    [
        pytest.param(b"", ["must be one JSON object: Input data was truncated"], id="empty"),
        pytest.param(b"{} {}", ["must be one JSON object: JSON is malformed: trailing characters (byte 4)"], id="two"),
        pytest.param(b'"\xff"', ["must be one JSON object: "], id="not-utf-8"),
        pytest.param(b"[" * 60_000, ["must be one JSON object: "], id="deep"),
        pytest.param(b"[1]", ["Invalid value: [1]: must be one JSON object"], id="list"),
        pytest.param(b'{"trainerStatus": 5}', ["trainerStatus: Invalid value: 5: must be "], id="number"),
        pytest.param(
            b'{"trainerStatus": {"progressPercentage": 101, "estimatedRemainingSeconds": -1}}',
            [
                "trainerStatus.progressPercentage: Invalid value: 101: ",
                "trainerStatus.estimatedRemainingSeconds: Invalid value: -1: ",
                "trainerStatus.lastUpdatedTime: Required value",
            ],
            id="several",
        ),
        pytest.param(
            body(metrics=[{"name": "loss", "value": "1"}, {"name": "a\0", "value": "1"}]),
            ['trainerStatus.metrics[1].name: Invalid value: "a\\u0000": must consist of printable characters'],
            id="name-that-cannot-be-shown",
        ),
        pytest.param(body(progressPercentage="42"), ["trainerStatus.progressPercentage: Invalid value: "], id="text"),
        pytest.param(body(progressPercentage=4.5), ["trainerStatus.progressPercentage: Invalid value: 4.5"], id="half"),
        pytest.param(
            body(estimatedRemainingSeconds=2**31),
            ["trainerStatus.estimatedRemainingSeconds: Invalid value: 2147483648: "],
            id="long",
        ),
        pytest.param(
            body(lastUpdatedTime="yesterday"),
            ['trainerStatus.lastUpdatedTime: Invalid value: "yesterday": must be a time such as 2026-01-02T10:00:00Z'],
            id="time",
        ),
        pytest.param(
            body(metrics=[{"name": "", "value": "x" * 65}, {"name": "a", "value": 1}, {"value": "1"}]),
            [
                "trainerStatus.metrics[0].name: ",
                "trainerStatus.metrics[0].value: ",
                "trainerStatus.metrics[1].value: Invalid value: 1: ",
                "trainerStatus.metrics[2].name: Required value",
            ],
            id="metrics",
        ),
        pytest.param(
            body(metrics=[{"name": 1}] * 257),
            ["trainerStatus.metrics: Too many: 257: must have at most 256 items"],
            id="many-metrics",
        ),
        pytest.param(body(metrics={"loss": "1"}), ["trainerStatus.metrics: Invalid value: "], id="mapping"),
        pytest.param(
            body(checkpoint={"step": -1}), ["trainerStatus.checkpoint.step: Invalid value: -1: "], id="negative-step"
        ),
        pytest.param(
            body(checkpoint={"step": 1, "path": "../1", "time": "today"}),
            [
                'trainerStatus.checkpoint.path: Invalid value: "../1": must be a path within',
                'trainerStatus.checkpoint.time: Invalid value: "today": must be a time such as',
            ],
            id="checkpoint",
        ),
    ],
)
def test_refused(posted: bytes, errors: list[str]) -> None:
    """Each wrong field is named with the rule that it breaks."""
    with pytest.raises(InvalidObjectError) as refused:
        parse_push(posted)
    found = [str(error) for error in refused.value.errors]
    assert len(found) == len(errors), found
    assert all(text.startswith(start) for text, start in zip(found, errors, strict=True)), found


@pytest.mark.parametrize(
    ("members", "shown", "dropped"),
    [
        pytest.param(
            '"metrics": [{"name": "loss", "value": NaN}, {"name": "lr", "value": "0.1"}], "progressPercentage": 42',
            {"progressPercentage": 42, "trainMetrics": {"lr": "0.1"}},
            ["trainerStatus.metrics[0].value: Invalid value: NaN: must be a finite number"],
            id="metric",
        ),
        pytest.param(
            '"estimatedRemainingSeconds": Infinity, "progressPercentage": 7',
            {"progressPercentage": 7},
            ["trainerStatus.estimatedRemainingSeconds: Invalid value: Infinity: must be a finite number"],
            id="remaining-time",
        ),
        pytest.param(
            '"progressPercentage": nan, "metrics": [{"name": "nan", "value": "-inf"}, {"name": "b", "value": -inf}]',
            {"trainMetrics": {"nan": "-inf"}},
            [
                "trainerStatus.progressPercentage: Invalid value: NaN: must be a finite number",
                "trainerStatus.metrics[1].value: Invalid value: -Infinity: must be a finite number",
            ],
            id="as-printf-spells-them",
        ),
    ],
)
def test_not_finite(members: str, shown: dict[str, Any], dropped: list[str]) -> None:
    """A number that is not finite is left out, and the rest of the body counts."""
    push, errors = parse_push(f'{{"trainerStatus": {{"lastUpdatedTime": "{TIME}", {members}}}}}'.encode())
    assert push.trainer_status is not None
    assert NOW is not None
    assert push.trainer_status.status(NOW).to_object() == shown | {"lastUpdatedTime": TIME}
    assert [str(error) for error in errors] == dropped


@pytest.mark.parametrize(
    "posted",
    [
        pytest.param(b'{"trainerStatus": NaN}', id="status"),
        pytest.param(b'{"trainerStatus": {"lastUpdatedTime": NaN}}', id="time"),
        pytest.param(b"NaN", id="body"),
        pytest.param(b'{"trainerStatus": {"lastUpdatedTime": nanny}}', id="another-word"),
        pytest.param(b'{"a": NaN, "b": ' + b"1" * 5000 + b"}", id="digits"),
    ],
)
def test_not_finite_elsewhere(posted: bytes) -> None:
    """What is not finite stands in for numbers only."""
    with pytest.raises(InvalidObjectError):
        parse_push(posted)
