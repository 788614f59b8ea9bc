"""What the reporter changes in each framework, right after the framework is imported.

The callbacks are those that people add by hand. Whoever reports by himself is left alone: nothing is reported in a
process that has imported a `report.py`, and no bar counts beside a framework's callback.
"""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Callable
from contextlib import suppress
from importlib import import_module
from types import ModuleType
from typing import Any

from trainer.progress.injection.parameters import changed, report_parameters
from trainer.progress.injection.startup import complain
from trainer.progress.report import DIRECTORY_VARIABLE, report

BAR = "bar"
"""The source that gives way to all others."""
_OWN = ("report", "trainer.progress" + ".report")
"""Modules with which a script reports by itself."""
_HOOKS = ("on_", "before_", "after_")
"""What the names of methods begin with that a framework calls."""
_RETURN_MODEL = ("before_training", "after_training")

_source: list[str] = []
"""The source whose reports count, if any has reported."""


def reporter_of(source: str) -> Callable[..., None]:
    """The function `report` for one source: it does nothing while another one counts."""

    def report_from(**fields: Any) -> None:
        if any(hasattr(sys.modules.get(name), "TAG") for name in _OWN if sys.modules.get(name) is not _myself()):
            return
        if not _source or (_source[0] == BAR and source != BAR):
            _source[:] = [source]
        if _source[0] == source:
            report(**fields)

    return report_from


def _myself() -> ModuleType | None:
    return sys.modules.get(report.__module__)


def _have_report(callbacks: Any, report_from: Callable[..., None]) -> None:
    """Have the callbacks of a module report as one source, and let none of their failures reach the training."""
    callbacks.report = report_from
    kind = callbacks.TrainJobCallback
    for name, method in list(vars(kind).items()):
        if name.startswith(_HOOKS) and not hasattr(method, "__wrapped__"):
            setattr(kind, name, _guarded(name, method))


def _guarded(name: str, method: Callable[..., Any]) -> Callable[..., Any]:
    """A hook that returns what its framework expects when it fails: XGBoost wants its model back."""

    @functools.wraps(method)
    def guarded(self: Any, *given: Any, **options: Any) -> Any:
        try:
            return method(self, *given, **options)
        except Exception as error:
            complain(error)
        if name in _RETURN_MODEL:
            return options["model"] if "model" in options else given[0]
        return False if name == "after_iteration" else None

    return guarded


def watch_transformers(module: Any) -> None:
    """Add the callback to those that every Trainer has."""
    from trainer.progress.callbacks import huggingface  # noqa: PLC0415 needs the framework

    _have_report(huggingface, reporter_of("transformers"))
    _have_parameters(huggingface.TrainJobCallback)
    module.DEFAULT_CALLBACKS.append(huggingface.TrainJobCallback)
    have_checkpoints("huggingface", module)


def have_checkpoints(name: str, module: Any) -> None:
    """Have a framework save and resume by itself, where the training has a directory for checkpoints."""
    if os.environ.get(DIRECTORY_VARIABLE):
        try:
            import_module("trainer.checkpoints.frameworks." + name).attach(module)
        except Exception as error:
            complain(error, "no checkpoints are saved")


def _have_parameters(kind: Any) -> None:
    """Have a callback of transformers report the arguments of its Trainer when the training begins."""
    begin = kind.on_train_begin

    @functools.wraps(begin)
    def on_train_begin(self: Any, args: Any, *given: Any, **options: Any) -> None:
        with suppress(Exception):
            report_parameters(changed(args))
        begin(self, args, *given, **options)

    kind.on_train_begin = on_train_begin


def lightning_callbacks() -> list[Any]:
    """Entry point `lightning.pytorch.callbacks_factory`: the callbacks that every Trainer gets."""
    try:
        from trainer.progress.callbacks import lightning  # noqa: PLC0415 needs the framework

        _have_report(lightning, reporter_of("lightning"))
        return [lightning.TrainJobCallback()]
    except Exception as error:
        complain(error)
        return []


def watch_lightning(module: Any) -> None:
    """Have each `fit` save and resume; its progress is that of `lightning_callbacks`."""
    have_checkpoints("lightning", module)


def watch_keras(module: Any) -> None:
    """Add the callback to the lists that `fit` makes, which are those with a history."""
    original = module.CallbackList.__init__

    @functools.wraps(original)
    def init(self: Any, callbacks: Any = None, add_history: bool = False, *more: Any, **options: Any) -> None:
        if add_history:
            try:
                from trainer.progress.callbacks import keras  # noqa: PLC0415 needs the framework

                _have_report(keras, reporter_of("keras"))
                given = list(callbacks) if isinstance(callbacks, (list, tuple)) else [callbacks] if callbacks else []
                callbacks = [*given, keras.TrainJobCallback()]
            except Exception as error:
                complain(error)
        original(self, callbacks, add_history, *more, **options)

    module.CallbackList.__init__ = init
    if module.__name__.startswith("keras."):
        have_checkpoints("keras", module)


def watch_xgboost(module: Any) -> None:
    """Add the callback to each call of `train`, as the classes for scikit-learn make it, too."""
    original = module.train

    @functools.wraps(original)
    def train(*given: Any, **options: Any) -> Any:
        try:
            from trainer.progress.callbacks import xgboost  # noqa: PLC0415 needs the framework

            _have_report(xgboost, reporter_of("xgboost"))
            rounds = options.get("num_boost_round", given[2] if len(given) > 2 else 10)
            callback = xgboost.TrainJobCallback(int(rounds))
            changed = {**options, "callbacks": [*(options.get("callbacks") or ()), callback]}
        except Exception as error:
            complain(error)
            changed = options
        return original(*given, **changed)

    module.train = train


def watch_torchtune(module: Any) -> None:
    """Have the recipes resume; their progress is that of their bars."""
    have_checkpoints("torchtune", module)


def watch_tqdm(module: Any) -> None:
    """Read the bars of the script, and of the recipes of torchtune."""
    from trainer.progress.injection.bars import watch  # noqa: PLC0415 only where there are bars

    watch(module.tqdm, reporter_of(BAR), reporter_of("torchtune"))
