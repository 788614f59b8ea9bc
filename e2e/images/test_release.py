"""What a release says of an image, from its archive."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from packaging.utils import canonicalize_name

from e2e.images.container import Container
from e2e.images.distributions import installed
from hack.images.building import revision
from hack.oci.listing import listed
from hack.release.image_contents import contents
from hack.release.images import REVISION

pytestmark = pytest.mark.timeout(600)


@pytest.mark.parametrize("name", ["manager", "initializer"])
def test_contents(built: Callable[[str], Path], container: Callable[[str], Container], name: str) -> None:
    """It is of this commit, and has the distributions that the Python of the image finds, in their versions."""
    [image] = listed(built(name))
    assert container(name).settings.labels[REVISION] == revision()
    [found] = contents(image.archive)
    assert ((found.platform, found.digest),) == image.platforms
    assert found.distribution.startswith("debian-")
    assert {"base-files", "ca-certificates"} <= {package.name for package in found.debian}
    of_archive = {canonicalize_name(str(each["Name"])): str(each["Version"]) for each in found.python}
    assert of_archive == {name: version for name, (version, _) in installed(container(name)).items()}
