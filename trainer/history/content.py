"""What is kept of objects and logs: without secrets, compressed, and in bounded size."""

from __future__ import annotations

import re
import zlib
from typing import TYPE_CHECKING, Any

import msgspec

from trainer.kube.logs.redaction import CREDENTIAL_NAMES, QUOTED_VALUE, REDACTED, is_secret_key, redact_text
from trainer.kube.objects import mapping_at

if TYPE_CHECKING:
    from trainer.kube.objects import Object

OBJECT_LIMIT = 512 * 1024
"""Bytes of JSON of one object; of a larger one its metadata and status are kept."""
CONFIG_MAP_LIMIT = 64 * 1024
"""The same for ConfigMaps, which may have anything in them."""
_INFLATED_LIMIT = 64 * 1024 * 1024
"""Bytes; nothing that we write is larger, and a database may be anybody's."""
_LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
_DEPTH = 64
"""Levels of an object that are kept; those of Kubernetes have about twenty."""
_LONGEST_OPTION = 64
_OPTION = rf"--?[\w-]{{0,40}}(?:{CREDENTIAL_NAMES}|secret|passw)[\w-]{{0,20}}"
_SECRET_OPTION = re.compile(_OPTION, re.IGNORECASE)
_GIVEN_OPTION = re.compile(
    rf"(?<![\w-])({_OPTION}[ =](?:['\"](?!\s))?+)(?:{QUOTED_VALUE}|(?<=[ =])[^\s'\"]+)", re.IGNORECASE | re.DOTALL
)
_SECRET_VARIABLE = re.compile(
    rf"{CREDENTIAL_NAMES}|secret|credential|passw|pwd|auth|_pat$|_dsn$|(?:^|_)(?:key|pass)$|connection_?string|webhook",
    re.IGNORECASE,
)
_HARMLESS_PART = re.compile(r"tokeni[sz]|(?:^|_)(?:max|min|num|n|total)_(?:\w{0,20}_)?tokens$", re.IGNORECASE)
_KNOWN_TOKEN = re.compile(
    r"\b(?:hf_|gh[opsur]_|github_pat_|glpat-|xox[abeprs]-|sk-|AKIA|ASIA|AIza|npm_|dop_v1_)[\w-]{12,}"
)


def compressed(content: object) -> bytes:
    """Content as JSON, compressed."""
    return zlib.compress(msgspec.json.encode(content), 6)


def inflated(data: bytes) -> Any:
    """The content that was `compressed`.

    Raises:
        ValueError: it is damaged, or far larger than anything that we write.
    """
    return msgspec.json.decode(decompressed(data))


def decompressed(data: bytes) -> bytes:
    """Bytes that zlib has compressed.

    Raises:
        ValueError: they are damaged, or far larger than anything that we write.
    """
    stream = zlib.decompressobj()
    try:
        content = stream.decompress(data, _INFLATED_LIMIT)
    except zlib.error as error:
        raise ValueError(f"the content is damaged: {error}") from None
    if stream.unconsumed_tail:
        raise ValueError(f"the content is larger than {_INFLATED_LIMIT} bytes")
    return content


def without_secrets(obj: Object) -> Object:
    """An object as it is kept: values of variables that may be secret are replaced, and references to Secrets stay.

    A variable is taken for secret by its name, and any text by its form, such as a token or a password in a URL.
    """
    metadata = {name: value for name, value in mapping_at(obj, "metadata").items() if name != "managedFields"}
    if "annotations" in metadata:
        metadata["annotations"] = {k: v for k, v in mapping_at(metadata, "annotations").items() if k != _LAST_APPLIED}
    kept = {**obj, "metadata": metadata}
    limit = CONFIG_MAP_LIMIT if obj.get("kind") == "ConfigMap" else OBJECT_LIMIT
    for names in (kept.keys(), ("apiVersion", "kind", "metadata", "status"), ("apiVersion", "kind")):
        kept = {name: kept[name] for name in names if name in kept}
        if len(msgspec.json.encode(kept)) <= limit:
            break
    cleaned: Object = _clean(_without_variables(kept) if obj.get("kind") == "ConfigMap" else kept, _DEPTH)
    return cleaned


def _without_variables(config_map: Object) -> Object:
    """Its entries may be variables of containers, or files; what is binary cannot be searched for secrets."""
    hidden = {
        "data": {
            key: REDACTED if key.isidentifier() and _is_secret_variable(key) else value
            for key, value in mapping_at(config_map, "data").items()
        },
        "binaryData": dict.fromkeys(mapping_at(config_map, "binaryData"), REDACTED),
    }
    return config_map | {name: entries for name, entries in hidden.items() if entries}


def clean_text(text: str) -> str:
    """A text without what has the form of a secret."""
    return _KNOWN_TOKEN.sub(REDACTED, _GIVEN_OPTION.sub(rf"\1{REDACTED}", redact_text(text)))


def _clean(value: Any, depth: int) -> Any:
    if isinstance(value, str):
        return clean_text(value)
    if not isinstance(value, list | dict):
        return value
    if not depth:
        return REDACTED
    if isinstance(value, list):
        return _clean_items(value, depth)
    name, has_value = value.get("name"), isinstance(value.get("value"), str)
    if has_value and isinstance(name, str) and _is_secret_variable(name):
        return {**value, "value": REDACTED}
    return {
        clean_text(key): REDACTED if isinstance(member, str) and is_secret_key(key) else _clean(member, depth - 1)
        for key, member in value.items()
    }


def _is_secret_variable(name: str) -> bool:
    return _SECRET_VARIABLE.search(_HARMLESS_PART.sub("", name)) is not None


def _clean_items(items: list[Any], depth: int) -> list[Any]:
    """The items of a list; what follows an option such as `--token` is its value."""
    cleaned: list[Any] = []
    is_secret = False
    for item in items:
        is_text = isinstance(item, str)
        cleaned.append(REDACTED if is_secret and is_text else _clean(item, depth - 1))
        is_secret = is_text and len(item) <= _LONGEST_OPTION and _SECRET_OPTION.fullmatch(item) is not None
    return cleaned
