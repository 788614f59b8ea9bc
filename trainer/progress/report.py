"""Reports the progress of a training to its TrainJob: `report(current_step=120, total_steps=1000, train_metrics=...)`.

In a trial of a sweep, `parameters(lr=0.1).lr` is what the sweep has chosen, and 0.1 elsewhere.

The file needs nothing but Python 3.8 or later, so it can be copied beside a training script, into an image or a
ConfigMap: `from report import report`. Where this package is installed: `from trainer.progress.report import report`.

A report becomes a line of the log that starts with a tag (KEP-2779). The controller manager follows the log of the
primary pod, the one with completion index 0, and writes the values to the status: `kubectl get trainjob`.

Call it as often as you like, on all ranks; this module decides which rank writes, because with torchrun rank 0 may be
in another pod than the primary one. At most one line a second is written, with the newest value of each field. The
line of the last step, checkpoints and calls with `force=True` are written at once, and the rest when Python exits. A
call costs microseconds and does not wait for GPUs: a tensor becomes a number when a line is written. No argument makes
it raise; values that the controller manager would drop are left out, with one warning.
"""

from __future__ import annotations

import atexit
import itertools
import json
import logging
import math
import numbers
import os
import select
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from typing import Any, SupportsFloat, TypeVar

Value = TypeVar("Value")

TAG = "[trainer.kubeflow.org/v2alpha1/trainjob/trainerStatus]"
"""The tag at the beginning of a message."""
INTERVAL_VARIABLE = "TRAINER_STATUS_INTERVAL_SECONDS"
"""Environment variable with the seconds between two lines. Default: 1, as the TrainJob changes every few seconds."""
DIRECTORY_VARIABLE = "TRAINER_CHECKPOINT_DIR"
"""Environment variable with the directory of all checkpoints, where the TrainJob has one."""

PARAMETER_PREFIX = "KUBEFLOW_TRAINER_OPT_"
"""Beginning of the environment variables with the parameters of a sweep, such as KUBEFLOW_TRAINER_OPT_LR."""

_FORWARDED = (
    "OMPI_COMM_WORLD_RANK",  # Open MPI, and the launcher may be completion index 0 while rank 0 is elsewhere
    "PMIX_RANK",
    "PMI_RANK",  # MPICH, Intel MPI
    "MV2_COMM_WORLD_RANK",
    "FLUX_TASK_RANK",
    "HOROVOD_RANK",
    "MLX_RANK",
    "SLURM_PROCID",  # after MPI: all that mpirun starts within a batch step of Slurm inherit 0
)
"""Ranks set by what brings the output of all processes to one place, whichever pods they are in."""
_RANKS = (
    "RANK",  # torchrun, accelerate, deepspeed: one process each, even when one of the following started them
    *_FORWARDED,
    "PADDLE_TRAINER_ID",  # paddle.distributed.launch, one process each
    "JAX_PROCESS_ID",  # several for each node, when numProcPerNode asks for it
    "PET_NODE_RANK",  # from here on one for each pod: PyTorch without torchrun
    "TF_CONFIG",
    "DMLC_TASK_ID",  # XGBoost
    "JOB_COMPLETION_INDEX",  # Kubernetes sets it in all pods of Indexed Jobs
)
"""Where the rank of a process is found. The first that is set wins: what started the process itself knows better."""

_COUNTS = ("currentStep", "totalSteps", "currentEpoch", "totalEpochs")
_LIMITS = {"progressPercentage": 100, "estimatedRemainingSeconds": 2**63 - 1, **dict.fromkeys(_COUNTS, 2**31 - 1)}
_LAST_STEP = _LIMITS["currentStep"]
_POSITION = frozenset({"progressPercentage", "currentStep", "currentEpoch"})
_METRICS_LIMIT, _TEXT_LIMIT, _PATH_LIMIT = 256, 64, 256
_LINE_LIMIT = 60_000
"""Bytes; readers skip lines of more than 64 KiB, with the little that they add themselves."""
_LINES_AT_THE_END = 10
"""Lines that do not wait for the interval once the last step is reached: enough for the words at the end of a training,
and few when its last epoch is reported thousands of times."""
_RETRY_SECONDS = 1.0
"""Seconds for which a write to a full, non-blocking stdout is retried."""
_WARNINGS_LIMIT = 20
_METRIC_LIMIT = 10 ** (_TEXT_LIMIT - 1)
"""Limit of integers, whose text with its sign must not be too long; no float has so many characters."""

_log = logging.getLogger("trainer.report")
_warned: set[str] = set()


