from __future__ import annotations

import pytest

from trainer_initializers.options import read_options
from trainer_initializers.variables import unused_variables


@pytest.mark.parametrize(
    ("command", "uri", "environ", "said"),
    [
        pytest.param("dataset", "s3://b", {"ENDPOINT_URL": "x", "REGION": "y", "AWS_PROFILE": "z"}, [], id="used"),
        pytest.param("dataset", "s3://b", {"ENDPOINT": "", "PATH": "/bin", "HOME": "/"}, [], id="of the system"),
        pytest.param(
            "dataset",
            "pvc://claim",
            {"ENDPOINT": "x", "ACCESS_TOKEN": "y"},
            [
                "ACCESS_TOKEN is set, and means nothing to dataset with pvc://",
                "ENDPOINT is set, and means nothing to dataset with pvc://",
            ],
            id="of other schemes",
        ),
        pytest.param(
            "model",
            "hf://me/model",
            {"TRANSFORMER_TYPE": "AutoModelForCausalLM"},
            ["TRANSFORMER_TYPE is set, and means nothing to model with hf://"],
            id="of other images",
        ),
        pytest.param(
            "dataset",
            "hf://me/data",
            {"SPLITS": "train", "ENDPOINT_URI": "x"},
            [
                "ENDPOINT_URI is no variable of the initializers: ENDPOINT_URL may be meant",
                "SPLITS is no variable of the initializers: SPLIT may be meant",
            ],
            id="similar names",
        ),
        pytest.param(
            "export",
            "s3://b",
            {"TRANSFER_CONNECTIONS": "4"},
            ["TRANSFER_CONNECTIONS is set, and means nothing to an export"],
            id="of a fetch",
        ),
        pytest.param("dataset", "swift://b", {"ENDPOINT": "x"}, [], id="scheme of a package"),
    ],
)
def test_unused_variables(command: str, uri: str, environ: dict[str, str], said: list[str]) -> None:
    """A variable of the contract that changes nothing is named, and so is one that is nearly one."""
    assert list(unused_variables(read_options(command, {"STORAGE_URI": uri, **environ}))) == said
