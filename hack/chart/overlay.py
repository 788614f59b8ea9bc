"""The objects that kubectl makes of a directory of config/, and what every template of the chart does to them."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from copy import deepcopy
from functools import cache
from pathlib import Path
from typing import Any, Final

import yaml

from hack.chart.template_text import Expressions
from trainer.kube.objects import Object

CHART_NAME: Final = "kubeflow-trainer"
_CONFIG: Final = Path(__file__).parents[2] / "config"
_NAME: Final = "app.kubernetes.io/name"


def rendered(overlay: str) -> list[Object]:
    """The objects of `kubectl kustomize config/<overlay>`, each call with its own."""
    return deepcopy(_kustomized(overlay))


@cache
def _kustomized(overlay: str) -> list[Object]:
    command = [str(Path(sys.executable).parent / "kubectl"), "kustomize", str(_CONFIG / overlay)]
    text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return [obj for obj in yaml.load_all(text, yaml.CSafeLoader) if obj]


def objects_of(overlay: str, expressions: Expressions) -> list[Object]:
    """The objects of an overlay with accounts of its own, in the namespace and with the labels of a release."""
    objects = rendered(overlay)
    namespace = next(subject["namespace"] for obj in objects for subject in obj.get("subjects", ()))
    found: list[Object] = replaced(objects, {namespace: expressions.value("{{ .Release.Namespace }}")})
    for obj in found:
        label(obj, expressions)
    return found


def label(obj: Object, expressions: Expressions) -> None:
    """Release and values in labels and selectors."""
    for labels in _selectors(obj):
        labels[_NAME] = CHART_NAME
        labels["app.kubernetes.io/instance"] = expressions.value("{{ quote .Release.Name }}")
    expressions.extend(obj["metadata"]["labels"], ".Values.commonLabels")


def _selectors(value: Any) -> Iterator[Object]:
    """All mappings of labels of an object in which the name of our objects stands."""
    if isinstance(value, dict):
        if _NAME in value:
            yield value
        for inner in value.values():
            yield from _selectors(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _selectors(inner)


def put_image(pod: Object, expressions: Expressions) -> None:
    """The image of the values in the container of a pod."""
    pod["imagePullSecrets"] = expressions.json(".Values.image.pullSecrets")
    (container,) = pod["containers"]
    container["image"] = expressions.value(
        '{{ include "kubeflow-trainer.image" (dict "image" .Values.image "version" .Chart.AppVersion) }}'
    )
    container["imagePullPolicy"] = expressions.value("{{ .Values.image.pullPolicy }}")


def replaced(value: Any, texts: dict[str, str]) -> Any:
    """The same, with names and namespaces replaced wherever they stand."""
    if isinstance(value, dict):
        return {key: replaced(inner, texts) for key, inner in value.items()}
    if isinstance(value, list):
        return [replaced(inner, texts) for inner in value]
    if isinstance(value, str):
        return re.sub("|".join(map(re.escape, texts)), lambda match: texts[match[0]], value)
    return value