def report(
    *unnamed: object,
    progress_percentage: SupportsFloat | None = None,
    estimated_remaining_seconds: SupportsFloat | None = None,
    current_step: SupportsFloat | None = None,
    total_steps: SupportsFloat | None = None,
    current_epoch: SupportsFloat | None = None,
    total_epochs: SupportsFloat | None = None,
    train_metrics: Mapping[str, SupportsFloat] | None = None,
    eval_metrics: Mapping[str, SupportsFloat] | None = None,
    checkpoint_step: SupportsFloat | None = None,
    checkpoint_path: object = None,
    force: bool = False,
    **unknown: object,
) -> None:
    """Report progress and metrics; the TrainJob keeps the last value of each field that is left out or None.

    Numbers may be those of Python, NumPy, PyTorch, JAX and TensorFlow. Metrics that are measured together belong into
    one call. NaN and infinities are left out. Never raises, and writes nothing in all processes but one.

    Args:
        unnamed: nothing; all arguments have names.
        progress_percentage: 0 to 100. Default: what steps or else epochs make it.
        estimated_remaining_seconds: until the end of the training. Default: estimated from the speed so far.
        current_step: steps that are completed, counted from the very beginning also when a training was resumed.
        total_steps: steps of the whole training.
        current_epoch: epochs that are completed.
        total_epochs: epochs of the whole training.
        train_metrics: numbers by name, such as the loss; at most 256, with names of at most 64 characters.
        eval_metrics: the same, measured on the evaluation data.
        checkpoint_step: step of a checkpoint that is complete, so that the training can go on from it.
        checkpoint_path: where that is below TRAINER_CHECKPOINT_DIR; at most 256 characters. Default: not said.
        force: whether the line is written at once, however short ago the one before was.
        unknown: nothing; other names are left out.
    """
    try:
        if unnamed or unknown:
            names = ", ".join(sorted(unknown)) or "arguments without a name"
            _warn_once("arguments", "does not know %.200s; metrics go into %s", names, "train_metrics={'loss': 0.3}")
        counts = (current_step, total_steps, current_epoch, total_epochs)
        given = zip(_LIMITS, (progress_percentage, estimated_remaining_seconds, *counts))  # noqa: B905 Python 3.8
        fields = {name: value for name, value in given if value is not None}
        metrics = {"trainMetrics": train_metrics, "evalMetrics": eval_metrics}
        checkpoint = _checkpoint(checkpoint_step, checkpoint_path)
        _reporter.take({**fields, **checkpoint}, dict(_mappings(metrics)), force=force or bool(checkpoint))
    except Exception as error:
        _warn_once("error", "failed: %.200r", error)


def parameters(**defaults: object) -> Parameters:
    """The parameters that a sweep has chosen for this run, which the TrainJob's log then shows as what it runs with.

    A value that reads as a number of JSON, true or false is that, and any other is text.

    Args:
        defaults: values by name, for a run outside of a sweep. One that is a bool, int, float or str decides on the
            type in a sweep, too: with 0.1 the value is a float, with "16" a text.

    Raises:
        ValueError: a value that was chosen is not of the type of its default.
    """
    known = {_variable_of(name): value for name, value in defaults.items()}
    chosen = {name: text for name, text in os.environ.items() if name.startswith(PARAMETER_PREFIX)}
    with suppress(Exception):
        _reporter.say({name[len(PARAMETER_PREFIX) :].lower(): text for name, text in chosen.items()})
    return Parameters({**known, **{name: _typed(name, text, known.get(name)) for name, text in chosen.items()}})


class Parameters(Mapping):  # type: ignore[type-arg]  # Python 3.8
    """Values by name, as attributes and as items; `lr`, `LR` and, as items, `"learning-rate"` are what they read like.

    Where a parameter has the name of a method, such as `values`, its value is the item.
    """

    def __init__(self, values: Mapping[str, object]) -> None:
        self._by_variable = values

    def __getitem__(self, name: str) -> Any:
        variable = _variable_of(name)
        if variable in self._by_variable:
            return self._by_variable[variable]
        remedy = f"outside of a sweep give it a default, as in parameters({name}=...)"
        raise KeyError(f"there is no parameter {name}: the variable {variable} is not set; {remedy}")

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        try:
            return self[name]
        except KeyError as error:
            raise AttributeError(error.args[0]) from None

    def __iter__(self) -> Iterator[str]:
        return (variable[len(PARAMETER_PREFIX) :].lower() for variable in self._by_variable)

    def __len__(self) -> int:
        return len(self._by_variable)

    def __repr__(self) -> str:
        return f"parameters({', '.join(f'{name}={value!r}' for name, value in self.items())})"


