"""Images and charts in a registry; what is there already is never replaced."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from hashlib import sha256
from pathlib import Path

from hack.oci.listing import Image
from hack.publish.programs import PublishError, answer, require, run, variable


@dataclass(frozen=True, slots=True)
class Published:
    """An image or a chart in a registry."""

    reference: str
    """With registry and tag, such as ghcr.io/OWNER/trainer-operator:0.2.0."""
    digest: str
    platforms: tuple[tuple[str, str], ...] = ()
    """Of an image: each platform and the digest of its manifest."""

    @property
    def name(self) -> str:
        """The reference without its tag."""
        return self.reference.rpartition(":")[0]

    @property
    def by_digest(self) -> str:
        """The reference that nobody can change the meaning of."""
        return f"{self.name}@{self.digest}"


@dataclass(frozen=True, slots=True)
class Registry:
    """Where images go: a host, and the folder in it."""

    place: str
    """Such as ghcr.io/OWNER."""

    def __post_init__(self) -> None:
        """Refuse what cannot be a registry.

        Raises:
            PublishError: it is empty, a URL, or the placeholder of the documentation.
        """
        host = self.place.partition("/")[0]
        if not host or "://" in self.place or self.place.endswith("/") or host.endswith("example.com"):
            raise PublishError(f"REGISTRY={self.place} names no registry: REGISTRY=HOST/OWNER, such as ghcr.io/OWNER")

    @property
    def host(self) -> str:
        """Its address, with the port if there is one."""
        return self.place.partition("/")[0]

    @property
    def is_local(self) -> bool:
        """Whether it is on this machine, where it needs no certificate."""
        return self.host.partition(":")[0] in {"localhost", "127.0.0.1"}

    def log_in(self, authentication: Path) -> None:
        """Store credentials where skopeo, Helm and cosign read them.

        Args:
            authentication: `config.json` of Docker; made where it is not there.

        Raises:
            PublishError: skopeo or a variable is missing, or the registry refuses.
        """
        require("skopeo")
        user = variable("REGISTRY_USERNAME", f"who pushes to {self.host}")
        password = variable("REGISTRY_PASSWORD", f"the password or token of {user}")
        authentication.parent.mkdir(parents=True, exist_ok=True)
        options = ["--authfile", str(authentication), *self._without_tls("--tls-verify=false")]
        run("skopeo", "login", *options, "--username", user, "--password-stdin", self.host, stdin=password)

    def push(self, image: Image) -> Published:
        """Copy an archive with all of its platforms, unless the registry has it already.

        Raises:
            PublishError: skopeo is missing or fails, or the tag names something else.
        """
        reference = f"{self.place}/{image.reference}"
        if not self._has(reference, image.digest):
            credentials = ["--authfile", str(authentication())]
            options = [*credentials, "--all", "--preserve-digests", *self._without_tls("--dest-tls-verify=false")]
            run("skopeo", "copy", "--quiet", *options, f"oci-archive:{image.archive}", f"docker://{reference}")
            if not self._has(reference, image.digest):
                raise PublishError(f"{reference} is not {image.digest} after it has been pushed")
        return Published(reference, image.digest, image.platforms)

    def _has(self, reference: str, digest: str) -> bool:
        manifest = self._manifest(reference)
        if manifest is None:
            return False
        found = f"sha256:{sha256(manifest.encode()).hexdigest()}"
        if found != digest:
            raise PublishError(
                f"{reference} is {found} already, not {digest}: a version is published once, so set the next one"
            )
        return True

    def _manifest(self, reference: str) -> str | None:
        require("skopeo")
        options = ["--authfile", str(authentication()), *self._without_tls("--tls-verify=false")]
        output, complaint = answer("skopeo", "inspect", "--raw", *options, f"docker://{reference}")
        if complaint and not _is_missing(complaint):
            remedy = "; make registry-login stores credentials" if "authentication required" in complaint else ""
            raise PublishError(f"{reference} cannot be looked up: {complaint.splitlines()[-1]}{remedy}")
        return None if complaint else output

    def _without_tls(self, option: str) -> list[str]:
        return [option] if self.is_local else []


def _is_missing(complaint: str) -> bool:
    """Whether a registry says that a name or tag does not exist; some deny access to names that do not."""
    said = ("manifest unknown", "name unknown", "not found", "requested access to the resource is denied")
    return any(each in complaint for each in said)


def authentication() -> Path:
    """Where credentials of registries are: `config.json` of Docker."""
    folder = os.environ.get("DOCKER_CONFIG") or Path.home() / ".docker"
    return Path(folder) / "config.json"


def record(published: Iterable[Published], path: Path) -> None:
    """Add to what a file lists, which is made."""
    known = {each.reference: each for each in (*(recorded(path) if path.exists() else ()), *published)}
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps([asdict(each) for each in known.values()], indent=2) + "\n", encoding="utf-8")


def recorded(path: Path) -> tuple[Published, ...]:
    """Give what has been published.

    Raises:
        PublishError: nothing has.
    """
    if not path.exists():
        raise PublishError(f"there is no {path}: make publish-images publish-chart")
    entries = json.loads(path.read_text(encoding="utf-8"))
    return tuple(
        Published(each["reference"], each["digest"], tuple((name, digest) for name, digest in each["platforms"]))
        for each in entries
    )
