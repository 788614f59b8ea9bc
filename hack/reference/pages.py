"""All pages of the reference."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from hack.reference.command_line import command_line
from hack.reference.keys import labels_and_annotations
from hack.reference.markdown import code, link, page, prose, table
from hack.reference.schemas import Fields, rules_of_change
from hack.reference.series import metrics
from hack.reference.statuses import conditions, events, of_sweeps
from hack.reference.torchtune import torchtune
from hack.reference.v1_fields import v1_fields
from trainer.api import rules
from trainer.api.crds import crds
from trainer.api.trainingruntime import TrainingRuntime
from trainer.api.trainjob import TrainJob
from trainer.configuration.configuration import Configuration
from trainer.configuration.feature_gates import KNOWN_GATES, STAGE_GATES
from trainer.framework.plugin_api.devices import KINDS, DeviceKind
from trainer.kube.objects import Object
from trainer_sweeps.api.definitions import definition
from trainer_sweeps.api.optimizationjob import OptimizationJob
from trainer_v1_jobs.api.definitions import served_definitions
from trainer_v1_jobs.api.kinds import JAXJob, PyTorchJob


def train_job() -> str:
    """The page docs/reference/trainjob.md."""
    fields = Fields(TrainJob)
    return page(
        "TrainJob",
        _definition("TrainJob"),
        "Types of Kubernetes, such as EnvVar, are as its documentation has them. A sentence behind a description is a "
        "rule that the API server enforces. Who wins where runtime and TrainJob disagree: "
        "[trainjob.md](../trainjob.md).",
        fields.root(),
        _contents(fields),
        "## What may change",
        "Besides what a field itself says; [when](../trainjob.md#what-may-still-change), in other words.",
        rules_of_change(rules.train_job_rules()),
        *fields.sections(),
    )


def training_runtime() -> str:
    """The page docs/reference/trainingruntime.md."""
    fields = Fields(TrainingRuntime)
    return page(
        "TrainingRuntime and ClusterTrainingRuntime",
        _definition("TrainingRuntime"),
        _definition("ClusterTrainingRuntime"),
        "Both have the same fields. A TrainingRuntime is for the TrainJobs of its namespace, a ClusterTrainingRuntime "
        "for those of all. How to write one: [write-a-runtime.md](../write-a-runtime.md).",
        fields.root(),
        _contents(fields),
        *fields.sections(),
    )


def optimization_job() -> str:
    """The page docs/reference/optimizationjob.md."""
    fields = Fields(OptimizationJob)
    return page(
        "OptimizationJob",
        _definition("OptimizationJob", [definition()]),
        "A sweep: its trials are TrainJobs of one template with different parameters. `spec.trainJobTemplate.spec` has "
        "the fields of the [spec of a TrainJob](trainjob.md#trainjobspec), in the version that the cluster serves; all "
        "others are the same in both. Bounds and choices are texts: write them in quotes.",
        fields.root(),
        _contents(fields),
        *of_sweeps(),
        *fields.sections(),
    )


def pytorch_job() -> str:
    """The page docs/reference/pytorchjob.md."""
    return _served_job(PyTorchJob)


def jax_job() -> str:
    """The page docs/reference/jaxjob.md."""
    return _served_job(JAXJob)


def _served_job(model: type[PyTorchJob | JAXJob]) -> str:
    fields = Fields(model)
    return page(
        model.__name__,
        _definition(model.__name__, served_definitions()),
        "Served where an administrator has [switched it on](../install.md#pytorchjobs-and-jaxjobs-of-v1): each becomes "
        "a TrainJob. What each field becomes: [v1-fields.md](v1-fields.md). What may change while it runs, and what "
        "differs from the Training Operator: [migrate-from-v1.md](../migrate-from-v1.md#serve-the-v1-kinds).",
        fields.root(),
        _contents(fields),
        *fields.sections(),
    )


def configuration() -> str:
    """The page docs/reference/configuration.md."""
    fields = Fields(Configuration, by_path=True, defaults=Configuration().to_object())
    gates = [
        (code(each.name), str(each.stage), code(str(each.default).lower()), prose(each.description)) for each in _GATES
    ]
    return page(
        "Configuration of the manager",
        "The file that `trainer manager --config FILE` reads; `trainer manager --config FILE --print-config` shows "
        "what holds in the end, and starts nothing. Unknown fields, wrong values and another apiVersion or kind stop "
        "the start, with the path of the field. In the manifests it is `config/manager/configuration.yaml`. "
        "Durations are written as Go does: `500ms`, `15s`, `1m30s`.",
        fields.root(),
        "## Feature gates",
        "In `featureGates`, or on the command line, which goes before: `trainer manager --feature-gates "
        "TrainJobStatus=true`.",
        table(("gate", "stage", "default", "what it does"), gates),
        *fields.sections(),
        "## Known devices",
        "The names of resources and DeviceClasses that count as devices of a container, as regular expressions; the "
        "first row of which it has any decides. Those of `devices` come before them.",
        table(("resources", "DeviceClasses", "unit", "torchrun finds them", "source"), map(_device_row, KINDS)),
    )


def _device_row(kind: DeviceKind) -> tuple[str, ...]:
    names = (code(each) if each else "" for each in (kind.resources, kind.classes))
    return (*names, str(kind.unit), "yes" if kind.seen_by_torchrun else "no", kind.source)


_GATES = (*STAGE_GATES, *KNOWN_GATES)


PAGES: Mapping[str, Callable[[], str]] = {
    "trainjob.md": train_job,
    "trainingruntime.md": training_runtime,
    "optimizationjob.md": optimization_job,
    "pytorchjob.md": pytorch_job,
    "jaxjob.md": jax_job,
    "v1-fields.md": v1_fields,
    "conditions.md": conditions,
    "events.md": events,
    "labels.md": labels_and_annotations,
    "configuration.md": configuration,
    "metrics.md": metrics,
    "torchtune.md": torchtune,
    "cli.md": command_line,
}
"""What makes each file of docs/reference."""


def _contents(fields: Fields) -> str:
    return f"Parts: {', '.join(map(link, fields.names()))}."


def _definition(kind: str, definitions: Iterable[Object] | None = None) -> str:
    found = crds() if definitions is None else definitions
    spec: Object = next(crd["spec"] for crd in found if crd["spec"]["names"]["kind"] == kind)
    [version] = spec["versions"]
    where = "in a namespace" if spec["scope"] == "Namespaced" else "for the whole cluster"
    names = [spec["names"]["plural"], *spec["names"].get("shortNames", ())]
    said = f"{code(spec['group'] + '/' + version['name'])} {kind}, {where}. Names: {', '.join(map(code, names))}."
    columns = [column["name"] for column in version.get("additionalPrinterColumns", [])]
    return f"{said} Columns: {', '.join(columns)}." if columns else said
