"""Options that are pairs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from trainer.cli.errors import BadInputError
from trainer.cli.run.variables import environment, resources_per_node

if TYPE_CHECKING:
    from trainer.kube.objects import Object


def test_environment() -> None:
    """Values, values of here, and keys of Secrets; references to variables stay texts."""
    assert environment(["A=1=2", "B=", "HERE", "C=$(A)", "D=$5$$$$(A)"], ["T=hub:my.key"], {"HERE": "x"}) == [
        {"name": "A", "value": "1=2"},
        {"name": "B", "value": ""},
        {"name": "HERE", "value": "x"},
        {"name": "C", "value": "$$(A)"},
        {"name": "D", "value": "$5$$$$$$$$(A)"},
        {"name": "T", "valueFrom": {"secretKeyRef": {"name": "hub", "key": "my.key"}}},
    ]


@pytest.mark.parametrize(
    ("plain", "of_secrets", "problem"),
    [
        pytest.param(["=hidden"], [], "--env: the name: must be NAME=VALUE", id="no name"),
        pytest.param(["a-b=hidden"], [], "--env: a-b: must be NAME=VALUE", id="name"),
        pytest.param(["UNSET"], [], "--env: UNSET is not set here", id="unset"),
        pytest.param(["A=hidden", "A=2"], [], "--env: A is given twice", id="twice"),
        pytest.param(["A=hidden\udcff"], [], "--env: the value of A must be text in UTF-8", id="bytes"),
        pytest.param(["A=hidden"], ["A=s:k"], "--secret-env: A is given twice", id="in both"),
        pytest.param([], ["A"], "--secret-env: A: must be A=SECRET:KEY", id="no secret"),
        pytest.param([], ["A=hidden"], "--secret-env: A: must be A=SECRET:KEY", id="no key"),
        pytest.param([], ["A=Hidden:k"], "--secret-env: A: must be A=SECRET:KEY", id="name of the secret"),
        pytest.param([], ["A=s:hidden/x"], "--secret-env: A: must be A=SECRET:KEY", id="key"),
    ],
)
def test_wrong_environment(plain: list[str], of_secrets: list[str], problem: str) -> None:
    """The message names the option, the variable and the form, and never a value, which may be a password."""
    with pytest.raises(BadInputError) as caught:
        environment(plain, of_secrets, {})
    assert problem in str(caught.value)
    assert "hidden" not in str(caught.value).lower()


@pytest.mark.parametrize(
    ("gpus", "amounts", "limits"),
    [
        pytest.param(None, [], None, id="none"),
        pytest.param(0, [], None, id="no GPUs"),
        pytest.param(8, ["memory=64Gi"], {"nvidia.com/gpu": "8", "memory": "64Gi"}, id="both"),
    ],
)
def test_resources(gpus: int | None, amounts: list[str], limits: Object | None) -> None:
    """Requests and limits are the same."""
    assert resources_per_node(gpus, amounts) == ({} if limits is None else {"requests": limits, "limits": limits})


@pytest.mark.parametrize("amount", ["memory", "=1", "cpu=much", "nvidia.com/gpu=4"])
def test_wrong_resources(amount: str) -> None:
    """An amount has a name and a quantity, and is given once."""
    with pytest.raises(BadInputError, match="--resource: "):
        resources_per_node(8, [amount])
