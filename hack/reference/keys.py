"""Labels and annotations, from the constants that are their names."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import trainer
import trainer_devcluster
import trainer_v1_jobs
from hack.reference.docstrings import Constant, constants
from hack.reference.markdown import code, page, prose, table

_PACKAGE = Path(trainer.__file__).parent
_DEV_CLUSTER_PACKAGE = Path(trainer_devcluster.__file__).parent
_V1_JOBS_PACKAGE = Path(trainer_v1_jobs.__file__).parent
_OURS = "trainer.kubeflow.org/"
_OF_V1_JOBS = "training.kubeflow.org/"
_DEV_CLUSTER = "devcluster.trainer/"
_OTHERS = ("jobset.sigs.k8s.io/", "batch.kubernetes.io/", "scheduling.k8s.io/", "scheduling.volcano.sh/")
_VALIDATION = "trainer.kubeflow.org/webhook-validation"
_NOT_CHECKED = (
    "Label of a runtime: `disabled` keeps the webhooks of the manifests from looking at it, for tools that install "
    "runtimes before the manager."
)


def labels_and_annotations() -> str:
    """The page docs/reference/labels.md."""
    return page(
        "Labels and annotations",
        "## Ours",
        _keys(_OURS, extra=[(code(_VALIDATION), _NOT_CHECKED)]),
        "The progress of trainings: [progress.md](../progress.md). On the Namespace and objects of a Deployment there "
        "are the usual `app.kubernetes.io/*` labels.",
        "## Of JobSet, Kubernetes and schedulers",
        "By these Jobs and pods of a TrainJob are found, for example with "
        "`kubectl get pods -l jobset.sigs.k8s.io/jobset-name=NAME`.",
        _keys(*_OTHERS),
        "## Of PyTorchJobs and JAXJobs",
        "Where they are [served](../migrate-from-v1.md#serve-the-v1-kinds), their pods have the labels of the Training "
        "Operator.",
        _keys(_OF_V1_JOBS, package=_V1_JOBS_PACKAGE),
        "## Of the dev cluster",
        "Annotations of pods: `runs-for` and `exits-with` where `trainer cluster --fake-pods` runs no processes, "
        "`metric-` also of HorizontalPodAutoscalers. `ready` is of the Node. See [devcluster.md](../devcluster.md).",
        _keys(_DEV_CLUSTER, package=_DEV_CLUSTER_PACKAGE),
    )


def keys(*prefixes: str, package: Path = _PACKAGE) -> list[Constant]:
    """The constants whose value begins with one of the prefixes, by value.

    Args:
        prefixes: of keys.
        package: the directory of the package to look through. Default: that of the manager.

    Raises:
        ValueError: one of them has no docstring.
    """
    found = [
        constant
        for path in sorted(package.rglob("*.py"))
        if any(prefix in path.read_text("utf-8") for prefix in prefixes)
        for constant in constants(path)
        if constant.value.startswith(prefixes) and " " not in constant.value
    ]
    undocumented = [constant.name for constant in found if not constant.docstring]
    if undocumented:
        raise ValueError(f"constants without docstring: {', '.join(undocumented)}")
    return sorted(found, key=lambda constant: constant.value)


def _keys(*prefixes: str, package: Path = _PACKAGE, extra: Iterable[tuple[str, str]] = ()) -> str:
    rows = [(code(constant.value), prose(constant.docstring)) for constant in keys(*prefixes, package=package)]
    return table(("key", "where, and what it means"), sorted([*rows, *extra]))
