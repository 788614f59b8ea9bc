"""Signatures by cosign without keys: who signs is the identity that the machine gives, such as a workflow of GitHub."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Final

from hack.publish.programs import PublishError, require, run
from hack.publish.registry import Published
from hack.release.checksums import NAME as SUMS

BUNDLE: Final = f"{SUMS}.sigstore.json"
"""Signature, certificate and proof of the log, for `cosign verify-blob --bundle`."""


def sign(published: Iterable[Published], bills: Path) -> None:
    """Sign images and charts, and attest to each platform of an image what it contains.

    Args:
        published: what is in the registry.
        bills: the folder with a file `NAME-VERSION-OS-ARCHITECTURE.cdx.json` for each platform of each image.

    Raises:
        PublishError: cosign or a bill is missing, or cosign fails.
    """
    require("cosign")
    published = tuple(published)
    to_attest = [
        (_bill(each, platform, bills), f"{each.name}@{digest}")
        for each in published
        for platform, digest in each.platforms
    ]
    for each in published:
        run("cosign", "sign", "--yes", "--recursive", each.by_digest)
    for bill, reference in to_attest:
        run("cosign", "attest", "--yes", "--type", "cyclonedx", "--predicate", str(bill), reference)


def _bill(image: Published, platform: str, bills: Path) -> Path:
    name = image.name.rpartition("/")[2]
    version = image.reference.rpartition(":")[2]
    path = bills / f"{name}-{version}-{platform.replace('/', '-')}.cdx.json"
    if not path.exists():
        raise PublishError(f"there is no {path}, which says what {image.reference} contains: make release")
    return path


def sign_sums(folder: Path) -> Path:
    """Sign the sums of all files of a release, and give the bundle.

    Raises:
        PublishError: there are no sums, cosign is missing, or it fails.
    """
    require("cosign")
    if not (folder / SUMS).exists():
        raise PublishError(f"there is no {folder / SUMS}: make release")
    run("cosign", "sign-blob", "--yes", "--bundle", str(folder / BUNDLE), str(folder / SUMS))
    return folder / BUNDLE


def subjects(published: Iterable[Published]) -> str:
    """Give digests and names as `sha256sum` prints them, of which a provenance speaks."""
    return "".join(f"{each.digest.removeprefix('sha256:')}  {each.name}\n" for each in published)
