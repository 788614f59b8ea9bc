"""For those who run the controller manager: does it work, what keeps it busy, what fails."""

from __future__ import annotations

from hack.dashboards.grafana import Dashboard, Panel, Row
from hack.dashboards.growth import growth

_JOB = 'job="trainer"'


def _rate(metric: str, by: str, matchers: str = "") -> str:
    return f"sum by ({by}) (rate({metric}{{{_JOB}{matchers}}}[$__rate_interval]))"


def _quantile(share: float, metric: str, by: str = "") -> str:
    """Nothing, in place of NaN, where nothing was measured."""
    labels = f"le, {by}" if by else "le"
    grown = growth(f"{metric}_bucket{{{_JOB}}}", "$__rate_interval")
    return f"histogram_quantile({share}, sum by ({labels}) {grown}) >= 0"


_OVERVIEW = Row(
    "Overview",
    (
        Panel(
            "Replicas",
            {"": f"sum(up{{{_JOB}}})"},
            "Those that answer. Every replica admits TrainJobs; one of them leads.",
            type="stat",
            width=4,
        ),
        Panel(
            "Leader",
            {"": f"sum(leader_election_master_status{{{_JOB}}})"},
            "Whether a replica reconciles.",
            type="stat",
            width=4,
            words={"0": ("none", "red"), "1": ("elected", "green")},
        ),
        Panel(
            "TrainJobs",
            {"": f"sum(max by (namespace, runtime, framework, state) (trainer_trainjobs{{{_JOB}}}))"},
            "All that exist, finished ones included.",
            type="stat",
            width=4,
        ),
        Panel(
            "Failed reconciles",
            {
                "": f"sum(rate(controller_runtime_reconcile_errors_total{{{_JOB}}}[$__rate_interval])) "
                f"/ (sum(rate(controller_runtime_reconcile_total{{{_JOB}}}[$__rate_interval])) > 0)"
            },
            unit="percentunit",
            type="stat",
            width=4,
            thresholds=((0.01, "orange"), (0.1, "red")),
        ),
        Panel(
            "Admission, 99th percentile",
            {"": _quantile(0.99, "trainer_admission_seconds")},
            "The API server gives up after 5 seconds.",
            unit="s",
            type="stat",
            width=4,
            thresholds=((0.5, "orange"), (2.5, "red")),
        ),
        Panel(
            "Alerts",
            {"": 'sum(ALERTS{alertname=~"Trainer.+", alertstate="firing"}) or vector(0)'},
            "Those of config/prometheus that fire.",
            type="stat",
            width=4,
            thresholds=((1, "red"),),
        ),
    ),
)
_RECONCILING = Row(
    "Reconciling",
    (
        Panel(
            "Reconciles by result",
            {"{{controller}} {{result}}": _rate("controller_runtime_reconcile_total", "controller, result")},
            unit="ops",
        ),
        Panel(
            "Duration of reconciles",
            {
                "{{controller}} 50 %": _quantile(0.5, "controller_runtime_reconcile_time_seconds", "controller"),
                "{{controller}} 99 %": _quantile(0.99, "controller_runtime_reconcile_time_seconds", "controller"),
            },
            unit="s",
        ),
        Panel(
            "TrainJob to JobSet",
            {
                "50 %": _quantile(0.5, "trainer_trainjob_time_to_jobset_seconds"),
                "95 %": _quantile(0.95, "trainer_trainjob_time_to_jobset_seconds"),
            },
            "From the creation of a TrainJob, or its resumption, until its JobSet is in place.",
            unit="s",
        ),
        Panel(
            "Work queues",
            {"{{name}}": f"sum by (name) (workqueue_depth{{{_JOB}}})"},
            "Objects that wait for a worker.",
        ),
        Panel(
            "Time in work queues, 99th percentile",
            {"{{name}}": _quantile(0.99, "workqueue_queue_duration_seconds", "name")},
            unit="s",
        ),
        Panel(
            "Workers",
            {
                "{{controller}} busy": f"sum by (controller) (controller_runtime_active_workers{{{_JOB}}})",
                "{{controller}} all": f"max by (controller) (controller_runtime_max_concurrent_reconciles{{{_JOB}}})",
            },
            "Those that are all busy for long are too few: see controller.groupKindConcurrency.",
        ),
    ),
)
_ADMISSION = Row(
    "Admission",
    (
        Panel(
            "Requests by webhook and code",
            {"{{webhook}} {{code}}": _rate("controller_runtime_webhook_requests_total", "webhook, code")},
            "A refusal is an answer like others (200); 500 and more are failures.",
            unit="reqps",
        ),
        Panel(
            "Time to decide, 99th percentile",
            {"{{kind}} {{operation}}": _quantile(0.99, "trainer_admission_seconds", "kind, operation")},
            unit="s",
        ),
        Panel(
            "Refusals",
            {"{{kind}} {{operation}}": _rate("trainer_admission_refusals_total", "kind, operation")},
            "Objects with errors that their authors got an answer about.",
            unit="ops",
        ),
        Panel(
            "Certificates end in",
            {
                "{{server}}": "min by (server) "
                f"(trainer_kube_certificate_expiration_timestamp_seconds{{{_JOB}}}) - time()"
            },
            "They are renewed long before.",
            unit="s",
            width=12,
        ),
        Panel(
            "Plugins: time of hooks, 99th percentile",
            {"{{plugin}} {{phase}}": _quantile(0.99, "trainer_plugin_build_seconds", "plugin, phase")},
            unit="s",
            width=6,
        ),
        Panel(
            "Plugins: errors",
            {"{{plugin}} {{phase}}": _rate("trainer_plugin_errors_total", "plugin, phase")},
            unit="ops",
            width=6,
        ),
    ),
)
_API = Row(
    "API server",
    (
        Panel(
            "Requests by code",
            {"{{code}}": _rate("rest_client_requests_total", "code")},
            "403: a right is missing, or a quota is used up. 429: requests are put off. <error>: no answer.",
            unit="reqps",
        ),
        Panel("Requests by method", {"{{method}}": _rate("rest_client_requests_total", "method")}, unit="reqps"),
        Panel(
            "Time of requests, 99th percentile",
            {"{{verb}}": _quantile(0.99, "rest_client_request_duration_seconds", "verb")},
            "Retries and their pauses included; of watches and logs, until they begin.",
            unit="s",
        ),
        Panel(
            "Silence of watches",
            {"{{resource}}": f"max by (resource) (trainer_kube_watch_event_age_seconds{{{_JOB}}})"},
            "The API server sends something every minute; what is silent for longer is dead.",
            unit="s",
        ),
        Panel(
            "Watches that ended",
            {"{{resource}} {{reason}}": _rate("trainer_kube_watch_restarts_total", "resource, reason")},
            "closed is usual, once in five to ten minutes.",
            unit="ops",
        ),
        Panel(
            "Cached objects",
            {"{{resource}}": f"max by (resource) (trainer_kube_cache_objects{{{_JOB}}})"},
            stacked=True,
        ),
        Panel(
            "Cached bytes",
            {"{{resource}}": f"max by (resource) (trainer_kube_cache_bytes{{{_JOB}}})"},
            unit="bytes",
            stacked=True,
        ),
    ),
)
_PROGRESS = Row(
    "Progress of trainings",
    (
        Panel("Logs that are followed", {"{{pod}}": f"sum by (pod) (trainer_progress_active_streams{{{_JOB}}})"}),
        Panel(
            "Message to status",
            {
                "50 %": _quantile(0.5, "trainer_progress_lag_seconds"),
                "95 %": _quantile(0.95, "trainer_progress_lag_seconds"),
            },
            "From a line in a log to the status that shows it.",
            unit="s",
        ),
        Panel("Status writes", {"{{result}}": _rate("trainer_progress_status_writes_total", "result")}, unit="wps"),
    ),
)
_PROCESS = Row(
    "Processes",
    (
        Panel(
            "CPU", {"{{pod}}": f"rate(process_cpu_seconds_total{{{_JOB}}}[$__rate_interval])"}, "Cores.", unit="short"
        ),
        Panel("Memory", {"{{pod}}": f"process_resident_memory_bytes{{{_JOB}}}"}, unit="bytes"),
        Panel(
            "Lag of the event loop, 99th percentile",
            {"{{pod}}": _quantile(0.99, "trainer_kube_event_loop_lag_seconds", "pod")},
            "How much later than due something runs; everything else is late by as much.",
            unit="s",
        ),
        Panel("Stalls of the event loop", {"{{pod}}": growth(f"trainer_kube_event_loop_stalls_total{{{_JOB}}}", "1h")}),
        Panel("Open files", {"{{pod}}": f"process_open_fds{{{_JOB}}}"}),
        Panel(
            "Versions",
            {"": f"count by (version, python_version) (trainer_build_info{{{_JOB}}})"},
            "During an upgrade there are two.",
            type="table",
        ),
    ),
)

DASHBOARD = Dashboard(
    uid="trainer-operators",
    title="Trainer / Controller manager",
    description="Does the controller manager of TrainJobs work, what keeps it busy, what fails.",
    rows=(_OVERVIEW, _RECONCILING, _ADMISSION, _API, _PROGRESS, _PROCESS),
)
