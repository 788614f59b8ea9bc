"""The gang scheduling of runtimes that have no podGroupPolicy."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import pytest

from tests.framework.samples import replicated_job, runtime_object
from trainer.framework.runtimes.default_gang import DEFAULT_GANG, NO_GANG, DefaultGang
from trainer.framework.runtimes.runtimes import digest_of
from trainer.kube.objects import Object, annotations_of


def gang(source: str, scheduler: str = "") -> DefaultGang:
    """The setting, and the name of the scheduler."""
    return DefaultGang(lambda: source, scheduler)


def runtime(*schedulers: str | None, **spec: Any) -> Object:
    """A runtime with a Job for each of these names of schedulers."""
    jobs = [
        replicated_job(f"job-{number}", pod={} if name is None else {"schedulerName": name})
        for number, name in enumerate(schedulers)
    ]
    return runtime_object(*jobs, **spec)


def schedulers(obj: Object) -> list[str | None]:
    """The name that each pod template states."""
    jobs = obj["spec"]["template"]["spec"]["replicatedJobs"]
    return [job["template"]["spec"]["template"]["spec"].get("schedulerName") for job in jobs]


@pytest.mark.parametrize(
    ("setting", "given", "expected"),
    [
        pytest.param(gang("workload"), [None, None], [None, None], id="kubernetes"),
        pytest.param(gang("workload", "packing"), [None, "packing"], ["packing", "packing"], id="another-profile"),
        pytest.param(gang("workload", "packing"), [None, "default-scheduler"], [None, "default-scheduler"],
                     id="the-default-one-by-name"),
        pytest.param(gang("volcano"), [None, None], ["volcano", "volcano"], id="volcano"),
        pytest.param(gang("volcano"), ["volcano", None], ["volcano", "volcano"], id="named-already"),
        pytest.param(gang("volcano", "volcano-2"), [None, ""], ["volcano-2", "volcano-2"], id="under-another-name"),
        pytest.param(gang("coscheduling"), [None], ["scheduler-plugins-scheduler"], id="coscheduling"),
        pytest.param(gang("coscheduling", "default-scheduler"), [None], ["default-scheduler"], id="plugin-of-default"),
    ],
)  # fmt: skip
def test_runtimes_without_policy(setting: DefaultGang, given: list[str | None], expected: list[str | None]) -> None:
    """They get the policy of the setting, and pods without scheduler the one that knows it."""
    before = runtime(*given)
    applied = setting.applied(kept := deepcopy(before))
    assert applied["spec"]["podGroupPolicy"] == {setting.source: {}}
    assert annotations_of(applied) == {DEFAULT_GANG: setting.source}
    assert schedulers(applied) == expected
    assert kept == before
    assert digest_of(applied) != digest_of(before)


@pytest.mark.parametrize(
    ("setting", "obj"),
    [
        pytest.param(NO_GANG, runtime(None), id="no-setting"),
        pytest.param(gang("volcano"), runtime(None, podGroupPolicy={"coscheduling": {}}), id="a-policy-of-its-own"),
        pytest.param(gang("volcano"), runtime(None, podGroupPolicy={}), id="a-policy-of-its-own-of-none"),
        pytest.param(gang("volcano"), runtime(None, "kai-scheduler"), id="a-scheduler-of-its-own"),
        pytest.param(gang("volcano"), runtime("default-scheduler"), id="the-default-scheduler-by-name"),
        pytest.param(gang("workload"), runtime("kai-scheduler"), id="another-scheduler-than-that-of-kubernetes"),
        pytest.param(gang("volcano", "volcano-2"), runtime("volcano"), id="another-volcano"),
        pytest.param(gang("workload"), {"kind": "TrainingRuntime"}, id="no-spec"),
        pytest.param(gang("workload"), {"kind": "TrainingRuntime", "spec": []}, id="no-mapping"),
    ],
)
def test_runtimes_that_stay_as_they_are(setting: DefaultGang, obj: Object) -> None:
    """A policy or scheduler of its own wins, and so does the choice of none."""
    assert setting.applied(obj) is obj


@pytest.mark.parametrize(
    "template",
    [
        pytest.param({"spec": {}}, id="no-jobs"),
        pytest.param({"spec": {"replicatedJobs": {}}}, id="no-list"),
        pytest.param({"spec": {"replicatedJobs": ["node", {"name": "node"}, {"template": {"spec": 1}}]}}, id="no-pods"),
    ],
)
def test_what_no_schema_has_checked(template: Object) -> None:
    """It gets the policy, and whoever reads the runtime finds what is wrong with it."""
    obj = {"kind": "TrainingRuntime", "metadata": {"name": "r"}, "spec": {"template": template}}
    applied = gang("volcano").applied(obj)
    assert applied["spec"] == {"template": template, "podGroupPolicy": {"volcano": {}}}


def test_what_a_runtime_may_have_got() -> None:
    """The present policy comes first, then none, and then those of other settings, with which TrainJobs were built."""
    assert gang("volcano").sources == ("volcano", "", "workload", "coscheduling")
    assert NO_GANG.sources == ("", "workload", "coscheduling", "volcano")
    obj = runtime(None)
    assert gang("volcano").applied(obj, "") is obj
    assert gang("volcano").applied(obj, "workload")["spec"]["podGroupPolicy"] == {"workload": {}}
