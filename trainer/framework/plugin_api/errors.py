"""Why a TrainJob cannot become Jobs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from trainer.framework.runtimes.alternatives import Alternatives
from trainer.kube.errors import KubeError
from trainer.kube.field_errors import FieldError
from trainer.kube.objects import key_of, uid_of

if TYPE_CHECKING:
    from trainer.kube.objects import Object, ObjectKey
    from trainer.kube.resource import Resource


INTERNAL: Final = "InternalError"
"""Reason of an error that no author is to blame for: a plugin has raised."""

CLUSTER_LACKS: Final = "ClusterLacks"
"""Code of an error that goes away once what the runtime needs is installed: a plugin, or the CRD of a scheduler."""


_LONGEST_PROBLEM: Final = 500
"""Characters of an error that nobody expected; it may repeat what somebody wrote."""


class BuildError(Exception):
    """A TrainJob and its runtime do not fit together; each error names a field and the remedy.

    Retrying is useless until the TrainJob or the runtime changes.
    """

    def __init__(self, *errors: FieldError) -> None:
        super().__init__("; ".join(str(error) for error in errors))
        self.errors = errors


class RuntimeNotFoundError(BuildError):
    """The runtime of a TrainJob does not exist; the TrainJob is built as soon as it does.

    Args:
        kind: of the runtime.
        key: its namespace, "" for a ClusterTrainingRuntime, and its name.
        present: what the TrainJob can name instead. None when it has been built, so that its runtimeRef cannot change.
    """

    def __init__(self, kind: str, key: ObjectKey, present: Alternatives | None = None) -> None:
        self.kind = kind
        self.key = key
        self.present = present or Alternatives()
        place = f" in namespace {key.namespace}" if key.namespace else ""
        remedy = f"create it, or change spec.runtimeRef{present.hint(key.name)}" if present else "create it again"
        problem = f'Not found: "{key.name}": there is no {kind} of this name{place}; {remedy}'
        super().__init__(FieldError("spec.runtimeRef.name", problem, "FieldValueNotFound"))


class PluginError(BuildError):
    """A plugin raised something else than a BuildError, which is a defect of the plugin; only its TrainJob suffers.

    The work queue retries, since what the plugin stumbled over may go away.
    """

    def __init__(self, plugin: str, hook: str, error: BaseException) -> None:
        self.plugin = plugin
        self.hook = hook
        super().__init__(_internal(f"plugin {plugin} failed in {hook}", error))


class UnexpectedError(BuildError):
    """The build itself failed where nobody expected it, which is a defect of ours; only its TrainJob suffers.

    The work queue retries, as for a plugin.
    """

    def __init__(self, error: BaseException) -> None:
        super().__init__(_internal("the build failed, please report it", error))


def _internal(what: str, error: BaseException) -> FieldError:
    words = " ".join(str(error).split())[:_LONGEST_PROBLEM]
    problem = f"{type(error).__name__}: {words}".removesuffix(": ")
    return FieldError("", f"Internal error: {what}: {problem}", INTERNAL)


class ForeignObjectError(KubeError):
    """An object that we would create exists and belongs to somebody else; it is left alone. The work queue retries."""

    def __init__(self, resource: Resource, existing: Object) -> None:
        super().__init__(
            f"{resource.kind} {key_of(existing)} (uid {uid_of(existing)}) exists and does not belong to this TrainJob; "
            "delete it or give the TrainJob another name"
        )
