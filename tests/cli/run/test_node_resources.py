"""`--gpus` and `--resource`."""

from __future__ import annotations

import pytest

from trainer.cli.errors import BadInputError
from trainer.cli.run.frameworks import ChosenRuntime
from trainer.cli.run.node_resources import amounts_per_node, devices_per_node, resources_per_node


def runtime(*devices: str) -> ChosenRuntime:
    """A runtime whose nodes have one of each device, and another Job that has a GPU."""
    job = {
        "name": "node",
        "template": {"spec": {"template": {"spec": {"containers": [
            {"name": "trainer", "resources": {"limits": {"cpu": 4, **dict.fromkeys(devices, 1)}}},
            {"name": "other", "resources": {"limits": {"example.com/gpu": 1}}},
        ]}}}},
    }  # fmt: skip
    obj = {"metadata": {"name": "mine"}, "spec": {"template": {"spec": {"replicatedJobs": [job]}}}}
    return ChosenRuntime(obj, "TrainingRuntime", "")


def limits(gpus: str | None, amounts: list[str], *devices: str) -> dict[str, str]:
    """The limits, which are the requests as well."""
    found = resources_per_node(devices_per_node(gpus), amounts_per_node(amounts), runtime(*devices))
    assert found.get("limits") == found.get("requests")
    return dict(found.get("limits") or {})


@pytest.mark.parametrize(
    ("gpus", "amounts", "devices", "expected"),
    [
        pytest.param(None, [], [], {}, id="nothing"),
        pytest.param("0", [], [], {}, id="none"),
        pytest.param("8", [], [], {"nvidia.com/gpu": "8"}, id="usual"),
        pytest.param("8", ["memory=64Gi"], [], {"memory": "64Gi", "nvidia.com/gpu": "8"}, id="and memory"),
        pytest.param("8", [], ["amd.com/gpu"], {"amd.com/gpu": "8"}, id="of the runtime"),
        pytest.param("8", [], ["habana.ai/gaudi"], {"habana.ai/gaudi": "8"}, id="no GPU of the runtime"),
        pytest.param("2", [], ["nvidia.com/mig-1g.5gb"], {"nvidia.com/mig-1g.5gb": "2"}, id="slices of the runtime"),
        pytest.param("8", [], ["example.com/gpumem"], {"nvidia.com/gpu": "8"}, id="memory counts no devices"),
        pytest.param("amd.com/gpu:8", [], [], {"amd.com/gpu": "8"}, id="named"),
        pytest.param("example.com/accelerator:8", [], [], {"example.com/accelerator": "8"}, id="unknown to the table"),
        pytest.param(
            "amd.com/gpu:8", [], ["nvidia.com/gpu"], {"amd.com/gpu": "8", "nvidia.com/gpu": "0"},
            id="in place of those of the runtime",
        ),
        pytest.param("0", [], ["nvidia.com/gpu"], {"nvidia.com/gpu": "0"}, id="none although the runtime has one"),
        pytest.param(None, ["amd.com/gpu=8"], [], {"amd.com/gpu": "8"}, id="by its amount"),
    ],
)  # fmt: skip
def test_resources(gpus: str | None, amounts: list[str], devices: list[str], expected: dict[str, str]) -> None:
    """A number alone is of the runtime's device, else of nvidia.com/gpu."""
    assert limits(gpus, amounts, *devices) == expected


@pytest.mark.parametrize(
    ("gpus", "amounts", "devices", "problem"),
    [
        pytest.param(gpus, [], [], "must be a number, or RESOURCE:NUMBER such as amd.com/gpu:8", id=gpus or "empty")
        for gpus in ("", "-1", "many", "amd.com/gpu", "amd.com/gpu:", "amd:8", ":8", "amd.com/gpu:1.5", "/gpu:1", "٣")
    ]
    + [
        pytest.param(
            "8", ["amd.com/gpu=8"], [], "together with --resource amd.com/gpu, which names devices", id="both"
        ),
        pytest.param(
            "8", [], ["amd.com/gpu", "habana.ai/gaudi"],
            "the runtime mine names several devices: write --gpus amd.com/gpu:8 or --gpus habana.ai/gaudi:8",
            id="several",
        ),
    ],
)  # fmt: skip
def test_wrong_gpus(gpus: str, amounts: list[str], devices: list[str], problem: str) -> None:
    """The message has the remedy."""
    with pytest.raises(BadInputError) as caught:
        limits(gpus, amounts, *devices)
    assert str(caught.value).startswith("--gpus: ")
    assert problem in str(caught.value)


@pytest.mark.parametrize("amount", ["memory", "=1", "cpu=much", "cpu=2"])
def test_wrong_amounts(amount: str) -> None:
    """An amount has a name and a quantity, and is given once."""
    with pytest.raises(BadInputError, match="--resource: "):
        amounts_per_node(["cpu=1", amount])
