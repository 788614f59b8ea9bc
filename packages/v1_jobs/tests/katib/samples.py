"""Experiments, and what the trials of their OptimizationJobs are."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from trainer.cli.documents import DocumentError, checked, place
from trainer.cli.offline.conversion import converted
from trainer.cli.offline.render import Rendered, render_documents
from trainer.kube.objects import Object
from trainer.v1alpha1.discovery import Version
from trainer_sweeps.api.optimizationjob import OptimizationJob
from trainer_sweeps.trials.train_job import train_job_of

ROOM = Path(__file__).parent
USUAL = sorted((ROOM / "experiments").glob("*.yaml"))
"""Files with Experiments as users write them."""
LR: Object = {"name": "lr", "parameterType": "double", "feasibleSpace": {"min": "0.01", "max": "0.1"}}


def read(file: Path) -> Object:
    """The Experiment in a file."""
    found: Object = yaml.safe_load(file.read_text(encoding="utf-8"))
    return found


def job(args: list[str] | None = None, **container: Any) -> Object:
    """A Job, which uses the parameter lr."""
    main = {"name": "train", "image": "train:1", "args": args or ["${trialParameters.lr}"]} | container
    pods = {"restartPolicy": "Never", "containers": [main]}
    return {"apiVersion": "batch/v1", "kind": "Job", "spec": {"template": {"spec": pods}}}


def experiment(trial_spec: Object | None = None, template: Object | None = None, **spec: Any) -> Object:
    """An Experiment of 4 trials with one parameter, lr, of which nothing is lost; None leaves a member out."""
    trials = {
        "primaryContainerName": "train",
        "trialParameters": [{"name": "lr", "reference": "lr"}],
        "trialSpec": trial_spec or job(),
    } | (template or {})
    fields = {
        "objective": {"type": "minimize", "objectiveMetricName": "loss"},
        "algorithm": {"algorithmName": "random"},
        "maxTrialCount": 4,
        "parameters": [LR],
        "trialTemplate": {name: value for name, value in trials.items() if value is not None},
    } | spec
    return {
        "apiVersion": "kubeflow.org/v1beta1",
        "kind": "Experiment",
        "metadata": {"name": "demo"},
        "spec": {name: value for name, value in fields.items() if value is not None},
    }


def rendered(obj: Object, version: Version, values: dict[str, str]) -> Rendered:
    """The objects of a trial of an Experiment, as `trainer render` makes them; raises what admission refuses."""
    *runtimes, optimization_job = converted(obj, "f.yaml", version).objects
    documents = []
    spec = OptimizationJob.from_object(optimization_job).spec
    trial = train_job_of(optimization_job, spec, 1, values, version)
    del trial["metadata"]["ownerReferences"]  # the OptimizationJob has no uid yet
    for each in (*runtimes, trial):
        document = checked(each, each["metadata"]["name"])
        if isinstance(document, DocumentError):
            raise document
        documents.append(document)
    (found,) = render_documents(place(documents, namespace=None, default="default"))
    return found


def containers(found: Rendered) -> Iterator[Object]:
    """All containers of a rendered trial."""
    (jobset,) = [each.object for each in found.components if each.object["kind"] == "JobSet"]
    for replicated in jobset["spec"]["replicatedJobs"]:
        pods = replicated["template"]["spec"]["template"]["spec"]
        yield from (*pods["containers"], *pods.get("initContainers", []))