class Reporter:
    """Merges reports into lines and writes at most one line in each interval; `write` returns whether it did."""

    def __init__(
        self, write: Callable[[bytes], bool], *, interval: float = 1.0, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._write, self._interval, self._clock = write, interval, clock
        self.forget()

    def forget(self) -> None:
        """Reset the state, as the child of a fork must: it holds lines of the parent, and perhaps a lock."""
        self._lock = threading.RLock()  # handlers of signals may report, too
        self._fields: dict[str, object] = {}
        self._metrics: dict[str, dict[str, object]] = {}
        self._position: dict[str, float] = {}
        self._due = -math.inf
        self._is_silent = self._is_registered = False
        self._lines_at_the_end = _LINES_AT_THE_END
        self._said: Mapping[str, str] = {}

    def say(self, started_with: Mapping[str, str]) -> None:
        """Write what the training was started with, once."""
        with self._lock:
            if started_with != self._said and not rank():
                self._said = started_with
                self._write(f"{TAG} {json.dumps({'parameters': started_with})}\n".encode("ascii"))

    def take(
        self, fields: Mapping[str, object], metrics: Mapping[str, Mapping[str, object]], *, force: bool = False
    ) -> None:
        """Write a line if one is due or must not wait, or keep what is new for the next one."""
        with self._lock:
            now = self._clock()
            is_due = self._is_at_the_end(fields) or force or now >= self._due
            if is_due:
                self._is_silent = bool(rank())
                self._due = now + self._interval
            if self._is_silent:
                return
            _merge(self._fields, fields)
            for name, values in metrics.items():
                self._metrics.setdefault(name, {}).update((key, _held(value)) for key, value in values.items())
            self._register()
            if is_due:
                self.flush()

    def flush(self) -> None:
        """Write what is held back, if anything is."""
        with self._lock:
            if not self._fields and not self._metrics:
                return
            line = encode(self._fields, self._metrics)
            if line is None or self._write(line):
                self._fields, self._metrics = {}, {}
            self._due = self._clock() + self._interval

    def _is_at_the_end(self, fields: Mapping[str, object]) -> bool:
        """Whether the training has reached its last step, and has not said much since."""
        _merge(self._position, _ready(fields))
        if not _is_complete(self._position):
            self._lines_at_the_end = _LINES_AT_THE_END
            return False
        self._lines_at_the_end -= 1
        return self._lines_at_the_end >= 0

    def _register(self) -> None:
        """See to it that the exit flushes: now and not on import, so that it does before frameworks shut down."""
        if self._is_registered:
            return
        self._is_registered = True
        atexit.register(self._exit)
        util = sys.modules.get("multiprocessing.util")
        if util is not None:  # processes that it starts end without atexit
            util.Finalize(None, self._exit, exitpriority=100)

    def _exit(self) -> None:
        try:
            self.flush()
        except Exception as error:
            _warn_once("error", "failed: %.200r", error)


class Stdout:
    """The stdout that the process was started with, even if a notebook, logger or bar has replaced it."""

    _is_cut = False  # whether the last line could be written in part only

    def write(self, line: bytes) -> bool:
        """Write a line in one piece; returns False when there is no stdout, it is full, or nobody reads it any more."""
        for stream in (sys.stdout, sys.__stdout__):
            # Else what was printed before would come later, and perhaps end in the middle of a line.
            with suppress(Exception):  # there is none, it is closed, a broken pipe, or not a stream
                stream.flush()  # type: ignore[union-attr]
        original = sys.__stdout__
        if original is None or original.closed:
            return False
        # Not through the stream: it has an encoding, may be in use by another thread, and may write in two pieces,
        # between which other processes write.
        data = b"\n" + line if self._is_cut else line
        sent, deadline = 0, time.monotonic() + _RETRY_SECONDS
        try:
            with suppress(OSError):
                while sent < len(data):
                    sent += _write_some(original.fileno(), data[sent:], deadline)
        finally:
            self._is_cut = sent < len(data) and (sent > 0 or self._is_cut)
        return sent == len(data)


def _write_some(fd: int, data: bytes, deadline: float) -> int:
    """Write at least one byte; waits only for a stdout that does not block by itself, as asyncio makes pipes."""
    while True:
        try:
            return os.write(fd, data)
        except BlockingIOError:
            remaining = deadline - time.monotonic()
            if remaining <= 0 or not select.select([], [fd], [], remaining)[1]:
                raise


def _variable_of(parameter: str) -> str:
    """The environment variable of a parameter, whose name is as good as its own."""
    known = parameter.upper()
    return PARAMETER_PREFIX + "".join(each if each.isascii() and each.isalnum() else "_" for each in known)


def _typed(variable: str, text: str, default: object) -> object:
    """A value of the type of its default, where that has one of the four."""
    value = _plain(text)
    if isinstance(default, str):
        return text
    if isinstance(default, bool):
        if text.lower() in ("true", "false", "1", "0"):
            return text.lower() in ("true", "1")
    elif not isinstance(default, (int, float)):
        return value
    elif isinstance(value, (int, float)) and not isinstance(value, bool):
        if isinstance(default, float):
            return float(value)
        if value == int(value):
            return int(value)
    kind, name = type(default).__name__, variable[len(PARAMETER_PREFIX) :].lower()
    raise ValueError(f"{variable} is {text!r}, which is no {kind} as the default of {name}: give it another default")


def _plain(text: str) -> object:
    """A finite number as JSON writes it, true, false, or the text itself."""
    with suppress(ValueError, OverflowError, RecursionError):
        value = json.loads(text)
        if isinstance(value, (int, float)) and text == text.strip() and math.isfinite(value):
            return value
    return text


def rank() -> int | None:
    """The place of this process among all, the first of which writes; None: alone.

    In an Indexed Job whose pods have several processes each it is counted by pods. Otherwise it is that of PyTorch once
    its processes have met, else that of the environment.
    """
    index, local = _variable("JOB_COMPLETION_INDEX"), _variable("LOCAL_RANK")
    if index is not None and local is not None and all(_variable(name) is None for name in _FORWARDED):
        # The log of the first pod is followed, and an elastic torchrun may make another one rank 0 at each change.
        return index * (_variable("LOCAL_WORLD_SIZE") or 1) + local
    distributed = sys.modules.get("torch.distributed")
    with suppress(Exception):  # built without it, half imported, being destroyed
        if distributed is not None and distributed.is_initialized() and distributed.get_world_size() > 1:
            return int(distributed.get_rank())
    found = (_variable(name) for name in _RANKS)
    return next((number for number in found if number is not None), None)


def _variable(name: str) -> int | None:
    """The number that a variable of the environment says, if it does."""
    text = os.environ.get(name, "")
    with suppress(ValueError, TypeError, KeyError, AttributeError):
        number = _tensorflow_rank(json.loads(text)) if name == "TF_CONFIG" and text else int(text)
        return number if number >= 0 else None
    return None


def _tensorflow_rank(config: dict[str, dict[str, str]]) -> int:
    """0 for the chief, which is the first worker where there is none."""
    kind, index = config["task"]["type"], int(config["task"]["index"])
    chiefs = {"chief", "master"} & set(config["cluster"])
    is_chief = kind in chiefs if chiefs else kind == "worker"
    return index if is_chief else index + 1


def encode(fields: Mapping[str, object], metrics: Mapping[str, Mapping[str, object]]) -> bytes | None:
    """The line that says this, without what the controller manager would refuse the line for; None: nothing is left."""
    message: dict[str, object] = dict(_integers(fields))
    if "checkpoint" in fields:
        message["checkpoint"] = fields["checkpoint"]
    maps = {name: dict(_numbers(name, metrics[name])) for name in ("trainMetrics", "evalMetrics") if name in metrics}
    limit = _METRICS_LIMIT
    while message or any(maps.values()):
        shown = {name: dict(itertools.islice(numbers.items(), limit)) for name, numbers in maps.items() if numbers}
        text = json.dumps({**message, **shown}, separators=(",", ":"), allow_nan=False)
        line = f"{TAG} {text}\n".encode("ascii")
        if len(line) <= _LINE_LIMIT:
            return line
        limit //= 2
        _warn_once("line", "left metrics out: with all of them the line is longer than %d bytes", _LINE_LIMIT)
    return None


def _integers(fields: Mapping[str, object]) -> Iterator[tuple[str, int]]:
    """The fields that are in range, without their fractions."""
    for name in (name for name in _LIMITS if name in fields):
        number, limit = _number(fields[name]), _LIMITS[name]
        if number is not None and 0 <= number < limit + 1:
            yield name, math.floor(number)
        else:
            _warn_once(name, "left out %s=%s: must be a number from 0 to %d", name, _show(fields[name]), limit)


def _numbers(field: str, metrics: Mapping[str, object]) -> Iterator[tuple[str, float]]:
    """The metrics that the controller manager takes: as many as it takes, the first ones."""
    count = 0
    for name, value in metrics.items():
        number = _number(value)
        if not isinstance(name, str) or not name.isprintable() or not 1 <= len(name) <= _TEXT_LIMIT:
            rule = f"names of metrics have 1 to {_TEXT_LIMIT} printable characters"
            _warn_once(f"{field}.{_show(name)}", "left out %s[%s]: %s", field, _show(name), rule)
        elif number is None or (abs(number) >= _METRIC_LIMIT and isinstance(number, int)):
            _warn_once(f"{field}.{name}", "left out %s[%s]=%s: must be a finite number", field, name, _show(value))
        elif count == _METRICS_LIMIT:
            _warn_once(field, "left out what %s has beyond %d metrics", field, _METRICS_LIMIT)
        else:
            count += 1
            yield name, number


def _number(value: object) -> float | None:
    """The number that something is, integers as such; None when it is none, or not finite."""
    if isinstance(value, (str, bytes, bytearray)):
        return None
    with suppress(Exception):
        item = getattr(value, "item", None)  # NumPy, PyTorch, JAX, MLX; TensorFlow and others have __float__
        number = item() if callable(item) else value
        if isinstance(number, int):
            return int(number)
        number = float(number)  # type: ignore[arg-type]  # raises for anything but a number
        return number if math.isfinite(number) else None
    return None


def _held(value: object) -> object:
    """A copy of a tensor, which the script may change, without its graph and without waiting for the device."""
    detach = None if isinstance(value, (int, float)) else getattr(value, "detach", None)
    if not callable(detach):
        return value
    tensor = detach()
    return tensor.clone() if tensor.numel() == 1 else tensor


def _ready(fields: Mapping[str, object]) -> dict[str, float]:
    """Keep values that are numbers already: converting a tensor would wait for its result at every step."""
    known = {name: value for name, value in fields.items() if isinstance(value, numbers.Real)}
    return {name: float(value) for name, value in known.items() if not value < 0 and value <= _LIMITS[name]}


def _merge(known: dict[str, Value], new: Mapping[str, Value]) -> None:
    """Take over what is new; it outdates a remaining time that came before the latest step."""
    if not _POSITION.isdisjoint(new):
        known.pop("estimatedRemainingSeconds", None)
    known.update(new)


def _is_complete(position: Mapping[str, float]) -> bool:
    if position.get("progressPercentage", 0) >= 100:
        return True
    for current, total in (("currentStep", "totalSteps"), ("currentEpoch", "totalEpochs")):
        if current in position and total in position:
            return 0 < position[total] <= position[current]
    return False


def _checkpoint(step: object, path: object) -> dict[str, object]:
    """The field about a checkpoint, with its path from the directory of all; empty without one."""
    if step is None and path is None:
        return {}
    number, name = _number(step), "" if path is None else str(path)
    if number is None or not 0 <= number < _LAST_STEP + 1:
        _warn_once("step", "left out checkpoint_step=%s: must be a number from 0 to %d", _show(step), _LAST_STEP)
        return {}
    if name.startswith("/"):
        name = os.path.relpath(name, os.environ.get(DIRECTORY_VARIABLE) or os.curdir)
    if name.isprintable() and 0 < len(name) <= _PATH_LIMIT and os.pardir not in name.split("/"):
        return {"checkpoint": {"step": math.floor(number), "path": name}}
    if path is not None:
        _warn_once("path", "left out checkpoint_path=%s: must be below %s", _show(path), DIRECTORY_VARIABLE)
    return {"checkpoint": {"step": math.floor(number)}}


def _mappings(metrics: Mapping[str, object]) -> Iterator[tuple[str, dict[str, object]]]:
    for name, values in metrics.items():
        if isinstance(values, Mapping):
            yield name, dict(values)  # the caller may change it later
        elif values is not None:
            _warn_once(name, "left out %s=%s: must be numbers by name", name, _show(values))


def _show(value: object) -> str:
    """A number or a text, else only its type: printing a tensor would take its time."""
    try:
        return f"{value!r:.50}" if isinstance(value, (int, float, str)) else type(value).__name__
    except Exception:
        return type(value).__name__


def _warn_once(about: str, text: str, *args: object) -> None:
    """Say on stderr what is wrong; not again at every step, and not about ever new names."""
    if about not in _warned and len(_warned) < _WARNINGS_LIMIT:
        _warned.add(about)
        _log.warning("report() " + text, *args)


def _interval() -> float:
    text = os.environ.get(INTERVAL_VARIABLE, "1")
    with suppress(ValueError):
        if 0 <= float(text) < math.inf:
            return float(text)
    _warn_once(INTERVAL_VARIABLE, "takes 1 for %s=%.50r: must be seconds", INTERVAL_VARIABLE, text)
    return 1.0


_reporter = Reporter(Stdout().write, interval=_interval())
if hasattr(os, "register_at_fork"):  # not on Windows
    os.register_at_fork(after_in_child=_reporter.forget)
