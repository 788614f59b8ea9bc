"""Fields of built-in kinds: small changes of them in place, and the checks that several kinds make."""

from __future__ import annotations

import pytest

from trainer.kube.objects import Object
from trainer_devcluster.apiserver.kinds.fields import refused


@pytest.mark.parametrize(
    ("metadata", "name"),
    [
        pytest.param({"name": "p", "generateName": "q-"}, "p", id="name"),
        pytest.param({"generateName": "q-"}, "q-", id="beginning of a name"),
        pytest.param({}, "Unknown!", id="neither"),
    ],
)
def test_refusal_names_the_pod(metadata: Object, name: str) -> None:
    """A pod that has no name yet is called by what its name will begin with."""
    error = refused({"metadata": metadata}, "no")
    assert (error.code, error.message) == (403, f'pods "{name}" is forbidden: no')
