"""Feature gates: new features are switched by name, as in Kubernetes' components."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from trainer.kube.errors import ConfigurationError
from trainer.kube.field_errors import FieldError, invalid, not_supported


class Stage(StrEnum):
    """How mature a feature is (Kubernetes documentation, "Feature Gates")."""

    ALPHA = "Alpha"
    """Off unless switched on; may change or go away."""
    BETA = "Beta"
    """On unless switched off."""


@dataclass(frozen=True, slots=True)
class FeatureGate:
    """One switch."""

    name: str
    stage: Stage
    default: bool
    description: str
    """What it does, in one sentence."""

    def __str__(self) -> str:
        state = "true" if self.default else "false"
        return f"{self.name} ({self.stage}, default {state})"


TRAIN_JOB_PROGRESS: Final = FeatureGate(
    "TrainJobProgress",
    Stage.BETA,
    default=True,
    description="Read progress and metrics of trainings from their logs and write them to the status (KEP-2779); "
    "it needs the right to get pods/log.",
)
TRAIN_JOB_STATUS: Final = FeatureGate(
    "TrainJobStatus",
    Stage.ALPHA,
    default=False,
    description="Pods may also post their progress to a server of the manager, as in Kubeflow Trainer (Go): "
    "see statusServer.",
)
KNOWN_GATES: Final = (TRAIN_JOB_PROGRESS, TRAIN_JOB_STATUS)
"""All gates, by name."""

STAGE_GATES: Final = (
    FeatureGate("AllAlpha", Stage.ALPHA, default=False, description="All gates of the stage Alpha that are not named."),
    FeatureGate("AllBeta", Stage.BETA, default=False, description="All gates of the stage Beta that are not named."),
)
"""Switches for all gates of a stage; unset ones leave each gate its own default."""
_BY_NAME: Final = {gate.name: gate for gate in (*STAGE_GATES, *KNOWN_GATES)}
_TRUE: Final = frozenset({"1", "t", "T", "true", "TRUE", "True"})
_FALSE: Final = frozenset({"0", "f", "F", "false", "FALSE", "False"})


class FeatureGates:
    """The state of all gates; `settings` are what a file or command line says, by name, right or wrong."""

    def __init__(self, settings: Mapping[str, bool]) -> None:
        self._settings = settings

    def enabled(self, gate: FeatureGate) -> bool:
        """Whether a gate is on: its own setting, else that of its stage, else its default."""
        by_stage = {group.stage: group.name for group in STAGE_GATES}[gate.stage]
        return self._settings.get(gate.name, self._settings.get(by_stage, gate.default))

    def effective(self) -> dict[str, bool]:
        """Every gate and whether it is on."""
        return {gate.name: self.enabled(gate) for gate in KNOWN_GATES}

    def errors(self, path: str) -> Iterator[FieldError]:
        """Gates that do not exist; `path` is that of the settings."""
        for name in self._settings:
            if name not in _BY_NAME:
                yield not_supported(path, name, described())


def described() -> list[str]:
    """Every gate with its stage and default, those for whole stages first."""
    return list(map(str, (*STAGE_GATES, *KNOWN_GATES)))


def parse_feature_gates(text: str) -> dict[str, bool]:
    """Parse a list such as `A=true,B=false`; the last one of a repeated gate counts."""
    settings: dict[str, bool] = {}
    for entry in filter(None, (part.strip() for part in text.split(","))):
        name, equals, value = (part.strip() for part in entry.partition("="))
        if not equals or not name:
            raise ConfigurationError(str(invalid("--feature-gates", entry, "must be a list such as A=true,B=false")))
        if value not in _TRUE | _FALSE:
            raise ConfigurationError(str(invalid(f"--feature-gates[{name}]", value, "must be true or false")))
        settings[name] = value in _TRUE
    return settings
