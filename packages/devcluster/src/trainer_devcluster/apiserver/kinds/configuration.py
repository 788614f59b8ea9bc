"""ConfigMaps and Secrets: keys and values for containers."""

from __future__ import annotations

import base64
import binascii
import re
from typing import Any

from trainer.kube.field_errors import FieldError, forbidden, invalid, required, too_long
from trainer.kube.objects import Object, annotations_of
from trainer.kube.resource import CONFIG_MAPS, SECRETS
from trainer_devcluster.apiserver.definitions.resource_definition import ResourceDefinition
from trainer_devcluster.apiserver.definitions.strategy import Strategy, WriteContext
from trainer_devcluster.apiserver.kinds.fields import fill, section, unchanged

_MAX_BYTES = 1024 * 1024
_MAX_KEY = 253
_KEY = re.compile(r"[-._a-zA-Z0-9]+")
_KEY_TEXT = (
    "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or 'KEY_NAME',  or "
    f"'key-name', regex used for validation is '{_KEY.pattern}')"
)
_TOKEN_TYPE = "kubernetes.io/service-account-token"  # noqa: S105 - a type
_ACCOUNT_NAME = "kubernetes.io/service-account.name"


class ConfigMapStrategy(Strategy):
    """core/v1 ConfigMap."""

    def default(self, obj: Object, context: WriteContext) -> None:  # noqa: ARG002 - the protocol's signature
        """Drop empty maps, which are not stored."""
        _drop_empty(obj, "data", "binaryData")

    def validate(self, obj: Object, context: WriteContext) -> list[FieldError]:  # noqa: ARG002
        """Check keys, values and size."""
        data, binary = obj.get("data") or {}, obj.get("binaryData") or {}
        causes = _validate_texts("data", data) + _validate_base64("binaryData", binary)
        causes += [
            invalid(f"data[{key}]", key, "duplicate of key present in binaryData") for key in data if key in binary
        ]
        causes += [
            invalid(f"binaryData[{key}]", key, "duplicate of key present in data") for key in binary if key in data
        ]
        if not causes and sum(map(_size, data.values())) + sum(map(_decoded_size, binary.values())) > _MAX_BYTES:
            # The real server means the whole object, and writes its path like this.
            causes.append(too_long("[]", _MAX_BYTES))
        return causes

    def validate_update(self, obj: Object, old: Object, context: WriteContext) -> list[FieldError]:
        """Check the object, and that an immutable one stays as it is."""
        return _validate_immutable(obj, old, ("data", "binaryData")) + self.validate(obj, context)


class SecretStrategy(Strategy):
    """core/v1 Secret."""

    def default(self, obj: Object, context: WriteContext) -> None:  # noqa: ARG002
        """Encode `stringData`, which is only a way to write `data`."""
        fill(obj, type="Opaque")
        texts = obj.pop("stringData", None)
        if isinstance(texts, dict) and texts:
            data = section(obj, "data")
            for key, text in texts.items():
                data[key] = base64.b64encode(str(text).encode()).decode()
        _drop_empty(obj, "data")

    def validate(self, obj: Object, context: WriteContext) -> list[FieldError]:  # noqa: ARG002
        """Check keys, values, size, and that a token names its ServiceAccount."""
        data = obj.get("data") or {}
        causes = _validate_base64("data", data)
        if causes:
            return causes
        if sum(map(_decoded_size, data.values())) > _MAX_BYTES:
            causes.append(too_long("data", _MAX_BYTES))
        return causes + _validate_type(obj)

    def validate_update(self, obj: Object, old: Object, context: WriteContext) -> list[FieldError]:
        """Check the object, its type and that an immutable one stays as it is."""
        causes = unchanged("type", obj["type"], old["type"]) + _validate_immutable(obj, old, ("data",))
        return causes + self.validate(obj, context)


def _drop_empty(obj: Object, *fields: str) -> None:
    for field in fields:
        if field in obj and not obj[field]:
            del obj[field]


def _validate_texts(field: str, data: Any) -> list[FieldError]:
    if not isinstance(data, dict):
        return [invalid(field, data, "must be a map of strings")]
    causes = [invalid(f"{field}[{key}]", key, problem) for key in data for problem in config_key_problems(key)]
    return causes + [
        invalid(f"{field}[{key}]", value, "must be a string: quote the value")
        for key, value in data.items()
        if not isinstance(value, str)
    ]


def _validate_base64(field: str, data: Any) -> list[FieldError]:
    causes = _validate_texts(field, data)
    if causes:
        return causes
    # The value is left out of the message: it may be a secret.
    return [
        invalid(f"{field}[{key}]", "<redacted>", "must be base64; use stringData for plain text")
        for key, value in data.items()
        if not _is_base64(value)
    ]


def config_key_problems(key: str) -> list[str]:
    """What is wrong with the name of an entry of a ConfigMap or Secret; empty when nothing is."""
    problems = [] if len(key) <= _MAX_KEY else [f"must be no more than {_MAX_KEY} bytes"]
    if not _KEY.fullmatch(key):
        problems.append(_KEY_TEXT)
    if key in {".", ".."}:
        problems.append(f"must not be '{key}'")
    elif key.startswith(".."):
        problems.append("must not start with '..'")
    return problems


def _validate_type(obj: Object) -> list[FieldError]:
    kind = obj["type"]
    if kind == _TOKEN_TYPE:
        named = annotations_of(obj).get(_ACCOUNT_NAME)
        return [] if named else [required(f"metadata.annotations[{_ACCOUNT_NAME}]")]
    return []


def _validate_immutable(obj: Object, old: Object, fields: tuple[str, ...]) -> list[FieldError]:
    if not old.get("immutable"):
        return []
    causes = [] if obj.get("immutable") else [forbidden("immutable", "field is immutable when `immutable` is set")]
    return causes + [
        forbidden(field, "field is immutable when `immutable` is set")
        for field in fields
        if obj.get(field) != old.get(field)
    ]


def _is_base64(text: str) -> bool:
    try:
        base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return False
    return True


def _size(text: object) -> int:
    return len(text.encode()) if isinstance(text, str) else 0


def _decoded_size(text: object) -> int:
    return len(text) * 3 // 4 - text[-2:].count("=") if isinstance(text, str) else 0


CONFIG_MAP = ResourceDefinition(
    CONFIG_MAPS, ConfigMapStrategy(), singular="configmap", short_names=("cm",), generation=False
)
SECRET = ResourceDefinition(SECRETS, SecretStrategy(), singular="secret", generation=False)
