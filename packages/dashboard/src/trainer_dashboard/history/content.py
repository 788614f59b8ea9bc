"""What is kept of objects and logs: without secrets, compressed, and in bounded size."""

from __future__ import annotations

import zlib
from typing import Any

import msgspec

from trainer.kube.logs.redaction import REDACTED
from trainer.kube.logs.secret_words import is_secret
from trainer.kube.objects import Object, mapping_at
from trainer_dashboard.recipe.secret_forms import clean_text

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
_FILE_OF_A_SECRET = (".key", ".token", ".password", ".passwd", ".secret", ".txt")


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
    entries = _entries(kept) if obj.get("kind") == "ConfigMap" else {}
    cleaned: Object = _clean({name: value for name, value in kept.items() if name not in entries}, _DEPTH)
    return cleaned | entries


def _entries(config_map: Object) -> Object:
    """Those of a ConfigMap may be variables of containers, or files; what is binary cannot be searched for secrets."""
    data, binary = mapping_at(config_map, "data"), mapping_at(config_map, "binaryData")
    shown = {
        clean_text(key): REDACTED if isinstance(value, str) and _is_secret_entry(key, value) else _clean(value, 1)
        for key, value in data.items()
    }
    hidden = dict.fromkeys(map(clean_text, binary), REDACTED)
    return {name: entries for name, entries in (("data", shown), ("binaryData", hidden)) if entries}


def _clean(value: Any, depth: int) -> Any:
    if isinstance(value, str):
        return clean_text(value)
    if not isinstance(value, list | dict):
        return value
    if not depth:
        return REDACTED
    if isinstance(value, list):
        return _clean_items(value, depth)
    name, given = value.get("name"), value.get("value")
    if isinstance(name, str) and isinstance(given, str) and is_secret(name, given):
        return {**value, "value": REDACTED}
    return {
        clean_text(key): REDACTED if isinstance(member, str) and is_secret(key, member) else _clean(member, depth - 1)
        for key, member in value.items()
    }


def _is_secret_entry(key: str, value: str) -> bool:
    """Whether an entry of a ConfigMap is one secret: a variable, or a file with nothing else in it."""
    stem = next((key.removesuffix(end) for end in _FILE_OF_A_SECRET if key.endswith(end)), key)
    return "." not in stem.lstrip(".") and (is_secret(stem, value) or (stem != key and is_secret(key, value)))


def _clean_items(items: list[Any], depth: int) -> list[Any]:
    """The items of a list; what follows an option such as `--token` is its value."""
    cleaned: list[Any] = []
    option = ""
    for item in items:
        if option and isinstance(item, str) and not item.startswith("--") and is_secret(option, item):
            cleaned.append(REDACTED)
        elif option in {"-u", "--user"} and isinstance(item, str) and ":" in item:
            cleaned.append(f"{item.partition(':')[0]}:{REDACTED}")
        else:
            cleaned.append(_clean(item, depth - 1))
        is_option = isinstance(item, str) and item.startswith("-") and len(item) <= _LONGEST_OPTION and "=" not in item
        option = item if is_option else ""
    return cleaned
