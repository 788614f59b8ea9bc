"""Options that are pairs."""

from __future__ import annotations

import pytest

from trainer.cli.errors import BadInputError
from trainer.cli.run.variables import environment


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
        pytest.param([], ["A=s:hidden/x"], "--secret-env: A: must be A=SECRET:KEY", id="key"),
    ],
)
def test_wrong_environment(plain: list[str], of_secrets: list[str], problem: str) -> None:
    """The message names the option, the variable and the form, and never a value, which may be a password."""
    with pytest.raises(BadInputError) as caught:
        environment(plain, of_secrets, {})
    assert problem in str(caught.value)
    assert "hidden" not in str(caught.value).lower()
