"""The files of a new plugin: a distribution that is installed, tested and type-checked as it stands."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from string import Template
from typing import Final

from trainer.cli.errors import BadInputError
from trainer.plugins import BUILT_IN

_NAME: Final = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")
_LONGEST: Final = 40

_PYPROJECT: Final = """\
[build-system]
requires = ["setuptools>=77"]
build-backend = "setuptools.build_meta"

[project]
name = "trainer-$name"
version = "0.1.0"
description = "A plugin for the controller manager of TrainJobs"
readme = "README.md"
requires-python = ">=3.11"
dependencies = ["trainer-operator"]

[project.entry-points."trainer.plugins"]
$name = "$module.plugin:$class_name"

[tool.setuptools.packages.find]
where = ["src"]

[tool.setuptools.package-data]
$module = ["py.typed"]

[tool.pytest.ini_options]
pythonpath = ["src"]

[tool.ruff]
line-length = 120

[tool.mypy]
strict = true
mypy_path = "src"
files = ["src", "tests"]
"""
_README: Final = """\
# $name

A plugin for the controller manager of TrainJobs: `src/$module/plugin.py`.

    pytest                      # its tests, which need no cluster
    pip install -e .            # beside the manager, which finds it by the entry point in pyproject.toml
    trainer plugins             # whether it is found, and what it takes part in
    trainer render -f job.yaml  # what a TrainJob of yours becomes with it

The configuration of the manager sets it: `plugins.configuration[$name].value`.
"""
_PLUGIN: Final = '''\
"""Gives the containers that train the variable $variable."""

from trainer.api.model import ApiModel
from trainer.api.trainjob import TrainJob
from trainer.framework import PluginContext, RuntimeInfo


class Settings(ApiModel):
    """What the manager's configuration may say under `plugins.configuration[$name]`."""

    value: str = "hello"


class $class_name:
    """Its name is that of the entry point; it serves runtimes of every framework."""

    name = "$name"
    ml_policy_sources: frozenset[str] = frozenset()

    def __init__(self, context: PluginContext) -> None:
        self._value = context.settings(Settings).value

    def enforce_ml_policy(self, info: RuntimeInfo, train_job: TrainJob) -> None:
        """Set the variable; one that the TrainJob sets itself wins."""
        for container in info.training_containers:
            container.set_env([{"name": "$variable", "value": self._value}])
'''
_TEST: Final = '''\
"""What the plugin does to a TrainJob, shown on what is built of it."""

import pytest
from trainer.api.invalid_object import InvalidObjectError
from trainer.api.trainingruntime import ClusterTrainingRuntime
from trainer.api.trainjob import TrainJob
from trainer.framework import Pipeline, PluginContext, Registry, StaticReader
from trainer.plugins.jobset import JobSetPlugin

from $module.plugin import $class_name

POD = {"containers": [{"name": "trainer", "image": "train:1"}]}
JOBS = [{"name": "node", "template": {"spec": {"template": {"spec": POD}}}}]
RUNTIME = ClusterTrainingRuntime.from_object(
    {"metadata": {"name": "plain"}, "spec": {"template": {"spec": {"replicatedJobs": JOBS}}}}
)
TRAIN_JOB = TrainJob.from_object(
    {"metadata": {"name": "demo", "namespace": "team", "uid": "1"}, "spec": {"runtimeRef": {"name": "plain"}}}
)


def plugin(**configuration: object) -> $class_name:
    """The plugin, as the manager makes it with this part of its configuration."""
    return $class_name(PluginContext(StaticReader(), configuration))


@pytest.mark.parametrize(
    ("configuration", "value"),
    [pytest.param({}, "hello", id="default"), pytest.param({"value": "good day"}, "good day", id="configured")],
)
def test_variable(configuration: dict[str, object], value: str) -> None:
    """The containers that train get the variable, with the value of the configuration."""
    pipeline = Pipeline(Registry([JobSetPlugin(StaticReader()), plugin(**configuration)]))
    [jobset] = pipeline.build(TRAIN_JOB, RUNTIME)
    pod = jobset.object["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]["spec"]
    assert {"name": "$variable", "value": value} in pod["containers"][0]["env"]


def test_wrong_configuration() -> None:
    """A setting that there is not keeps the manager from starting, with its name."""
    with pytest.raises(InvalidObjectError, match="valeu"):
        plugin(valeu="hello")
'''


_DISTRIBUTIONS = frozenset({"dashboard", "devcluster", "initializers", "kube-testing", "operator", "v1-jobs"})
"""Names of our own distributions, behind `trainer-`."""


def plugin_files(name: str) -> Mapping[str, str]:
    """The files of a distribution with a plugin of this name, by their path in it.

    Raises:
        BadInputError: it cannot be the name of a plugin.
    """
    if not _NAME.fullmatch(name) or len(name) > _LONGEST:
        raise BadInputError(
            f"NAME: must be words of lower-case letters and digits, joined by hyphens, at most {_LONGEST} characters, "
            f"such as team-labels: got {name!r}"
        )
    if name in _DISTRIBUTIONS:
        raise BadInputError(f"NAME: trainer-{name} is a distribution of ours: choose another name")
    if name in BUILT_IN:
        raise BadInputError(f"NAME: there is a built-in plugin {name}: choose another name")
    words = name.split("-")
    module = "_".join(["trainer", *words])
    values = {
        "name": name,
        "module": module,
        "class_name": "".join(word.capitalize() for word in [*words, "plugin"]),
        "variable": "_".join(["trainer", *words]).upper(),
    }
    templates = {
        "pyproject.toml": _PYPROJECT,
        "README.md": _README,
        f"src/{module}/__init__.py": '"""A plugin for the controller manager of TrainJobs."""\n',
        f"src/{module}/py.typed": "",
        f"src/{module}/plugin.py": _PLUGIN,
        "tests/test_plugin.py": _TEST,
    }
    return {path: Template(text).substitute(values) for path, text in templates.items()}


def write_new(directory: Path, files: Mapping[str, str]) -> None:
    """Make a directory with these files.

    Raises:
        BadInputError: something of this name is there, or it cannot be written.
    """
    try:
        directory.mkdir(parents=True)
        for path, text in files.items():
            (directory / path).parent.mkdir(parents=True, exist_ok=True)
            (directory / path).write_text(text, encoding="utf-8")
    except FileExistsError:
        raise BadInputError(f"{directory}: is there already, and stays as it is: name another --directory") from None
    except OSError as error:
        raise BadInputError(f"{directory}: {error.strerror}: name another --directory") from None
