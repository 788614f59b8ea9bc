"""The examples of sweeps, and those of their pages; `tests/test_examples.py` looks at scripts."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest
import yaml

from tests.config_maps import ROOT, examples
from trainer.api.optimization import variable_of
from trainer.api.trainjob import TRAIN_JOBS, TrainJob
from trainer_sweeps.api.optimizationjob import OptimizationJob, OptimizationJobSpec
from trainer_sweeps.commands.parameters import parse_options

each_sweep = pytest.mark.parametrize(
    "manifest",
    [pytest.param(path, id=path.parent.name) for path in examples() if path.name == "optimizationjob.yaml"],
)


_PAGES = [ROOT / "docs" / name for name in ("sweeps.md", "sweep-algorithms.md")]
_YAML = re.compile(r"^```yaml\n(.*?)^```", re.DOTALL | re.MULTILINE)


def sweep_of(manifest: Path) -> OptimizationJob:
    """The OptimizationJob of an example."""
    (obj,) = (doc for doc in yaml.safe_load_all(manifest.read_text()) if doc["kind"] == "OptimizationJob")
    return OptimizationJob.from_object(obj)


def test_pages() -> None:
    """The pages show one whole sweep, and the other parts that they show fit into it."""
    whole, *parts = (yaml.safe_load(text) for page in _PAGES for text in _YAML.findall(page.read_text()))
    assert OptimizationJob.from_object(whole).spec.num_trials == 20
    spec = whole["spec"]
    trials = [part.pop("trainJobTemplate")["spec"] for part in parts if "trainJobTemplate" in part]
    assert (len(parts), len(trials)) == (3, 1)
    for part in parts:
        template = {"spec": spec["trainJobTemplate"]["spec"] | (trials[0] if not part else {})}
        accept(OptimizationJob.from_object(whole | {"spec": spec | {"trainJobTemplate": template} | part}).spec)


def test_spaces_of_the_page() -> None:
    """Each space of the table is the same on the command line and in YAML."""
    rows = re.findall(r"^\| `'(.+?)'` \| `(.+?)` \|", _PAGES[0].read_text(), re.MULTILINE)

    assert len(rows) == 5
    for option, text in rows:
        (parsed,) = parse_options([option])
        assert parsed.space == yaml.safe_load(text)


def accept(spec: OptimizationJobSpec) -> None:
    """Raise unless the trials of a sweep are TrainJobs that the API accepts."""
    meta = {"apiVersion": TRAIN_JOBS.api_version, "kind": "TrainJob", "metadata": {"name": "trial"}}
    TrainJob.from_object(meta | {"spec": spec.train_job_template.spec})


@each_sweep
def test_parameters(manifest: Path) -> None:
    """The script has a default for each parameter of the sweep, and reports its metric."""
    text = manifest.with_name("train.py").read_text()
    (call,) = (
        node
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "parameters"
    )
    spec = sweep_of(manifest).spec
    chosen = {variable_of(parameter.name) for parameter in spec.parameters}
    assert chosen == {variable_of(keyword.arg or "") for keyword in call.keywords}
    assert f'"{spec.objectives[0].metric}"' in text


@each_sweep
def test_template(manifest: Path) -> None:
    """The trials are TrainJobs that the API accepts."""
    accept(sweep_of(manifest).spec)
