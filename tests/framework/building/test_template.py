"""Runtimes as the KEP writes them become what JobSet accepts."""

from __future__ import annotations

import shlex
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.framework.samples import replicated_job, runtime
from trainer.framework.building.template import normalised, pod_spec_of, shell_operator, split_command, split_words
from trainer.framework.plugin_api.errors import BuildError


def test_names_become_lower_case_wherever_they_are_used() -> None:
    """Names of replicated Jobs, and every reference to them, become DNS labels."""
    template = runtime(
        replicated_job("Initializer"),
        replicated_job("Node", dependsOn=[{"name": "Initializer", "status": "Complete"}]),
        jobset={
            "successPolicy": {"operator": "All", "targetReplicatedJobs": ["Node"]},
            "failurePolicy": {"rules": [{"action": "FailJobSet", "targetReplicatedJobs": ["Node"]}]},
            "coordinator": {"replicatedJob": "Node"},
        },
    ).spec.template.spec

    spec = normalised(template, "runtime").to_object()

    assert [job["name"] for job in spec["replicatedJobs"]] == ["initializer", "node"]
    assert spec["replicatedJobs"][1]["dependsOn"] == [{"name": "initializer", "status": "Complete"}]
    assert spec["successPolicy"]["targetReplicatedJobs"] == ["node"]
    assert spec["failurePolicy"]["rules"][0]["targetReplicatedJobs"] == ["node"]
    assert spec["coordinator"]["replicatedJob"] == "node"


def test_the_runtime_stays_as_it_is() -> None:
    """Runtimes come from a shared cache, so only the copy changes."""
    blueprint = runtime(replicated_job("Node", {"name": "trainer", "command": ["torchrun train.py"]}))
    before = blueprint.to_object()

    copied = normalised(blueprint.spec.template.spec, "runtime")
    pod_spec_of((copied.replicated_jobs or [])[0])["containers"].clear()

    assert blueprint.to_object() == before


@pytest.mark.parametrize(
    ("command", "words"),
    [
        pytest.param(["torchrun train.py"], ["torchrun", "train.py"], id="one-line"),
        pytest.param(["bash -c 'echo \"a b\"'"], ["bash", "-c", 'echo "a b"'], id="quotes"),
        pytest.param(["python\ttrain.py\n"], ["python", "train.py"], id="other-white-space"),
        pytest.param([], [], id="empty"),
    ],
)
def test_split_command(command: list[str], words: list[str]) -> None:
    """A command of one line is split as a shell would, one that is a list of words is not."""
    assert split_command(command, "command") == words


def test_numbers_in_env_become_strings() -> None:
    """The KEP writes `value: 29400`, Kubernetes wants a string."""
    env = [{"name": "PORT", "value": 29400}, {"name": "RANK", "value": 0}, {"name": "EMPTY"}]
    template = runtime(replicated_job("node", {"name": "trainer", "env": env})).spec.template.spec

    container = pod_spec_of((normalised(template, "runtime").replicated_jobs or [])[0])["containers"][0]

    assert container["env"] == [
        {"name": "PORT", "value": "29400"},
        {"name": "RANK", "value": "0"},
        {"name": "EMPTY"},
    ]


@pytest.mark.parametrize(
    ("jobs", "message"),
    [
        pytest.param(
            [replicated_job("my_node")],
            "runtime spec.template.spec.replicatedJobs[my_node].name: "
            'Invalid value: "my_node": must consist of letters, digits and -, because it is part of host names',
            id="no-host-name",
        ),
        pytest.param(
            [replicated_job("node", {"name": "trainer", "command": "python train.py"})],
            "runtime spec.template.spec.replicatedJobs[node].template.spec.template.spec.containers[0].command: "
            'Invalid value: "python train.py": must be a list',
            id="command-is-no-list",
        ),
        pytest.param(
            [replicated_job("node", pod={"containers": []})],
            "runtime spec.template.spec.replicatedJobs[node].template.spec.template.spec.containers: "
            "Invalid value: []: must not be empty",
            id="no-containers",
        ),
        pytest.param(
            [replicated_job("node", {"image": "i"})],
            "runtime spec.template.spec.replicatedJobs[node].template.spec.template.spec.containers[0].name: "
            "Required value",
            id="nameless-container",
        ),
    ],
)
def test_refused(jobs: list[Any], message: str) -> None:
    """What cannot become a JobSet is refused with the field and the remedy."""
    with pytest.raises(BuildError) as caught:
        normalised(runtime(*jobs).spec.template.spec, "runtime")
    assert str(caught.value) == message


LINES = st.text(st.sampled_from("ab \t\n\r'\"\\|&\u00a0"), max_size=20)


def split_by_shlex(line: str) -> list[str] | None:
    """What the standard library makes of a line; None for what it refuses."""
    try:
        return shlex.split(line)
    except ValueError:
        return None


@given(LINES)
@example("a ''")
@example('"\\a\\""')
@example("a\\")
@example('"a\\')
def test_words_are_those_of_shlex(line: str) -> None:
    """Every line has the words that the standard library gives, and the same lines are refused."""
    try:
        words = split_words(line)
    except ValueError:
        words = None
    assert words == split_by_shlex(line)


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        pytest.param("a 'b", "No closing quotation", id="quote"),
        pytest.param("a\\", "No escaped character", id="backslash"),
        pytest.param("a\0b", "NUL", id="nul"),
    ],
)
def test_what_is_refused(line: str, problem: str) -> None:
    """The error names what is missing."""
    with pytest.raises(ValueError, match=problem):
        split_words(line)


@pytest.mark.parametrize(
    ("line", "operator"),
    [
        pytest.param("python train.py | tee log", "|", id="pipe"),
        pytest.param("python train.py>log", ">", id="redirection-within-a-word"),
        pytest.param("echo 'a | b", None, id="open-quote"),
        pytest.param("python f(x)", None, id="parentheses"),
    ],
)
def test_operators(line: str, operator: str | None) -> None:
    """What no shell is going to run is found outside of quotes only."""
    assert shell_operator(line) == operator
