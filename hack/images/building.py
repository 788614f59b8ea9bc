"""Build the images of this repository into OCI archives, without a daemon."""

from __future__ import annotations

import tempfile
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from hack.images.bases import DEBIAN, debian_bases, torch_base
from hack.images.errors import ImageError
from hack.images.host import Host, pip_settings
from hack.images.storage import Storage, storage
from hack.oci.archive import ArchiveError
from hack.oci.listing import NAME, Image, listed, write_list
from hack.release.images import INITIALIZER, MANAGER, TRANSFORMERS
from hack.release.settings import ROOT, git
from hack.release.versions import current


@dataclass(frozen=True, slots=True)
class Recipe:
    """How an image is built."""

    image: str
    """Its name in a registry, behind its owner."""
    dockerfile: str
    has_build_stage: bool = True
    """Whether all that is installed comes from a stage `build`, so that no file of this machine can be left in it."""


IMAGES: Final = {
    "manager": Recipe(MANAGER, "Dockerfile"),
    "initializer": Recipe(INITIALIZER, "images/initializer/Dockerfile"),
    "transformers": Recipe(TRANSFORMERS, "images/transformers/Dockerfile", has_build_stage=False),
}


def build(
    names: Iterable[str] = tuple(IMAGES),
    *,
    output: Path,
    base: str | None = None,
    tag: str | None = None,
) -> tuple[Image, ...]:
    """Build images, write their archives into a directory, put them on its list, and say what they are.

    Other images stay on the list, which names no archive of another build, also where this one is interrupted.

    Args:
        names: of IMAGES.
        output: the directory; it is made.
        base: a reference in a registry, `debian` for one made of Debian's packages, or None for that of the Dockerfile.
        tag: None for the version of the tree.

    Raises:
        ImageError: a name is unknown, or an image cannot be built.
        GitError: the tree is no checkout.
    """
    wanted = tuple(names)
    unknown = sorted(set(wanted) - IMAGES.keys())
    if unknown:
        raise ImageError(f"there is no image {', '.join(unknown)}; choose from {', '.join(IMAGES)}")
    output.mkdir(parents=True, exist_ok=True)
    with storage() as ours:
        others = _others(output, wanted)
        if others:
            write_list(others, output)
        else:
            (output / NAME).unlink(missing_ok=True)
        built = tuple(_build(ours, name, output=output, base=base, tag=tag or current()) for name in wanted)
    write_list((*others, *built), output)
    return built


def _others(output: Path, wanted: Collection[str]) -> tuple[Image, ...]:
    """What a directory lists that is not built now; nothing where the list does not fit the directory."""
    names = {IMAGES[name].image for name in wanted}
    try:
        return tuple(image for image in listed(output) if image.name not in names)
    except ArchiveError:
        return ()


def _build(ours: Storage, name: str, *, output: Path, base: str | None, tag: str) -> Image:
    recipe = IMAGES[name]
    reference = f"{recipe.image}:{tag}"
    built = f"localhost/{reference}"
    archive = output / f"{recipe.image}-{tag}.oci.tar"
    with tempfile.TemporaryDirectory() as directory:
        host = Host(pip_settings())
        mounts = host.build_arguments(Path(directory))
        common = [f"--file={ROOT / recipe.dockerfile}", *_base_arguments(ours, name, base, host)]
        common += [f"--build-arg={key}={value}" for key, value in _arguments(tag).items()]
        if recipe.has_build_stage:
            # Mounts leave empty files and directories where they have been: only this stage gets them.
            stage = f"localhost/{recipe.image}-build:{tag}"
            ours.build(*common, *mounts, "--target=build", f"--tag={stage}", context=ROOT, timestamp=commit_time())
            common += [f"--build-context=build=container-image://{stage}"]
        else:
            common += mounts
        ours.build(*common, f"--tag={built}", context=ROOT, timestamp=commit_time())
        archive.unlink(missing_ok=True)
        digest = Path(directory) / "digest"
        ours.buildah(
            *("push", "--quiet", f"--signature-policy={ours.policy}", f"--digestfile={digest}"),
            *(built, f"oci-archive:{archive}:{reference}"),
        )
        platform = ours.buildah("inspect", "--type=image", "--format={{.OCIv1.OS}}/{{.OCIv1.Architecture}}", built)
        ours.remove(built, *([stage] if recipe.has_build_stage else []))
        manifest = digest.read_text().strip()
        return Image(recipe.image, reference, manifest, archive, ((platform, manifest),))


def _base_arguments(ours: Storage, name: str, base: str | None, host: Host) -> list[str]:
    if base is None:
        return []
    if base != DEBIAN:
        return [f"--build-arg=BASE={base}"]
    if name == "transformers":
        return ["--pull-never", f"--build-arg=BASE={torch_base(ours, host, ROOT / 'constraints.txt')}"]
    bases = debian_bases(ours)
    return ["--pull-never", f"--build-arg=BASE={bases.final}", f"--build-arg=BUILD_BASE={bases.build}"]


def _arguments(tag: str) -> dict[str, str]:
    return {"SOURCE_DATE_EPOCH": str(commit_time()), "VERSION": tag, "REVISION": revision()}


def revision(root: Path = ROOT) -> str:
    """The commit, with `-dirty` behind it where the tree has something else, which is then in the image as well."""
    changed = git("status", "--porcelain", root=root)
    return git("rev-parse", "HEAD", root=root) + ("-dirty" if changed else "")


def commit_time() -> int:
    """When the last commit was made, in seconds since 1970."""
    return int(git("log", "-1", "--format=%ct"))
