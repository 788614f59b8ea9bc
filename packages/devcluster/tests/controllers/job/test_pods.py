"""The pods of a Job: what it needs to know about one, and how it makes one from its template."""

from __future__ import annotations

import pytest

from packages.devcluster.tests.controllers.job.samples import make_job
from trainer_devcluster.controllers.job.pods import build_pod, format_indexes, parse_indexes


@pytest.mark.parametrize(
    ("indexes", "text"),
    [
        pytest.param([], "", id="none"),
        pytest.param([3], "3", id="one"),
        pytest.param([4, 3], "3,4", id="two in a row are listed"),
        pytest.param([0, 1, 2, 5, 7, 8], "0-2,5,7,8", id="mixed"),
    ],
)
def test_indexes_are_written_as_sorted_ranges(indexes: list[int], text: str) -> None:
    """Runs of three and more are abbreviated, and parsing gives the same indexes back."""
    assert format_indexes(indexes) == text
    assert parse_indexes(text, completions=100) == frozenset(indexes)


def test_indexes_beyond_completions_are_dropped() -> None:
    """A Job that was scaled down forgets the indexes that it no longer has."""
    assert parse_indexes("0-5,8", completions=3) == frozenset({0, 1, 2})


def test_damaged_text_does_not_break_the_job() -> None:
    """What is no number is skipped."""
    assert parse_indexes("1,x,3-y,", completions=10) == frozenset({1})


def test_template_is_not_changed() -> None:
    """Pods do not share parts with the Job, which is a cached object."""
    job = make_job()
    build_pod(job, 0)
    assert job == make_job()


def test_own_index_variable_is_kept() -> None:
    """A template's own JOB_COMPLETION_INDEX takes precedence."""
    own = {"name": "JOB_COMPLETION_INDEX", "value": "7"}
    job = make_job(pod_spec={"containers": [{"name": "c", "image": "i", "env": [own]}]})
    assert build_pod(job, 0)["spec"]["containers"][0]["env"] == [own]


def test_pod_of_a_work_queue_has_no_index() -> None:
    """NonIndexed Jobs make equal pods."""
    pod = build_pod(make_job(completionMode="NonIndexed"), None)
    assert pod["metadata"]["generateName"] == "j-"
    assert "hostname" not in pod["spec"]
    assert "env" not in pod["spec"]["containers"][0]


def test_long_job_names_leave_room_for_the_random_suffix() -> None:
    """The prefix is cut to 58 characters and keeps the index."""
    job = make_job()
    job["metadata"]["name"] = "a" * 60
    prefix = build_pod(job, 12)["metadata"]["generateName"]
    assert len(prefix) == 58
    assert prefix.endswith("a-12-")


def test_long_names_of_work_queues_are_cut_by_the_server() -> None:
    """Their prefix has nothing at its end that must be kept."""
    job = make_job(completionMode="NonIndexed")
    job["metadata"]["name"] = "a" * 60
    assert build_pod(job, None)["metadata"]["generateName"] == f"{'a' * 60}-"
