"""A Job of Kubernetes (`batch/v1`) as a TrainJob: its pods are nodes that need not know each other."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Iterator
from typing import Final, Literal

from pydantic import Field

from trainer.api.jobset import JobSpec
from trainer.api.labels import ANCESTOR_LABEL
from trainer.api.losses import Losses
from trainer.api.metadata import ObjectMetadata
from trainer.api.model import ApiModel
from trainer.api.pod_template import semantic_pod_template_errors
from trainer.kube.field_errors import FieldError, invalid, required
from trainer.kube.objects import Object, mapping_at, objects_in
from trainer.v1alpha1.decode import with_literal_command
from trainer.v1alpha1.discovery import Version
from trainer_v1_jobs.conversion import Conversion
from trainer_v1_jobs.conversion.convert import assembled
from trainer_v1_jobs.conversion.draft import TRAINER_FIELDS, Draft
from trainer_v1_jobs.conversion.places import NODE
from trainer_v1_jobs.conversion.pods import TRAINER
from trainer_v1_jobs.conversion.shipped import matching_runtime

_FRAMEWORK: Final = "plain"
_DEFAULT_BACKOFF_LIMIT: Final = 6
"""That of Jobs."""
_KEPT: Final = ("podFailurePolicy", "podReplacementPolicy")
_READ: Final = frozenset(
    {"template", "parallelism", "completions", "completionMode", "backoffLimit", "activeDeadlineSeconds", "suspend"}
)
_PODS: Final = "spec.template.spec"


class BatchJob(ApiModel):
    """A Job."""

    api_version: Literal["batch/v1"] = "batch/v1"
    kind: Literal["Job"] = "Job"
    metadata: ObjectMetadata = Field(default_factory=ObjectMetadata)
    spec: JobSpec
    """The desired pods."""

    def semantic_errors(self) -> Iterator[FieldError]:
        """What makes it unfit for nodes that train, or for the API server."""
        yield from semantic_pod_template_errors(self.spec.template, "spec.template")
        for container in self.spec.template["spec"]["containers"]:
            if not container.get("image"):
                yield required(f"{_PODS}.containers[{container['name']}].image")
        if self.spec.parallelism == 0:
            yield invalid("spec.parallelism", 0, "must be at least 1")
        elif self.spec.completions not in {None, self.nodes}:
            rule = f"must be parallelism, which is {self.nodes}: the pods of a TrainJob run at once"
            yield invalid("spec.completions", self.spec.completions, rule)

    @property
    def nodes(self) -> int:
        """The pods that run at once, which are all."""
        return 1 if self.spec.parallelism is None else self.spec.parallelism


def main_of(containers: list[Object], wanted: str | None) -> Object | None:
    """The container that trains: by its name, else the first; None if there is none."""
    return next((each for each in containers if each.get("name") == wanted), containers[0] if containers else None)


def convert_job(job: Object, wanted: str | None, *, version: Version, runtimes: Iterable[Object]) -> Conversion:
    """A Job as a TrainJob with its runtime.

    Args:
        job: the Job, with a name; it is not changed.
        wanted: name of the container that trains. None: the first.
        version: that the cluster serves.
        runtimes: ClusterTrainingRuntimes that the cluster has, in the shape of v2alpha1.

    Raises:
        InvalidObjectError: it is wrong; the message has a line for each field.
    """
    model, losses = BatchJob.from_object(job, strict=True), Losses()
    spec, template = job["spec"], copy.deepcopy(job["spec"]["template"])
    if "metadata" in template:
        template["metadata"] = losses.metadata(template["metadata"], "spec.template.metadata")
        if not template["metadata"]:
            del template["metadata"]
    pods, policies = template["spec"], _policies(spec, losses)
    for kind in ("containers", "initContainers"):
        if kind in pods:
            pods[kind] = [with_literal_command(each) for each in pods[kind]]
    main = main_of(pods["containers"], wanted)
    assert main is not None, "the schema wants one"
    _rename(pods["containers"], main, policies, losses)
    for name in ("hostname", "subdomain"):
        if pods.pop(name, None) is not None:
            losses.add(f"{_PODS}.{name}", "is left out: it is set by JobSet")
    trainer: Object = {"numNodes": model.nodes, "image": main["image"]}
    trainer |= {member: main.pop(name) for name, member in TRAINER_FIELDS.items() if main.get(name)}
    made = {"metadata": {"labels": {ANCESTOR_LABEL: "trainer"}}, "spec": policies | {"template": template}}
    draft = Draft(_FRAMEWORK, [{"name": NODE, "template": made}], trainer=trainer)
    runtime: Object = {"mlPolicy": {"numNodes": 1}, "template": {"spec": {"replicatedJobs": draft.jobs}}}
    fields = {name: spec[name] for name in ("activeDeadlineSeconds",) if spec.get(name)}
    found = matching_runtime(runtime, runtimes)
    return assembled(job["metadata"], draft, runtime, fields=fields, found=found, losses=losses, version=version)


def _policies(spec: Object, losses: Losses) -> Object:
    """When pods are started again; all else that a Job says is lost."""
    for name in sorted(spec.keys() - _READ - set(_KEPT)):
        losses.add(f"spec.{name}", "is left out: the trials are Jobs of JobSets, which set it")
    limit = spec.get("backoffLimit", _DEFAULT_BACKOFF_LIMIT)
    return {"backoffLimit": limit} | copy.deepcopy({name: spec[name] for name in _KEPT if name in spec})


def _rename(containers: list[Object], main: Object, policies: Object, losses: Losses) -> None:
    """Call the container that trains so that it is found among others; the rules of failures follow."""
    if len(containers) == 1:
        return
    for container in containers:
        if container is not main and container["name"] == TRAINER:
            container["name"] = f"{TRAINER}-sidecar"
            message = f"becomes {TRAINER}-sidecar: the container that trains is called {TRAINER} beside others"
            losses.add(f"{_PODS}.containers[{TRAINER}].name", message)
    old, main["name"] = main["name"], TRAINER
    for rule in objects_in(mapping_at(policies, "podFailurePolicy").get("rules")):
        codes = mapping_at(rule, "onExitCodes")
        if codes.get("containerName") == old:
            codes["containerName"] = TRAINER
