"""The examples as users find them."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

EXAMPLES = Path(__file__).parents[1] / "examples"


@pytest.mark.parametrize("example", sorted(path.parent.name for path in EXAMPLES.glob("*/train.py")))
def test_config_map_carries_the_script(example: str) -> None:
    """The script that the pods run is the file that people read."""
    folder = EXAMPLES / example
    documents = {doc["kind"]: doc for doc in yaml.safe_load_all((folder / "trainjob.yaml").read_text())}

    assert documents["ConfigMap"]["data"]["train.py"] == (folder / "train.py").read_text()
