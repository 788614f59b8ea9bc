"""All files of a release, in one flat folder, as a release page has them."""

from __future__ import annotations

import shutil
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from hack.oci.listing import Image
from hack.release import chart, checksums, manifests, notes, packages, sbom
from hack.release.images import images_of
from hack.release.settings import REGISTRY, REPOSITORY, ROOT, Release, git
from hack.release.source import stage, with_absolute_links

CONSTRAINTS = "constraints.txt"
"""The versions that were tested, and those of the release itself, for `pip install --constraint`."""


def make(release: Release, output: Path, *, images: Path | None, root: Path = ROOT) -> None:
    """Make a release, and put it into a folder in place of the one before.

    Args:
        release: its commit and addresses; what is not committed is no part of it.
        output: the folder; it is replaced when everything is made.
        images: the folder with images.json; None: manifests name images by their tags, and there is no bill of any.
        root: the repository.

    Raises:
        NotReproducibleError: two builds of the packages differ.
        RuntimeError: a program failed.
        ValueError: `output` is another folder, an image is of another version or commit, or something in the tree does
            not fit.
    """
    _check(output)
    _note(release, root)
    of_images = images_of(release, images) if images is not None else ()
    with tempfile.TemporaryDirectory(prefix="release-") as directory:
        workspace = Path(directory)
        made, tree = workspace / "made", workspace / "tree"
        made.mkdir()
        stage(release, tree, root)
        with _timed("packages, twice"):
            built = packages.build(release, made, workspace / "packages", root)
            packages.check_metadata(built)
        with _timed("chart, manifests, notes, bills of materials, sums"):
            chart.package(release, tree, of_images, made)
            manifests.write(release, tree, of_images, made)
            sbom.write(release, tree, (file for file in built if file.suffix == ".whl"), of_images, made)
            (made / CONSTRAINTS).write_text(_constraints(tree, built), encoding="utf-8")
            (made / notes.NAME).write_text(_notes(release, tree, of_images), encoding="utf-8")
            checksums.write(made)
        shutil.rmtree(output, ignore_errors=True)
        shutil.copytree(made, output)
    for path in sorted(output.iterdir()):
        sys.stdout.write(f"{path.stat().st_size:>12,}  {path.name}\n")


def _check(output: Path) -> None:
    if output.exists() and not output.is_dir():
        raise ValueError(f"{output} is a file: name a folder")
    if output.exists() and any(output.iterdir()) and not (output / checksums.NAME).exists():
        raise ValueError(f"{output} is no release, since it has no {checksums.NAME}: name another folder, or remove it")


def _note(release: Release, root: Path) -> None:
    if git("status", "--porcelain", root=root):
        sys.stderr.write(f"note: changes that are not committed are no part of {release.commit[:12]}\n")
    if release.repository == REPOSITORY or release.registry == REGISTRY:
        sys.stderr.write(
            f"note: {REPOSITORY} and {REGISTRY} are placeholders: REPOSITORY=https://github.com/OWNER/NAME "
            "REGISTRY=ghcr.io/OWNER says where it will be published\n"
        )


def _constraints(tree: Path, built: Iterable[Path]) -> str:
    ours = (sbom.metadata_of(file) for file in built if file.suffix == ".whl")
    pins = sorted(f"{each['Name']}=={each['Version']}\n" for each in ours)
    return (tree / CONSTRAINTS).read_text("utf-8") + "".join(pins)


def _notes(release: Release, tree: Path, of_images: Iterable[Image]) -> str:
    changes = notes.notes((tree / "CHANGELOG.md").read_text("utf-8"), release.version)
    references = manifests.image_references(release, of_images)
    return (
        f"# {release.version}\n\n{with_absolute_links(changes, '', release, tree)}\n## Images\n\n"
        + "".join(f"- `{reference}`\n" for reference in references.values())
        + f"\n{release.repository}/blob/{release.tag}/docs/install.md says how to install and verify it.\n"
    )


@contextmanager
def _timed(what: str) -> Iterator[None]:
    started = time.monotonic()
    yield
    sys.stderr.write(f"{what}: {time.monotonic() - started:.0f} s\n")
