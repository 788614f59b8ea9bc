"""Software bills of materials in CycloneDX: one for each wheel, one for each image."""

from __future__ import annotations

import uuid
import zipfile
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from email import message_from_bytes, message_from_string
from email.message import Message
from importlib.metadata import distribution
from pathlib import Path

from cyclonedx.model import HashAlgorithm, HashType
from cyclonedx.model.bom import Bom
from cyclonedx.model.component import Component, ComponentType
from cyclonedx.output.json import JsonV1Dot6
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator
from packageurl import PackageURL
from packaging.utils import canonicalize_name

from hack.oci.listing import Image
from hack.pins import hashes, pins
from hack.release import components
from hack.release.checksums import sha256
from hack.release.image_contents import Contents, contents
from hack.release.settings import Release

_BUNDLE = Path("packages/dashboard/web/package-lock.json")
_BUNDLED_IN = "trainer-dashboard"
_NAMESPACE = uuid.UUID("5f1f6a2e-4d9c-4c0e-9a54-3c8f3a0b7d11")
"""Of serial numbers, which follow from what a bill is about: the same release has the same ones."""


def write(
    release: Release, tree: Path, wheels: Iterable[Path], images: Iterable[Image], output: Path
) -> tuple[Path, ...]:
    """Write a bill for each wheel and for each platform of each image.

    Files are named after what they are about: `FILE.cdx.json`, and such as `NAME-VERSION-linux-amd64.cdx.json`.
    A wheel is listed with all that it requires, in the versions that the project is tested with; an image with all that
    is installed in it.

    Raises:
        ValueError: something that a wheel requires is not installed here in its pinned version.
    """
    wheels = tuple(wheels)
    versions = pins((tree / "constraints.txt").read_text("utf-8"))
    ours = {str(canonicalize_name(str(metadata_of(wheel)["Name"]))): wheel for wheel in wheels}
    versions |= dict.fromkeys(ours, release.version)
    written = [
        _write(_of_wheel(release, tree, wheel, ours, versions), output / f"{wheel.name}.cdx.json") for wheel in wheels
    ]
    allowed: dict[str, tuple[str, ...]] = {}
    for requirements in sorted(tree.glob("images/*/requirements.txt")):
        allowed |= hashes(requirements.read_text("utf-8"))
    for image in images:
        for installed in contents(image.archive):
            bill = _of_image(release, image, installed, allowed)
            name = f"{image.name}-{release.version}-{installed.platform.replace('/', '-')}.cdx.json"
            written.append(_write(bill, output / name))
    return tuple(written)


def metadata_of(wheel: Path) -> Message:
    """Give the core metadata of a wheel."""
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (each for each in archive.namelist() if each.endswith(".dist-info/METADATA"))
        return message_from_bytes(archive.read(name))


def _of_wheel(release: Release, tree: Path, wheel: Path, ours: Mapping[str, Path], versions: Mapping[str, str]) -> Bom:
    metadata = metadata_of(wheel)
    subject = components.python(metadata, release.version, sha256(wheel))
    bom = _bill(release, subject, sha256(wheel))
    requirements = metadata.get_all("Requires-Dist", ())
    needed = components.required(requirements, versions)
    found = {name: _of_requirement(name, versions[name], ours) for name in needed if name != subject.name}
    for name, component in found.items():
        bom.components.add(component)
        bom.register_dependency(component, [found[each] for each in needed[name] if each in found])
    bundle = list(components.bundled((tree / _BUNDLE).read_text("utf-8"))) if subject.name == _BUNDLED_IN else []
    bom.components.update(bundle)
    direct = {canonicalize_name(each.name) for each in components.applying(requirements)}
    bom.register_dependency(subject, [*(found[name] for name in direct), *bundle])
    return bom


def _of_requirement(name: str, version: str, ours: Mapping[str, Path]) -> Component:
    if name in ours:
        return components.python(metadata_of(ours[name]), version, sha256(ours[name]))
    return components.python(message_from_string(distribution(name).read_text("METADATA") or ""), version)


def _of_image(release: Release, image: Image, installed: Contents, allowed: Mapping[str, tuple[str, ...]]) -> Bom:
    digest = installed.digest.removeprefix("sha256:")
    place = {"repository_url": f"{release.registry}/{image.name}", "arch": installed.platform.partition("/")[2]}
    purl = PackageURL("oci", None, image.name, installed.digest, place)
    subject = Component(
        name=image.name,
        version=release.version,
        type=ComponentType.CONTAINER,
        purl=purl,
        bom_ref=purl.to_string(),
        hashes=[HashType(alg=HashAlgorithm.SHA_256, content=digest)],
    )
    bom = _bill(release, subject, digest)
    bom.components.update(components.debian(package, installed.distribution) for package in installed.debian)
    for metadata in installed.python:
        name, version = canonicalize_name(str(metadata["Name"])), str(metadata["Version"])
        bom.components.add(components.python(metadata, version, allowed=allowed.get(f"{name}=={version}", ())))
    if installed.interpreter:
        bom.components.add(components.interpreter(installed.interpreter))
    bom.register_dependency(subject, bom.components)
    return bom


def _bill(release: Release, subject: Component, digest: str) -> Bom:
    bom = Bom(serial_number=uuid.uuid5(_NAMESPACE, f"{subject.name} {digest}"))
    bom.metadata.timestamp = datetime.fromtimestamp(release.epoch, UTC)
    bom.metadata.component = subject
    return bom


def _write(bom: Bom, target: Path) -> Path:
    text = JsonV1Dot6(bom).output_as_string(indent=1)
    if error := JsonStrictValidator(SchemaVersion.V1_6).validate_str(text):
        raise ValueError(f"{target.name} does not fit the schema of CycloneDX: {error}")
    target.write_text(f"{text}\n", encoding="utf-8")
    return target
