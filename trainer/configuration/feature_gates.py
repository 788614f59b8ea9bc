"""Feature gates: what is new, or on its way out, is switched by name, as in Kubernetes' components."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Final

from trainer.kube.errors import ConfigurationError
from trainer.kube.field_errors import FieldError, forbidden, invalid, not_supported

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping


class Stage(StrEnum):
    """How far a feature is (Kubernetes documentation, "Feature Gates")."""

    ALPHA = "Alpha"
    """Off unless switched on; may change or go away."""
    BETA = "Beta"
    """On unless switched off."""
    GA = "GA"
    """There for good; the gate only remains so that files that name it are still read."""


@dataclass(frozen=True, slots=True)
class FeatureGate:
    """One switch."""

    name: str
    """As in files and on the command line."""
    stage: Stage
    """How far the feature is."""
    default: bool
    """Whether it is on when nobody says anything."""
    description: str
    """What it does, in one sentence."""
    locked: str = ""
    """Why it stays as it is by default whatever anybody says. Default: "", it can be switched."""
    needs: str = ""
    """Name of the gate without which it does nothing. Default: "", none."""

    def __str__(self) -> str:
        state = "true" if self.default else "false"
        return f"{self.name} ({self.stage}, {'always' if self.locked else 'default'} {state})"


TRAIN_JOB_PROGRESS: Final = FeatureGate(
    "TrainJobProgress",
    Stage.BETA,
    default=True,
    description="Read progress and metrics of trainings from their logs and write them to the status (KEP-2779); "
    "it needs the right to get pods/log.",
)
PROGRESS_HISTORY: Final = FeatureGate(
    "ProgressHistory",
    Stage.ALPHA,
    default=False,
    description="Serve the samples of metrics of running trainings at /progress/v1/ of the metrics server; "
    "who may read them may read those of all namespaces.",
    needs=TRAIN_JOB_PROGRESS.name,
)
TRAIN_JOB_STATUS: Final = FeatureGate(
    "TrainJobStatus",
    Stage.ALPHA,
    default=False,
    description="Pods send their progress to a server of the manager, as in the released Kubeflow Trainer.",
    locked="progress is read from the logs of the pods instead: see TrainJobProgress",
)
KNOWN_GATES: Final = (PROGRESS_HISTORY, TRAIN_JOB_PROGRESS, TRAIN_JOB_STATUS)
"""All gates, by name."""

STAGE_GATES: Final = (
    FeatureGate("AllAlpha", Stage.ALPHA, default=False, description="All gates of the stage Alpha that are not named."),
    FeatureGate("AllBeta", Stage.BETA, default=False, description="All gates of the stage Beta that are not named."),
)
"""Switches for all gates of a stage; those that nobody sets leave each gate its own default."""
_TRUE: Final = frozenset({"1", "t", "T", "true", "TRUE", "True"})
_FALSE: Final = frozenset({"0", "f", "F", "false", "FALSE", "False"})


class FeatureGates:
    """What is switched on.

    Args:
        settings: what somebody has said, by name; see `errors` for what may be wrong with it.
        known: all gates. Default: ours.
    """

    def __init__(self, settings: Mapping[str, bool], known: Iterable[FeatureGate] = KNOWN_GATES) -> None:
        self._known = {gate.name: gate for gate in known}
        self._settings = settings

    def enabled(self, gate: FeatureGate) -> bool:
        """Whether a gate is on: what is said of it, else of all of its stage, else its default."""
        if gate.locked:
            return gate.default
        if gate.name in self._settings:
            return self._settings[gate.name]
        for group in STAGE_GATES:
            if gate.stage is group.stage and group.name in self._settings:
                return self._settings[group.name]
        return gate.default

    def effective(self) -> dict[str, bool]:
        """Every gate with what holds for it."""
        return {name: self.enabled(gate) for name, gate in sorted(self._known.items())}

    def errors(self, path: str) -> Iterator[FieldError]:
        """Gates that do not exist, or cannot be switched.

        Args:
            path: of the settings, such as `featureGates`.
        """
        for name, value in self._settings.items():
            gate = self._known.get(name)
            if gate is None:
                if name not in {group.name for group in STAGE_GATES}:
                    yield not_supported(path, name, described(self._known.values()))
            elif gate.locked and value != gate.default:
                yield forbidden(f"{path}[{name}]", f"cannot be {'on' if value else 'off'}: {gate.locked}")

    def conflicts(self, path: str) -> Iterator[FieldError]:
        """Gates that are on, and do nothing while another one is off.

        Args:
            path: of the settings, such as `featureGates`.
        """
        for gate in self._known.values():
            if gate.needs and self.enabled(gate) and not self.enabled(self._known[gate.needs]):
                detail = f"does nothing without {gate.needs}: switch that on, or this off"
                yield invalid(f"{path}[{gate.name}]", value=True, detail=detail)


def described(known: Iterable[FeatureGate] = KNOWN_GATES) -> list[str]:
    """Every gate with its stage and default, those for whole stages first."""
    return [str(gate) for gate in (*STAGE_GATES, *known)]


def parse_feature_gates(text: str) -> dict[str, bool]:
    """The settings in a list such as `A=true,B=false`; of a gate that is given twice the last one counts.

    Raises:
        ConfigurationError: it is no such list; names the entry.
    """
    settings: dict[str, bool] = {}
    for entry in filter(None, (part.strip() for part in text.split(","))):
        name, equals, value = (part.strip() for part in entry.partition("="))
        if not equals or not name:
            raise ConfigurationError(str(invalid("--feature-gates", entry, "must be a list such as A=true,B=false")))
        if value not in _TRUE | _FALSE:
            raise ConfigurationError(str(invalid(f"--feature-gates[{name}]", value, "must be true or false")))
        settings[name] = value in _TRUE
    return settings
