"""What rooms beside the sweeps read of trials."""

from __future__ import annotations

import pytest

from trainer.api.optimization import (
    ASSIGNMENT,
    LONGEST_TEXT,
    MOST_PARAMETERS,
    assignment_of,
    assignment_text,
    environment_of,
    trial_name,
    trial_number,
)

LONG = "x" * (LONGEST_TEXT + 1)


@pytest.mark.parametrize(
    ("name", "number"),
    [
        pytest.param("demo-trial-1", 1, id="first"),
        pytest.param("demo-trial-100", 100, id="last"),
        pytest.param("demo-trial-0", None, id="zero"),
        pytest.param("demo-trial-01", None, id="leading-zero"),
        pytest.param("demo-trial-1-trial-2", None, id="of-another-sweep"),
        pytest.param("other-trial-1", None, id="other-name"),
        pytest.param("demo", None, id="no-number"),
    ],
)
def test_the_number_is_that_of_the_name(name: str, number: int | None) -> None:
    """A number comes back from the name that was made of it, and from no other name."""
    assert trial_number(name, "demo") == number
    if number is not None:
        assert trial_name("demo", number) == name


@pytest.mark.parametrize(
    ("text", "assignment"),
    [
        pytest.param(assignment_text({"lr": "0.10", "bs": "32"}), {"lr": "0.10", "bs": "32"}, id="written"),
        pytest.param(assignment_text({LONG: "1", "lr": LONG, "bs": LONG[1:]}), {"bs": LONG[1:]}, id="long"),
        pytest.param(
            assignment_text({f"p{each}": "1" for each in range(MOST_PARAMETERS + 1)}),
            {f"p{each}": "1" for each in range(MOST_PARAMETERS)},
            id="many",
        ),
        pytest.param('[{"name": "lr", "value": 0.1}]', {}, id="number"),
        pytest.param("[" * 100_000, {}, id="deep"),
        pytest.param("", {}, id="empty"),
    ],
)
def test_assignment(text: str, assignment: dict[str, str]) -> None:
    """Values stay digit by digit; what others have written is read within the bounds of the API, or not at all."""
    assert assignment_of({ASSIGNMENT: text}) == assignment


def test_the_environment_of_a_trial() -> None:
    """A parameter takes the place of a variable of the template, and no value refers to another variable."""
    template = [{"name": "KUBEFLOW_TRAINER_OPT_LR", "value": ""}, {"name": "LR", "value": "$(KUBEFLOW_TRAINER_OPT_LR)"}]
    assert environment_of(template, {"kind": "$(HOME)$$", "lr": "0.1"}) == [
        {"name": "KUBEFLOW_TRAINER_OPT_LR", "value": "0.1"},
        {"name": "LR", "value": "$(KUBEFLOW_TRAINER_OPT_LR)"},
        {"name": "KUBEFLOW_TRAINER_OPT_KIND", "value": "$$(HOME)$$$$"},
    ]
