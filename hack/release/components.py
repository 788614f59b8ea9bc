"""Components of a software bill of materials, from what describes them: metadata, lock files, packages of Debian."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable, Iterator, Mapping
from email.message import Message
from importlib.metadata import Distribution, PackageNotFoundError, distribution

from cyclonedx.contrib.license.factories import LicenseFactory
from cyclonedx.model import ExternalReference, ExternalReferenceType, HashAlgorithm, HashType, XsUri
from cyclonedx.model.component import Component, ComponentType
from cyclonedx.model.license import License
from packageurl import PackageURL
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from hack.release.image_contents import Debian

_LONGEST_NAME = 100
"""Characters of a licence's name: what is longer in metadata is its text."""
_LICENCES = LicenseFactory()


def python(metadata: Message, version: str, sha256: str | None = None, allowed: Iterable[str] = ()) -> Component:
    """Give the component of a Python distribution.

    Args:
        metadata: its core metadata.
        version: the one that is described, which a checkout's metadata may lag behind.
        sha256: of its wheel, where that is one file.
        allowed: SHA-256 of the files from which it may have been installed.
    """
    name = canonicalize_name(str(metadata["Name"]))
    purl = PackageURL("pypi", None, name, version)
    reference = ExternalReference(
        type=ExternalReferenceType.DISTRIBUTION,
        url=XsUri(purl.to_string()),
        hashes=[_sha256(each) for each in allowed],
    )
    return Component(
        name=name,
        version=version,
        type=ComponentType.LIBRARY,
        purl=purl,
        bom_ref=purl.to_string(),
        description=metadata["Summary"],
        licenses=_licences(_declared(metadata)),
        hashes=[_sha256(sha256)] if sha256 else (),
        external_references=[reference] if reference.hashes else (),
    )


def debian(package: Debian, distribution_name: str) -> Component:
    """Give the component of a package of Debian."""
    qualifiers = {"arch": package.architecture} | ({"distro": distribution_name} if distribution_name else {})
    purl = PackageURL("deb", "debian", package.name, package.version, qualifiers)
    return Component(
        name=package.name,
        version=package.version,
        type=ComponentType.LIBRARY,
        purl=purl,
        bom_ref=purl.to_string(),
        licenses=[_LICENCES.make_with_name(each) for each in package.licences],
    )


def interpreter(version: str) -> Component:
    """Give the component of a Python that was compiled from its source."""
    purl = PackageURL("generic", None, "python", version)
    licences = _licences("Python-2.0")
    return Component(
        name="python",
        version=version,
        type=ComponentType.APPLICATION,
        purl=purl,
        bom_ref=purl.to_string(),
        licenses=licences,
    )


def bundled(lock: str) -> Iterator[Component]:
    """Give the components of npm that a package-lock.json brings into a bundle: all but those for development."""
    for place, entry in sorted(json.loads(lock)["packages"].items()):
        if not place or entry.get("dev"):
            continue
        namespace, _, name = place.rpartition("node_modules/")[2].rpartition("/")
        purl = PackageURL("npm", namespace or None, name, entry["version"])
        algorithm, _, digest = entry.get("integrity", "").partition("-")
        sums = [HashType(alg=HashAlgorithm.SHA_512, content=base64.b64decode(digest).hex())]
        yield Component(
            name=name,
            group=namespace or None,
            version=entry["version"],
            type=ComponentType.LIBRARY,
            purl=purl,
            bom_ref=purl.to_string(),
            licenses=_licences(entry.get("license", "")),
            hashes=sums if algorithm == "sha512" else (),
        )


def required(requirements: Iterable[str], versions: Mapping[str, str]) -> dict[str, frozenset[str]]:
    """Follow requirements through what is installed here.

    Args:
        requirements: as metadata has them.
        versions: that must be installed, by normalized name.

    Returns:
        what each distribution requires itself, by normalized names.

    Raises:
        ValueError: something is not installed, or in another version.
    """
    found: dict[str, frozenset[str]] = {}
    done: set[tuple[str, str]] = set()
    left = applying(requirements)
    while left:
        requirement = left.pop()
        name = canonicalize_name(requirement.name)
        for extra in {"", *requirement.extras} - {each for which, each in done if which == name}:
            done.add((name, extra))
            following = applying(_installed(name, versions).requires or (), extra)
            left += following
            found[name] = found.get(name, frozenset()) | {canonicalize_name(each.name) for each in following}
    return found


def applying(requirements: Iterable[str], extra: str = "") -> list[Requirement]:
    """Give the requirements whose markers fit this Python, this machine and an extra."""
    parsed = (Requirement(each) for each in requirements)
    return [each for each in parsed if each.marker is None or each.marker.evaluate({"extra": extra})]


def _installed(name: str, versions: Mapping[str, str]) -> Distribution:
    version = versions.get(name, "none")
    try:
        found = distribution(name)
    except PackageNotFoundError:
        raise ValueError(
            f"{name} {version} is not installed: pip install --constraint constraints.txt {name}"
        ) from None
    # A checkout that is installed has the version that it had when it was.
    if found.version != version and not name.startswith("trainer-"):
        raise ValueError(f"{name} {found.version} is installed, the version of constraints.txt is {version}")
    return found


def _declared(metadata: Message) -> str:
    """Give the licence that metadata declares, by the newest of three ways."""
    if expression := metadata["License-Expression"]:
        return str(expression)
    text = str(metadata["License"] or "").strip()
    if text and "\n" not in text and len(text) <= _LONGEST_NAME and text != "UNKNOWN":
        return text
    classifiers = [str(each) for each in metadata.get_all("Classifier", ()) if each.startswith("License ::")]
    return ", ".join(each.rpartition(" :: ")[2] for each in classifiers)


def _licences(declared: str) -> list[License]:
    return [_LICENCES.make_from_string(declared)] if declared else []


def _sha256(content: str) -> HashType:
    return HashType(alg=HashAlgorithm.SHA_256, content=content)
