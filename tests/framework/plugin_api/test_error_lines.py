"""Which line of a log says why a program has ended."""

from __future__ import annotations

import pytest

from trainer.framework.plugin_api.error_lines import error_line, is_lost_connection

SHAPES = "RuntimeError: mat1 and mat2 shapes cannot be multiplied (4x3 and 4x2)"


@pytest.mark.parametrize(
    ("log", "line"),
    [
        pytest.param("", "", id="empty"),
        pytest.param("epoch 1\n30 %", "", id="nothing-is-wrong"),
        pytest.param(f"    return F.linear(x)\n           ^^^^^^^^^\n{SHAPES}", SHAPES, id="traceback"),
        pytest.param(f"[rank1]:     return F.linear(x)\n[rank1]: {SHAPES}", SHAPES, id="prefix-of-a-launcher"),
        pytest.param(f"{SHAPES}\nwandb: synced\nbye", SHAPES, id="words-after-it"),
        pytest.param("KeyError: 3\nDuring handling of ...\nValueError: lr", "ValueError: lr", id="the-last-of-a-chain"),
        pytest.param("acme.io.BadShard: 7", "", id="name-without-a-traceback"),
        pytest.param(
            'Traceback\n  File "a.py", line 3\n    load()\nacme.io.BadShard: 7', "acme.io.BadShard: 7", id="own-name"
        ),
        pytest.param("  assert x\nAssertionError", "AssertionError", id="without-a-message"),
        pytest.param("KeyboardInterrupt", "KeyboardInterrupt", id="interrupt"),
        pytest.param(f"{SHAPES}\nKeyboardInterrupt", SHAPES, id="interrupt-after-it"),
        pytest.param(f"{SHAPES}\n  warnings.warn(\nFutureWarning: old", SHAPES, id="warning-after-it"),
        pytest.param(
            f"{SHAPES}\nException ignored in: <function Pool.__del__>\nTraceback (most recent call last):\n"
            '  File "pool.py", line 271, in __del__\n    self.put(None)\nAttributeError: no put',
            SHAPES,
            id="ignored-as-python-ends",
        ),
        pytest.param(
            "pydantic_core.ValidationError: 1 error\nlr\n  Input should be a number",
            "pydantic_core.ValidationError: 1 error",
            id="message-of-several-lines",
        ),
        pytest.param(
            "thread 'main' panicked at src/main.rs:3\nnote: run with RUST_BACKTRACE=1",
            "thread 'main' panicked at src/main.rs:3",
            id="rust",
        ),
        pytest.param("panic: boom\n\ngoroutine 1 [running]:", "panic: boom", id="go"),
        pytest.param(
            "./train: error while loading shared libraries: libcudart.so",
            "./train: error while loading shared libraries: libcudart.so",
            id="native",
        ),
        pytest.param("sh: 1: nope: not found", "sh: 1: nope: not found", id="shell"),
    ],
)
def test_error_line(log: str, line: str) -> None:
    """The exception of the last traceback, else the last line with a word of failure."""
    assert error_line(log.splitlines()) == line


@pytest.mark.parametrize(
    ("line", "is_lost"),
    [
        pytest.param("RuntimeError: Connection closed by peer [10.0.0.1]:3", True, id="gloo"),
        pytest.param("ConnectionResetError: [Errno 104] Connection reset by peer", True, id="python"),
        pytest.param("torch.distributed.DistNetworkError: the client socket has timed out", True, id="store"),
        pytest.param("x.api.SignalException: Process 2 got signal: 15", True, id="torchrun-is-ended"),
        pytest.param(SHAPES, False, id="own"),
        pytest.param("ValueError: no database: connection refused by 10.0.0.1", False, id="another-service"),
        pytest.param("EOFError: Ran out of input", False, id="end-of-a-file"),
    ],
)
def test_is_lost_connection(line: str, is_lost: bool) -> None:
    """Errors that follow from the end of another program are known."""
    assert is_lost_connection([line]) is is_lost
