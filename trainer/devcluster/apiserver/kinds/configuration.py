"""ConfigMaps and Secrets: keys and values for containers."""

from __future__ import annotations

import base64
import binascii
import re
from typing import TYPE_CHECKING, Any

from trainer.devcluster.apiserver.definitions import ResourceDefinition
from trainer.devcluster.apiserver.kinds.causes import unchanged
from trainer.devcluster.apiserver.kinds.editing import fill, section
from trainer.devcluster.apiserver.strategy import StoreOnlyStrategy
from trainer.kube.field_errors import forbidden, invalid, too_long
from trainer.kube.resource import CONFIG_MAPS, SECRETS

if TYPE_CHECKING:
    from trainer.devcluster.apiserver.strategy import WriteContext
    from trainer.kube.field_errors import FieldError
    from trainer.kube.objects import Object

_MAX_BYTES = 1024 * 1024
_KEY = re.compile(r"[-._a-zA-Z0-9]+")
_KEY_TEXT = (
    "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or 'KEY_NAME',  or "
    f"'key-name', regex used for validation is '{_KEY.pattern}')"
)


class ConfigMapStrategy(StoreOnlyStrategy):
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
        if not causes and sum(map(_size, (*data.values(), *binary.values()))) > _MAX_BYTES:
            causes.append(too_long("data", _MAX_BYTES))
        return causes

    def validate_update(self, obj: Object, old: Object, context: WriteContext) -> list[FieldError]:
        """Check the object, and that an immutable one stays as it is."""
        return self.validate(obj, context) + _validate_immutable(obj, old, ("data", "binaryData"))


class SecretStrategy(StoreOnlyStrategy):
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
        """Check keys, values and size."""
        data = obj.get("data") or {}
        causes = _validate_base64("data", data)
        if not causes and sum(map(_size, data.values())) > _MAX_BYTES:
            causes.append(too_long("data", _MAX_BYTES))
        return causes

    def validate_update(self, obj: Object, old: Object, context: WriteContext) -> list[FieldError]:
        """Check the object, its type and that an immutable one stays as it is."""
        causes = self.validate(obj, context) + unchanged("type", obj["type"], old["type"])
        return causes + _validate_immutable(obj, old, ("data",))


def _drop_empty(obj: Object, *fields: str) -> None:
    for field in fields:
        if field in obj and not obj[field]:
            del obj[field]


def _validate_texts(field: str, data: Any) -> list[FieldError]:
    if not isinstance(data, dict):
        return [invalid(field, data, "must be a map of strings")]
    causes = _validate_keys(field, data)
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


def _validate_keys(field: str, data: Object) -> list[FieldError]:
    return [invalid(f"{field}[{key}]", key, _KEY_TEXT) for key in data if not _KEY.fullmatch(key) or len(key) > 253]


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


def _size(text: str) -> int:
    return len(text.encode())


CONFIG_MAP = ResourceDefinition(
    CONFIG_MAPS, ConfigMapStrategy(), singular="configmap", short_names=("cm",), generation=False
)
SECRET = ResourceDefinition(SECRETS, SecretStrategy(), singular="secret", generation=False)
