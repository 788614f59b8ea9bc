"""The configuration as a file: read strictly, and written so that reading it gives the same again."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trainer.api.invalid_object import InvalidObjectError
from trainer.configuration.configuration import API_VERSION, KIND, Configuration
from trainer.configuration.feature_gates import FeatureGates
from trainer.kube.errors import ConfigurationError
from trainer.kube.field_errors import not_supported, required
from trainer.kubernetes_yaml import YamlError, dump, parse

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from pathlib import Path

    from trainer.kube.field_errors import FieldError
    from trainer.kube.objects import Object

_TYPE = {"apiVersion": API_VERSION, "kind": KIND}


def load_configuration(file: Path | None = None, feature_gates: Mapping[str, bool] | None = None) -> Configuration:
    """What a manager is told.

    Args:
        file: YAML. Default: None, the defaults of everything.
        feature_gates: those of the command line, which go before those of the file. Default: none.

    Raises:
        ConfigurationError: the file cannot be read, or has unknown or wrong fields; one line names all of them.
    """
    origin = f"{file}: " if file is not None else ""
    document = dict(_TYPE) if file is None else _read(file)
    _refuse(origin, _type_errors(document))
    if feature_gates:
        _refuse("", FeatureGates(feature_gates).errors("--feature-gates"))
        document = _with_feature_gates(document, feature_gates)
    try:
        return Configuration.from_object(document, strict=True)
    except InvalidObjectError as error:
        raise ConfigurationError(f"{origin}{'; '.join(map(str, error.errors))}") from error


def render_configuration(configuration: Configuration) -> str:
    """The YAML of a configuration with all defaults, which `load_configuration` understands."""
    return dump(configuration.effective().to_object())


def _read(file: Path) -> Object:
    try:
        documents = list(parse(file.read_text(encoding="utf-8")))
    except YamlError as error:
        place = f", {error.where}" if error.where else ""
        raise ConfigurationError(f"{file}{place}: {error}") from error
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigurationError(f"cannot read {file}: {' '.join(str(error).split())}") from error
    written = [document for document in documents if document is not None]
    if len(written) > 1:
        raise ConfigurationError(f"{file}: must be one document, not {len(written)}")
    document = written[0] if written else {}
    if not isinstance(document, dict):
        raise ConfigurationError(f"{file}: must be a mapping of settings, not {type(document).__name__}")
    return document


def _type_errors(document: Object) -> Iterator[FieldError]:
    """What else is in a file of another kind or version is not looked at: it means something else there."""
    for name, value in _TYPE.items():
        if document.get(name) is None:
            yield required(name, f"add {name}: {value}")
        elif document[name] != value:
            yield not_supported(name, document[name], [value])


def _with_feature_gates(document: Object, settings: Mapping[str, bool]) -> Object:
    present = document.get("featureGates")
    if present is not None and not isinstance(present, dict):
        return document
    return document | {"featureGates": {**(present or {}), **settings}}


def _refuse(origin: str, errors: Iterable[FieldError]) -> None:
    found = list(errors)
    if found:
        raise ConfigurationError(f"{origin}{'; '.join(map(str, found))}")
