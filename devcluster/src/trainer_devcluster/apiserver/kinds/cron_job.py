"""CronJobs (batch/v1): stored with the defaults and the validation of the real server; they never fire here."""

from __future__ import annotations

import re
import zoneinfo
from typing import TYPE_CHECKING, Final

from trainer.kube.field_errors import invalid, not_supported, required
from trainer.kube.objects import name_of
from trainer.kube.resource import Resource
from trainer_devcluster.apiserver.definitions.resource_definition import ResourceDefinition
from trainer_devcluster.apiserver.definitions.strategy import StoreOnlyStrategy
from trainer_devcluster.apiserver.kinds.causes import not_negative
from trainer_devcluster.apiserver.kinds.editing import fill, section
from trainer_devcluster.apiserver.kinds.pods.pod_spec import default_pod_spec
from trainer_devcluster.apiserver.kinds.pods.spec_validation import validate_pod_spec
from trainer_devcluster.apiserver.kinds.workload import validate_template_metadata

if TYPE_CHECKING:
    from trainer.kube.field_errors import FieldError
    from trainer.kube.objects import Object
    from trainer_devcluster.apiserver.definitions.strategy import WriteContext

_MAX_NAME: Final = 52
"""A Job of it adds eleven characters to its name, which has to fit a label."""
_CONCURRENCY_POLICIES: Final = ("Allow", "Forbid", "Replace")
_RESTART_POLICIES: Final = ("OnFailure", "Never")
_COUNTS: Final = ("startingDeadlineSeconds", "successfulJobsHistoryLimit", "failedJobsHistoryLimit")
_FIELDS: Final = {"minute": (0, 59), "hour": (0, 23), "dom": (1, 31), "month": (1, 12), "dow": (0, 7)}
_NAMES: Final = {
    "month": ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"),
    "dow": ("sun", "mon", "tue", "wed", "thu", "fri", "sat"),
}
_DESCRIPTORS: Final = ("@yearly", "@annually", "@monthly", "@weekly", "@daily", "@midnight", "@hourly")
_EVERY: Final = re.compile(r"@every ([0-9]+(\.[0-9]+)?(ns|us|ms|s|m|h))+")


class CronJobStrategy(StoreOnlyStrategy):
    """batch/v1 CronJob."""

    def default(self, obj: Object, context: WriteContext) -> None:  # noqa: ARG002 - the protocol's signature
        """Fill in the specification; what a Job adds to it is filled in when there is a Job."""
        spec = section(obj, "spec")
        fill(spec, concurrencyPolicy="Allow", suspend=False, successfulJobsHistoryLimit=3, failedJobsHistoryLimit=1)
        job = section(spec, "jobTemplate")
        section(job, "metadata")
        template = section(section(job, "spec"), "template")
        section(template, "metadata")
        default_pod_spec(section(template, "spec"))

    def prepare_for_create(self, obj: Object, context: WriteContext) -> None:
        """Start it without a status."""
        obj["status"] = {}
        context.warn("batch/v1 CronJob is only stored: the dev cluster makes no Jobs at given times")

    def validate(self, obj: Object, context: WriteContext) -> list[FieldError]:  # noqa: ARG002
        """Check name, schedule, policies and template."""
        spec = obj["spec"]
        causes: list[FieldError] = []
        if len(name_of(obj)) > _MAX_NAME:
            causes.append(invalid("metadata.name", name_of(obj), f"must be no more than {_MAX_NAME} characters"))
        causes += _validate_schedule(spec.get("schedule") or "")
        causes += [cause for name in _COUNTS for cause in not_negative(f"spec.{name}", spec.get(name))]
        causes += _validate_time_zone(spec.get("timeZone"))
        policy = spec["concurrencyPolicy"]
        if policy not in _CONCURRENCY_POLICIES:
            causes.append(not_supported("spec.concurrencyPolicy", policy, _CONCURRENCY_POLICIES))
        template, path = spec["jobTemplate"]["spec"]["template"], "spec.jobTemplate.spec.template"
        causes += validate_template_metadata(template, f"{path}.metadata")
        return causes + validate_pod_spec(template["spec"], f"{path}.spec", restart_policies=_RESTART_POLICIES)

    def validate_update(self, obj: Object, old: Object, context: WriteContext) -> list[FieldError]:  # noqa: ARG002
        """Check it, but for its status."""
        return [] if context.subresource == "status" else self.validate(obj, context)


def _validate_schedule(schedule: str) -> list[FieldError]:
    path = "spec.schedule"
    if not schedule:
        return [required(path)]
    if "TZ" in schedule:
        detail = "cannot use TZ or CRON_TZ in schedule, use timeZone field instead"
        return [invalid(path, schedule, detail)]
    if schedule.startswith("@"):
        known = schedule in _DESCRIPTORS or _EVERY.fullmatch(schedule)
        return [] if known else [invalid(path, schedule, f"unrecognized descriptor: {schedule}")]
    parts = schedule.split()
    if len(parts) != len(_FIELDS):
        detail = f"expected exactly 5 fields, found {len(parts)}: [{' '.join(parts)}]"
        return [invalid(path, schedule, detail)]
    for name, part in zip(_FIELDS, parts, strict=True):
        if problem := _cron_problem(name, part):
            return [invalid(path, schedule, problem)]
    return []


def _cron_problem(name: str, field: str) -> str:
    low, high = _FIELDS[name]
    for entry in field.split(","):
        span, slash, step = entry.partition("/")
        if slash and not step.isdigit():
            return f"failed to parse int from {step}: strconv.Atoi: parsing {_quoted(step)}: invalid syntax"
        if slash and not int(step):
            return f"step of range should be a positive number: {entry}"
        if span in ("*", "?"):
            continue
        numbers = []
        for text in span.split("-"):
            number = _cron_number(name, text)
            if number is None:
                return f"failed to parse int from {text}: strconv.Atoi: parsing {_quoted(text)}: invalid syntax"
            numbers.append(number)
        if len(numbers) > 2:
            return f"too many hyphens: {entry}"
        if numbers[0] < low:
            return f"beginning of range ({numbers[0]}) below minimum ({low}): {entry}"
        if numbers[-1] > high:
            return f"end of range ({numbers[-1]}) above maximum ({high}): {entry}"
        if numbers[0] > numbers[-1]:
            return f"beginning of range ({numbers[0]}) beyond end of range ({numbers[-1]}): {entry}"
    return ""


def _cron_number(name: str, text: str) -> int | None:
    names = _NAMES.get(name, ())
    if text.lower() in names:
        return names.index(text.lower()) + _FIELDS[name][0]
    return int(text) if text.isascii() and text.isdigit() else None


def _quoted(text: str) -> str:
    return f'"{text}"'


def _validate_time_zone(name: str | None) -> list[FieldError]:
    if name is None:
        return []
    if not name:
        return [invalid("spec.timeZone", name, "timeZone must be nil or non-empty string")]
    if name.lower() == "local":
        detail = "timeZone must be an explicit time zone as defined in https://www.iana.org/time-zones"
        return [invalid("spec.timeZone", name, detail)]
    try:
        zoneinfo.ZoneInfo(name)
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError):
        return [invalid("spec.timeZone", name, f"unknown time zone {name}")]
    return []


CRON_JOB = ResourceDefinition(
    Resource("batch", "v1", "cronjobs", "CronJob"),
    CronJobStrategy(),
    singular="cronjob",
    short_names=("cj",),
    categories=("all",),
    status_subresource=True,
)
