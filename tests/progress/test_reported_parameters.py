"""What the reporter says that a training was started with."""

from __future__ import annotations

import pytest

from trainer.api.progress_tags import TAG
from trainer.progress.curves import Curves
from trainer.progress.reported_parameters import MOST, parameters_in, with_more


@pytest.mark.parametrize(
    ("payload", "found"),
    [
        pytest.param(b' {"parameters":{"lr":"0.1","seed":"1"}}', {"lr": "0.1", "seed": "1"}, id="texts"),
        pytest.param(b' {"parameters":{"lr":0.1,"a":"1","b":{}}}', {"a": "1"}, id="others"),
        pytest.param(b' {"parameters":{"":"1","\\u0007":"1","%b":"1"}}' % (b"x" * 129), {}, id="names"),
        pytest.param(b' {"parameters":{"a":"%b"}}' % (b"x" * 600), {"a": "x" * 512}, id="long"),
        pytest.param(b' {"currentStep":1}', None, id="progress"),
        pytest.param(b' {"parameters":{"a":"1"},"currentStep":1}', None, id="both"),
        pytest.param(b' {"trainMetrics":{"parameters":1}}', None, id="metric"),
        pytest.param(b' {"parameters":[]}', None, id="list"),
        pytest.param(b' {"parameters":' + b"[" * 30_000, None, id="nested"),
    ],
)
def test_parameters_in(payload: bytes, found: dict[str, str] | None) -> None:
    """A message with parameters alone has texts by name; any other is about progress."""
    assert parameters_in(payload) == found


def test_with_more() -> None:
    """Of one name the later value counts, and there is an end to names."""
    assert with_more({"a": "1"}, {"a": "2", "b": "3"}) == {"a": "2", "b": "3"}
    known = {"a": "1"}
    assert with_more(known, {"a": "1"}) is known
    many = with_more({"a": "1"}, {str(number): "" for number in range(2 * MOST)})
    assert len(many) == MOST
    assert with_more(many, {"a": "2", "new": ""})["a"] == "2"


def test_plain_lines_go_on() -> None:
    """Parameters are no progress: a training without messages is read by its lines as before."""
    curves = Curves()
    block = f'2026-01-01T00:00:01Z {TAG} {{"parameters":{{"lr":"0.1"}}}}\n2026-01-01T00:00:02Z Epoch 1/3 loss=0.5\n'
    assert curves.take(block.encode())
    assert curves.parameters == {"lr": "0.1"}
    assert [(metric.name, [*curve.values]) for metric, curve in curves.by_metric.items()] == [("loss", [0.5])]
    curves.restart()
    assert curves.parameters == {}
