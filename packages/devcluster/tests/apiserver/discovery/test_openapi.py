"""OpenAPI v3 documents; kubectl reads those of kinds in `serving/test_kubectl.py`."""

from __future__ import annotations

from packages.devcluster.tests.apiserver.discovery.test_discovery import POD
from trainer_devcluster.apiserver.discovery import openapi


def test_what_is_not_served_has_no_document() -> None:
    """Unknown groups are not found."""
    assert openapi.document([POD], "nope", "v1") is None
