"""Jobs of the operators and Experiments of Katib in a cluster, by references such as `pytorchjob/demo`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final

import typer

from trainer.api.kubeflow_v1 import EXPERIMENTS, GROUP, JOBS
from trainer.cli.completion import names_of
from trainer.cli.errors import BadInputError, CommandError
from trainer.cli.jobs.find import is_about_an_object
from trainer.kube.client import Client
from trainer.kube.errors import NotFoundError
from trainer.kube.field_errors import listed
from trainer.kube.objects import Object
from trainer.kube.resource import Resource

_CONVERTIBLE: Final = (*JOBS, EXPERIMENTS)


@dataclass(frozen=True, slots=True)
class JobReference:
    """A job, or an Experiment, in a cluster."""

    resources: tuple[Resource, ...]
    """The versions of its kind that a cluster may serve, the newest first."""
    name: str

    @classmethod
    def parse(cls, text: str) -> JobReference:
        """Read `pytorchjob/demo`, `pytorchjobs.kubeflow.org/demo` and the like.

        Raises:
            BadInputError: it is none, or of another kind.
        """
        kind, slash, name = text.partition("/")
        wanted = kind.lower().removesuffix(f".{GROUP}")
        found = [each for each in _CONVERTIBLE if wanted in {each.plural, each.kind.lower()}]
        if not slash or not name or "/" in name or not found:
            if Path(text).exists():
                raise BadInputError(f"{text} is a file or directory: name it by --file (-f)")
            kinds = listed(sorted({each.kind.lower() for each in _CONVERTIBLE}))
            raise BadInputError(f"{text} must be KIND/NAME, such as pytorchjob/demo; kinds are {kinds}")
        return cls(tuple(reversed(found)), name)

    async def read(self, client: Client, namespace: str) -> Object:
        """The job as the cluster has it, with apiVersion and kind.

        Raises:
            CommandError: there is none of this name, or the cluster does not serve its kind.
        """
        for resource in self.resources:
            try:
                found = await client.get(resource, self.name, namespace)
            except NotFoundError as error:
                if is_about_an_object(error):
                    break
                continue
            return found | {"apiVersion": resource.api_version, "kind": resource.kind}
        else:
            kind = self.resources[0]
            raise CommandError(f"the cluster does not serve {kind.qualified_name}: name the one that has the job")
        raise CommandError(f"there is no {resource.kind} {self.name} in namespace {namespace}")


def job_references(context: typer.Context, incomplete: str) -> list[str]:
    """Completions: kinds; after a slash the objects of that kind in the cluster."""
    kind, slash, name = incomplete.partition("/")
    if not slash:
        kinds = {each.kind.lower() for each in _CONVERTIBLE}
        return sorted({f"{each}/" for each in kinds if each.startswith(kind.lower())})
    wanted = kind.lower()
    found = [each for each in _CONVERTIBLE if wanted in {each.kind.lower(), each.plural}]
    return [f"{kind}/{each}" for each in names_of(context, name, *found)]
