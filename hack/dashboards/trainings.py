"""For those who train: what runs, what waits and why, how long it takes, what fails."""

from __future__ import annotations

from hack.dashboards.grafana import Dashboard, Panel, Row, Variable
from hack.dashboards.growth import growth

_UNFINISHED = ', state!~"Complete|Failed"'
_CHOSEN = 'namespace=~"$namespace", runtime=~"$runtime"'
_DISRUPTED = 'trainer_pods_disrupted_total{namespace=~"$namespace"}'
_PENDING = 'trainer_trainjob_status_pending_reason{namespace=~"$namespace"}'


def _now(matchers: str = "") -> str:
    """Every replica shows all TrainJobs."""
    return f"max by (namespace, runtime, framework, state) (trainer_trainjobs{{{_CHOSEN}{matchers}}})"


def _in_state(state: str) -> str:
    """How many there are; 0 where no series has the state."""
    matcher = f', state=~"{state}"' if "|" in state else f', state="{state}"'
    return f"sum({_now(matcher)}) or vector(0)"


def _in_period(metric: str, by: str) -> str:
    return f"round(sum by ({by}) {_grown(metric, '$__range')}) > 0"


def _per_hour(metric: str) -> str:
    return f"sum {_grown(metric, '1h')}"


def _grown(metric: str, window: str) -> str:
    return growth(f"{metric}{{{_CHOSEN}}}", window)


def _completed_of_ended() -> str:
    """Nothing where none has ended."""
    completed, failed = (
        f"(sum {_grown(f'trainer_trainjobs_{end}_total', '$__range')} or vector(0))" for end in ("completed", "failed")
    )
    return f"{completed} / ({completed} + {failed} > 0)"


def _quantile(share: float, metric: str, by: str) -> str:
    """Nothing, in place of NaN, where nothing was measured."""
    return f"histogram_quantile({share}, sum by (le, {by}) {growth(f'{metric}_bucket', '$__range')}) >= 0"


def _state(title: str, state: str, description: str, color: str = "") -> Panel:
    thresholds = ((1.0, color),) if color else ()
    return Panel(title, {"": _in_state(state)}, description, type="stat", width=3, thresholds=thresholds)


_TODAY = Row(
    "Now",
    (
        _state("Running", "Running", "All pods of at least one of their Jobs are ready, or have been."),
        _state("Created", "Created", "Their Jobs exist; nothing is known to keep their pods from starting."),
        _state("Pending", "Pending", "A pod cannot start: no node takes it, its image cannot be pulled ...", "orange"),
        _state("Stopping, restarting", "Stopping|Restarting", "Pods end or are made again after a failure.", "orange"),
        _state("Suspended", "Suspended", "They have no pods until somebody resumes them."),
        _state("Blocked", "Blocked", "Somebody has to fix something: `trainer get NAME` says what.", "red"),
        Panel(
            "No progress",
            {"": _in_state("Stalled")},
            "They run and report no progress: `trainer get NAME` says since when.",
            type="stat",
            width=3,
            thresholds=((1, "orange"),),
        ),
        Panel(
            "Completed of those that ended",
            {"": _completed_of_ended()},
            "In the period that is shown.",
            unit="percentunit",
            type="stat",
            width=3,
            nothing="none ended",
        ),
        Panel(
            "TrainJobs by state",
            {"{{state}}": f"sum by (state) ({_now()})"},
            "Those that exist.",
            width=12,
            stacked=True,
        ),
        Panel(
            "TrainJobs that have not ended",
            {"": f"sum by (namespace, runtime, state) ({_now(_UNFINISHED)}) > 0"},
            type="table",
            width=12,
        ),
        Panel(
            "Why pods wait",
            {"": f"max by (namespace, reason) ({_PENDING}) > 0"},
            "TrainJobs in state Pending by reason; `trainer get NAME` says which field asks for what is missing.",
            type="table",
            width=12,
        ),
        Panel(
            "Names",
            {"": f"max by (namespace, trainjob, runtime, state) (trainer_trainjob_info{{{_CHOSEN}}})"},
            "The TrainJobs of a namespace whose state changed last, up to 50, those that have not ended first.",
            type="table",
            width=12,
        ),
    ),
)
_THROUGHPUT = Row(
    "What comes and goes",
    (
        Panel(
            "Created, completed and failed in an hour",
            {
                "created": _per_hour("trainer_trainjobs_created_total"),
                "completed": _per_hour("trainer_trainjobs_completed_total"),
                "failed": _per_hour("trainer_trainjobs_failed_total"),
            },
        ),
        Panel(
            "Failures by reason",
            {"": _in_period("trainer_trainjobs_failed_total", "namespace, runtime, reason")},
            "In the period that is shown. Deadlines are DeadlineExceeded; the log of a pod tells the rest.",
            type="table",
        ),
        Panel(
            "Disruptions by reason",
            {"": f"round(sum by (namespace, reason) {growth(_DISRUPTED, '$__range')}) > 0"},
            "Pods that were evicted, preempted or otherwise disrupted, in the period that is shown.",
            type="table",
        ),
        Panel(
            "Completed by runtime",
            {"": _in_period("trainer_trainjobs_completed_total", "namespace, runtime")},
            "In the period that is shown.",
            type="table",
        ),
    ),
)
_DURATIONS = Row(
    "How long it takes, by framework, in all namespaces",
    (
        Panel(
            "Waiting until it runs",
            {
                "{{framework}} 50 %": _quantile(0.5, "trainer_trainjob_queue_seconds", "framework"),
                "{{framework}} 90 %": _quantile(0.9, "trainer_trainjob_queue_seconds", "framework"),
            },
            "From the creation of a TrainJob until it is Running for the first time, suspensions included.",
            unit="s",
        ),
        Panel(
            "Run time",
            {
                "{{framework}} {{result}} 50 %": _quantile(0.5, "trainer_trainjob_run_seconds", "framework, result"),
                "{{framework}} {{result}} 90 %": _quantile(0.9, "trainer_trainjob_run_seconds", "framework, result"),
            },
            "From the first Running to the end.",
            unit="s",
        ),
        Panel(
            "Until the JobSet is there",
            {"{{framework}} 95 %": _quantile(0.95, "trainer_trainjob_time_to_jobset_seconds", "framework")},
            "What the controller manager takes for itself.",
            unit="s",
        ),
    ),
)

DASHBOARD = Dashboard(
    uid="trainer-trainjobs",
    title="Trainer / TrainJobs",
    description="What runs, what waits and why, how long it takes, what fails.",
    rows=(_TODAY, _THROUGHPUT, _DURATIONS),
    variables=(
        Variable("namespace", "Namespace", "label_values(trainer_trainjobs, namespace)"),
        Variable("runtime", "Runtime", 'label_values(trainer_trainjobs{namespace=~"$namespace"}, runtime)'),
    ),
    period="now-24h",
)
