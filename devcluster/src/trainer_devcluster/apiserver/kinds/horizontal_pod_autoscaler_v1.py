"""HorizontalPodAutoscalers of autoscaling/v1; what is stored is autoscaling/v2."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from trainer.kube.api_semantics.value_types import UNTYPED
from trainer.kube.field_errors import invalid
from trainer.kube.objects import annotations_of
from trainer.kube.resource import HORIZONTAL_POD_AUTOSCALERS as V2
from trainer_devcluster.apiserver.conversion.autoscaling import METRICS, to_v1, to_v2
from trainer_devcluster.apiserver.conversion.converter import BuiltInConverter
from trainer_devcluster.apiserver.definitions.strategy import StoreOnlyStrategy
from trainer_devcluster.apiserver.definitions.versions import Versions
from trainer_devcluster.apiserver.kinds import horizontal_pod_autoscaler as v2
from trainer_devcluster.apiserver.kinds.editing import fill, section
from trainer_devcluster.apiserver.objects.built_in_types import built_in_type
from trainer_devcluster.apiserver.objects.decoding import WrongTypeError, normalize

if TYPE_CHECKING:
    from trainer.kube.field_errors import FieldError
    from trainer.kube.objects import Object
    from trainer_devcluster.apiserver.definitions.strategy import WriteContext

_V1: Final = replace(V2, version="v1")
_TYPING: Final = built_in_type(V2.api_version, V2.kind) or UNTYPED


class HorizontalPodAutoscalerV1Strategy(StoreOnlyStrategy):
    """autoscaling/v1 HorizontalPodAutoscaler: checked as the object of v2 that is stored."""

    def __init__(self) -> None:
        self._stored = v2.HorizontalPodAutoscalerStrategy()

    def default(self, obj: Object, context: WriteContext) -> None:  # noqa: ARG002 - the protocol's signature
        """Fill in the lower limit, and a goal for the CPU when nothing says by what to scale."""
        spec = section(obj, "spec")
        fill(spec, minReplicas=1)
        if METRICS not in annotations_of(obj):
            fill(spec, targetCPUUtilizationPercentage=v2.DEFAULT_UTILIZATION)

    def prepare_for_create(self, obj: Object, context: WriteContext) -> None:
        """Start it without a status."""
        self._stored.prepare_for_create(obj, context)

    def validate(self, obj: Object, context: WriteContext) -> list[FieldError]:
        """Check the annotations that hold fields of v2, and what all comes to."""
        return _unreadable(obj) or self._stored.validate(_to_store(obj), context)

    def validate_update(self, obj: Object, old: Object, context: WriteContext) -> list[FieldError]:
        """Check the same of a changed object."""
        return _unreadable(obj) or self._stored.validate_update(_to_store(obj), old, context)


def _unreadable(obj: Object) -> list[FieldError]:
    try:
        _to_store(obj)
    except ValueError as error:
        return [invalid("metadata.annotations", annotations_of(obj), str(error))]
    return []


def _to_store(obj: Object) -> Object:
    """An object of v1 as it is stored.

    Raises:
        ValueError: an annotation does not hold what it is for.
    """
    made = to_v2(obj)
    try:
        normalize(made, _TYPING)
    except WrongTypeError as error:
        raise ValueError(str(error)) from error
    v2.fill_defaults(made)
    return made


_VERSIONS: Final = Versions(V2.api_version, {}, BuiltInConverter({V2.api_version: _to_store, _V1.api_version: to_v1}))
HORIZONTAL_POD_AUTOSCALER = replace(v2.HORIZONTAL_POD_AUTOSCALER, versions=_VERSIONS)
HORIZONTAL_POD_AUTOSCALER_V1 = replace(
    HORIZONTAL_POD_AUTOSCALER, resource=_V1, strategy=HorizontalPodAutoscalerV1Strategy()
)
