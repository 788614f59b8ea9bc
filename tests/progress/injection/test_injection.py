"""The reporter in other processes, beside stand-ins of frameworks; e2e runs the real ones."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from trainer.api.progress_tags import TAG
from trainer.plugins.progress_reporter import FILTER
from trainer.progress.injection.install import install

XGBOOST_CALLBACK = """
class TrainingCallback:
    pass
"""
XGBOOST_TRAINING = """
class Booster:
    def num_boosted_rounds(self):
        return 4

def train(params, dtrain, num_boost_round=10, *, callbacks=None):
    if callbacks is not None:
        booster, log = Booster(), {"train": {"rmse": [0.5]}, "valid": {"rmse": [0.25]}}
        for each in callbacks:
            assert each.before_training(model=booster) is booster
            for epoch in range(num_boost_round):
                assert each.after_iteration(booster, epoch, log) is False
            assert each.after_training(model=booster) is booster
    return "booster"
"""
KERAS_LIST = """
class CallbackList:
    def __init__(self, callbacks=None, add_history=False, **params):
        self.callbacks = callbacks

    def on_train_begin(self):
        return [each.on_train_begin() for each in self.callbacks]
"""
STAND_INS = {
    "xgboost/__init__.py": "from .training import train\n",
    "xgboost/callback.py": XGBOOST_CALLBACK,
    "xgboost/training.py": XGBOOST_TRAINING,
    "keras/__init__.py": "",
    "keras/callbacks.py": "class Callback:\n    pass\n",
    "keras/src/__init__.py": "",
    "keras/src/callbacks/__init__.py": "",
    "keras/src/callbacks/callback_list.py": KERAS_LIST,
    "report.py": "TAG = 1\n",
}
TRAIN = "import xgboost; print(xgboost.train({}, None, 2))"
LOOP = """
from keras.src.callbacks.callback_list import CallbackList
print(CallbackList(None, add_history=True).on_train_begin())
"""
MESSAGES = [
    '{"currentStep":4,"totalSteps":6}',
    '{"currentStep":5,"totalSteps":6,"trainMetrics":{"rmse":0.5},"evalMetrics":{"rmse":0.25}}',
    '{"currentStep":6,"totalSteps":6,"trainMetrics":{"rmse":0.5},"evalMetrics":{"rmse":0.25}}',
    '{"currentStep":6,"totalSteps":6}',
]


def run(directory: Path, script: str, *options: str, **variables: str) -> tuple[int, list[str], list[str]]:
    """Exit code, lines of stdout and lines of stderr of a training with the reporter."""
    for name, source in STAND_INS.items():
        (directory / name).parent.mkdir(parents=True, exist_ok=True)
        (directory / name).write_text(source)
    paths = f"{directory / 'reporter'}{os.pathsep}{directory}"
    environment = {"PYTHONPATH": paths, "PYTHONWARNINGS": FILTER, "TRAINER_STATUS_INTERVAL_SECONDS": "0"} | variables
    result = subprocess.run(
        [sys.executable, *options, "-c", script],
        cwd=directory,
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    return result.returncode, result.stdout.splitlines(), result.stderr.splitlines()


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    (tmp_path / "reporter").mkdir()
    install(tmp_path / "reporter")
    return tmp_path


def test_a_framework(directory: Path) -> None:
    """A training without progress code reports what its framework does."""
    code, printed, complaints = run(directory, TRAIN)
    assert (code, complaints) == (0, [])
    assert printed == [*(f"{TAG} {message}" for message in MESSAGES), "booster"]


def test_framework_in_an_archive(directory: Path) -> None:
    """Modules of an archive share one loader; only the one that counts is changed."""
    with zipfile.ZipFile(directory / "packages.zip", "w") as archive:
        for name in ("__init__.py", "callback.py", "training.py"):
            archive.writestr(f"xgboost/{name}", STAND_INS[f"xgboost/{name}"])
    script = f"import sys; sys.path.insert(0, 'packages.zip'); {TRAIN}; print('.zip' in xgboost.__file__)"
    code, printed, complaints = run(directory, script)
    assert (code, complaints) == (0, [])
    assert printed == [*(f"{TAG} {message}" for message in MESSAGES), "booster", "True"]


def test_child_processes(directory: Path) -> None:
    """Processes that the training starts have the reporter, too."""
    script = f"import subprocess, sys; sys.exit(subprocess.call([sys.executable, '-c', {TRAIN!r}]))"
    assert len(run(directory, script)[1]) == len(MESSAGES) + 1


@pytest.mark.parametrize(
    ("script", "options"),
    [
        pytest.param(f"import report; {TRAIN}", (), id="reports-by-itself"),
        pytest.param(f"import sys; sys.path.insert(0, '.'); {TRAIN}", ("-I",), id="isolated"),
    ],
)
def test_silence(directory: Path, script: str, options: tuple[str, ...]) -> None:
    """A training that reports by itself, or wants nothing of its environment, is left alone."""
    assert run(directory, script, *options) == (0, ["booster"], [])


@pytest.mark.parametrize(
    ("broken", "complaint"),
    [
        pytest.param({"trainer_reporter/hooks.py": "raise ValueError(7)"}, "ValueError(7)", id="hooks"),
        pytest.param({"trainer_reporter/callbacks/xgboost.py": "raise KeyError(7)"}, "KeyError(7)", id="callback"),
        pytest.param({"trainer_reporter/__init__.py": ""}, "Invalid -W option ignored", id="startup"),
    ],
)
def test_failures(directory: Path, broken: dict[str, str], complaint: str) -> None:
    """Whatever goes wrong is one line, and the training goes on as without the reporter."""
    for name, source in broken.items():
        (directory / "reporter" / name).write_text(source)
    code, printed, complaints = run(directory, TRAIN)
    assert (code, printed) == (0, ["booster"])
    assert len(complaints) == 1
    assert complaint in complaints[0]


@pytest.mark.parametrize(
    ("callback", "hooks", "script", "printed"),
    [
        pytest.param("xgboost", ["after_iteration"], TRAIN, [f"{TAG} {MESSAGES[0]}"] * 2 + ["booster"], id="one"),
        pytest.param(
            "xgboost", ["before_training", "after_iteration", "after_training"], TRAIN, ["booster"], id="all-of-xgboost"
        ),
        pytest.param("keras", ["on_train_begin"], LOOP, ["[None]"], id="keras"),
    ],
)
def test_hooks_that_fail(directory: Path, callback: str, hooks: list[str], script: str, printed: list[str]) -> None:
    """A callback that fails is one line, however often, and its framework gets what it expects."""
    source = directory / "reporter" / "trainer_reporter" / "callbacks" / f"{callback}.py"
    broken = [
        "def fail(self, *given, **options): raise KeyError(7)",
        *(f"TrainJobCallback.{hook} = fail" for hook in hooks),
    ]
    source.write_text("\n".join([source.read_text(), *broken]))
    complaint = "trainer: no progress is reported for this training: KeyError(7)"
    assert run(directory, script) == (0, printed, [complaint])


def test_nothing_installed(tmp_path: Path) -> None:
    """Without the directory of the reporter there is one line, and the training runs."""
    code, printed, complaints = run(tmp_path, TRAIN)
    assert (code, printed, len(complaints)) == (0, ["booster"], 1)


@pytest.mark.parametrize(
    ("script", "code"),
    [
        pytest.param("import sys; sys.exit(3)", 3, id="exit-code"),
        pytest.param("import os, signal; os.kill(os.getpid(), signal.SIGTERM)", -15, id="signal"),
    ],
)
def test_the_end(directory: Path, script: str, code: int) -> None:
    """Exit codes and signals stay as they are."""
    assert run(directory, script) == (code, [], [])


def test_warnings_of_the_training(directory: Path) -> None:
    """Programs see the filters that somebody asked for, and no other; those are in force."""
    script = "import sys, warnings; print(sys.warnoptions); warnings.warn('x', UserWarning)"
    code, printed, complaints = run(directory, script, PYTHONWARNINGS=f"{FILTER},error::UserWarning")
    assert (code, printed) == (1, ["['error::UserWarning']"])
    assert complaints[-1] == "UserWarning: x"


def test_installed_twice(directory: Path) -> None:
    """An init container that is started again leaves the same content."""
    before = {path: path.read_bytes() for path in directory.rglob("*") if path.is_file()}
    install(directory / "reporter")
    assert {path: path.read_bytes() for path in directory.rglob("*") if path.is_file()} == before
    ours = (b"trainer.progress", b"trainer.checkpoints")
    assert not any(name in text for name in ours for path, text in before.items() if path.name != "hooks.py")


PARSER = """
import argparse
parser = argparse.ArgumentParser()
parser.add_argument("--lr", type=float, default=0.1)
parser.add_argument("--betas", nargs=2, default=["0.9", "0.99"])
parser.add_argument("--hub-token", default="hidden")
parser.add_argument("--max-new-tokens", type=int, default=8)
parser.add_argument("--proxy", default="http://user:hidden@proxy")
parser.add_argument("--callback", default=print)
parser.add_subparsers().add_parser("fit").add_argument("--depth", type=int, default=2)
print(parser.parse_args(["--lr", "3", "fit"]).lr)
"""
FOUND = '{"parameters":{"lr":"3.0","betas":"0.9 0.99","max_new_tokens":"8","depth":"2"}}'
LIBRARY = "import sys; sys.path.insert(0, 'site-packages'); import launcher"
CHILD = "import subprocess, sys; subprocess.check_call([sys.executable, '-c', PARSER.replace('3', '4')])"


@pytest.mark.parametrize(
    ("script", "rank", "said"),
    [
        pytest.param(PARSER, "", [FOUND], id="script"),
        pytest.param(PARSER, "0", [FOUND], id="first-rank"),
        pytest.param(PARSER, "1", [], id="other-rank"),
        pytest.param(PARSER + PARSER, "", [FOUND], id="twice"),
        pytest.param(LIBRARY, "", [], id="library"),
        pytest.param(f"{PARSER}\nPARSER = {PARSER!r}\n{CHILD}", "", [FOUND], id="child"),
    ],
)  # fmt: skip
def test_parameters(directory: Path, script: str, rank: str, said: list[str]) -> None:
    """What a script parses is said once, by the first process alone, without secrets, and not to stdout."""
    (directory / "site-packages").mkdir()
    (directory / "site-packages" / "launcher.py").write_text(PARSER)
    code, printed, messages = run(directory, script, **({"RANK": rank} if rank else {}))
    assert code == 0
    assert messages == [f"{TAG} {each}" for each in said]
    assert not any("parameters" in line for line in printed)


def test_a_parser_that_exits(directory: Path) -> None:
    """A wrong option ends as it does without the reporter."""
    script = "import argparse; argparse.ArgumentParser(prog='a').parse_args(['--what'])"
    assert run(directory, script) == (2, [], ["usage: a [-h]", "a: error: unrecognized arguments: --what"])


TRANSFORMERS_TRAINER = """
import dataclasses

@dataclasses.dataclass
class TrainingArguments:
    output_dir: str = "out"
    learning_rate: float = 5e-5
    hub_token: str = ""
    report_to: list = dataclasses.field(default_factory=list)
    warmup: object = None

DEFAULT_CALLBACKS = []
"""
STATE = "type('State', (), dict(is_world_process_zero=False, is_local_process_zero=False))"


def test_training_arguments(directory: Path) -> None:
    """The arguments of a Trainer that have not their default values are said when it begins."""
    (directory / "transformers").mkdir()
    (directory / "transformers" / "__init__.py").write_text("class TrainerCallback:\n    pass\n")
    (directory / "transformers" / "trainer.py").write_text(TRANSFORMERS_TRAINER)
    script = "from transformers.trainer import *; import transformers.trainer as t\n"
    script += "arguments = TrainingArguments('out', 1e-3, 'hidden', ['a', 'b'], {1: 2})\n"
    script += f"t.DEFAULT_CALLBACKS[0]().on_train_begin(arguments, {STATE}, None)"
    said = '{"parameters":{"learning_rate":"0.001","report_to":"a b"}}'
    assert run(directory, script) == (0, [], [f"{TAG} {said}"])
