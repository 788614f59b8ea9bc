"""Build the images of this repository into OCI archives, without a daemon."""

from __future__ import annotations

import json
import shutil
import subprocess
import tempfile
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

from hack.images.bases import DEBIAN, debian_bases, torch_base
from hack.images.errors import ImageError
from hack.images.host import Host, pip_settings
from hack.images.storage import Storage, storage
from hack.release.versions import current

ROOT: Final = Path(__file__).parents[2]
INDEX: Final = "images.json"
"""The file beside the archives that lists them."""


@dataclass(frozen=True, slots=True)
class Image:
    """An image that can be built."""

    name: str
    """In a registry, behind its owner."""
    dockerfile: str
    has_build_stage: bool = True
    """Whether all that is installed comes from a stage `build`, so that no file of this machine can be left in it."""


IMAGES: Final = {
    "manager": Image("trainer-operator", "Dockerfile"),
    "initializer": Image("trainer-initializer", "images/initializer/Dockerfile"),
    "transformers": Image("transformers-runtime", "images/transformers/Dockerfile", has_build_stage=False),
}


@dataclass(frozen=True, slots=True)
class BuiltImage:
    """An image in an OCI archive."""

    name: str
    """Such as trainer-operator."""
    reference: str
    """Name and tag, which is the version of the tree unless another was asked for."""
    digest: str
    """Of its manifest, with `sha256:` before it: what a registry calls it after a push that does not compress anew."""
    archive: str
    """The file name of the archive, beside `images.json`."""
    size: int
    """Bytes of the archive, in which layers are compressed."""


def build(
    names: Iterable[str] = tuple(IMAGES),
    *,
    output: Path,
    base: str | None = None,
    target: str | None = None,
    tag: str | None = None,
) -> tuple[BuiltImage, ...]:
    """Build images, write their archives and `images.json` into a directory, and say what they are.

    Args:
        names: of IMAGES.
        output: the directory; it is made.
        base: a reference in a registry, `debian` for one made of Debian's packages, or None for that of the Dockerfile.
        target: the stage of the Dockerfile; None for the last one.
        tag: None for the version of the tree.

    Raises:
        ImageError: a name is unknown, or an image cannot be built.
    """
    wanted = tuple(names)
    unknown = sorted(set(wanted) - IMAGES.keys())
    if unknown:
        raise ImageError(f"there is no image {', '.join(unknown)}; choose from {', '.join(IMAGES)}")
    output.mkdir(parents=True, exist_ok=True)
    with storage() as ours:
        # What it lists is never another build than the archives beside it, also where this one is interrupted.
        (output / INDEX).unlink(missing_ok=True)
        built = tuple(
            _build(ours, name, output=output, base=base, target=target, tag=tag or current()) for name in wanted
        )
    (output / INDEX).write_text(json.dumps([asdict(each) for each in built], indent=2) + "\n")
    return built


def _build(ours: Storage, name: str, *, output: Path, base: str | None, target: str | None, tag: str) -> BuiltImage:
    image = IMAGES[name]
    built = f"localhost/{image.name}:{tag}"
    archive = output / f"{image.name}-{tag}.oci.tar"
    with tempfile.TemporaryDirectory() as directory:
        host = Host(pip_settings())
        mounts = host.build_arguments(Path(directory))
        common = [f"--file={ROOT / image.dockerfile}", *_base_arguments(ours, name, base, host)]
        common += [f"--build-arg={key}={value}" for key, value in _arguments(tag).items()]
        if image.has_build_stage:
            # Mounts leave empty files and directories where they have been: only this stage gets them.
            stage = f"localhost/{image.name}-build:{tag}"
            ours.build(*common, *mounts, "--target=build", f"--tag={stage}", context=ROOT, timestamp=commit_time())
            common += [f"--build-context=build=container-image://{stage}"]
        else:
            common += mounts
        common += [f"--target={target}"] if target else []
        ours.build(*common, f"--tag={built}", context=ROOT, timestamp=commit_time())
        archive.unlink(missing_ok=True)
        digest = Path(directory) / "digest"
        ours.buildah(
            *("push", "--quiet", f"--signature-policy={ours.policy}", f"--digestfile={digest}"),
            *(built, f"oci-archive:{archive}:{image.name}:{tag}"),
        )
        ours.remove(built, *([stage] if image.has_build_stage else []))
        return BuiltImage(
            image.name, f"{image.name}:{tag}", digest.read_text().strip(), archive.name, archive.stat().st_size
        )


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
    changed = _git("status", "--porcelain", root=root)
    return _git("rev-parse", "HEAD", root=root) + ("-dirty" if changed else "")


def commit_time() -> int:
    """When the last commit was made, in seconds since 1970."""
    return int(_git("log", "-1", "--format=%ct"))


def _git(*arguments: str, root: Path = ROOT) -> str:
    if shutil.which("git") is None or not (root / ".git").exists():
        raise ImageError(f"{root} is no checkout: times and revision of an image are those of its commit")
    done = subprocess.run(["git", *arguments], cwd=root, capture_output=True, text=True, check=False)
    if done.returncode:
        raise ImageError(f"git {arguments[0]} failed in {root}:\n{done.stderr.strip()}")
    return done.stdout.strip()
