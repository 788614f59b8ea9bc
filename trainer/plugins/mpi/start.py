"""When an MPI launcher starts: after its nodes, or together with them where it is one of them in a gang.

A gang starts when all of its pods have been created, so a launcher that is a member cannot be created after the others
are ready. It is created with them, and its command begins once the sshd of each answers. It waits for half an hour at
least, since nodes may have to pull their image.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from trainer.api.jobset import DependsOn
from trainer.framework import PodSet, RuntimeInfo
from trainer.kube.field_errors import FieldError, required
from trainer.plugins.mpi import hostfile
from trainer.plugins.mpi.ssh_keys import ssh_options

SCRIPT: Final = f"""\
own=$1 options=$2 left=360
shift 2
while read -r host _; do
  host=${{host%%:*}}
  test "${{host%%.*}}" != "$own" || continue
  while ssh -n -o ConnectTimeout=5 -o ConnectionAttempts=1 $options "$host" true; test $? -eq 255; do
    left=$((left - 1))
    test "$left" -gt 0 || exit 1
    sleep 5
  done
done < {hostfile.PATH}
exec "$@"
"""
"""The program that waits for the nodes in the host file, for any shell; what ssh says meanwhile is in the log.

255 says that ssh reaches no sshd. With any other code waiting does not help, such as that of a shell without ssh: the
command begins, and says so better.
"""


def check_start(info: RuntimeInfo, launcher: PodSet) -> Iterator[FieldError]:
    """Refuse a command that is not known, which nothing can be put in front of."""
    if _is_member(info) and info.trainer.count > 1 and not launcher.main_container.command:
        rule = "must be set, to start it once the nodes of the gang are there: that of the image is not known here"
        yield required("spec.trainer.command", rule)


def start(info: RuntimeInfo, launcher: PodSet, directory: str, port: int | None) -> None:
    """Order launcher and nodes; sizes are final.

    Args:
        info: the training.
        launcher: its launcher.
        directory: where the keys of ssh are.
        port: of the sshd of the nodes; None where the configuration of the image says it.
    """
    has_nodes, nodes = info.trainer.replicas > 0, info.trainer
    if not (_is_member(info) and has_nodes and launcher.main_container.command):
        start_after_nodes(info, launcher)
        return
    job = info.job_of(launcher)
    # What the nodes wait for is no member of the gang.
    both = [*(job.depends_on or []), *(info.job_of(nodes).depends_on or [])]
    dependencies = {each.name: each for each in both if each.name != nodes.name}
    job.depends_on = [*dependencies.values()] or None
    _move_behind(info, launcher)
    container = launcher.main_container
    own = info.endpoints_of(launcher).of(0, 0).partition(".")[0]
    # Kubernetes would take $( for the beginning of a reference to a variable.
    script = SCRIPT.replace("$(", "$$(")
    options = ssh_options(directory, port)
    container.command = ["/bin/sh", "-c", script, "mpi-launcher", own, options, *container.command]


def start_after_nodes(info: RuntimeInfo, launcher: PodSet) -> None:
    """Start the launcher, which JobSet wants behind them for that, after its nodes and the runtime's dependencies."""
    if waits_for_nodes(info, launcher):
        return
    job = info.job_of(launcher)
    job.depends_on = [*(job.depends_on or []), DependsOn(name=info.trainer.name, status="Ready")]
    _move_behind(info, launcher)


def _is_member(info: RuntimeInfo) -> bool:
    return info.launcher_trains and info.launcher is not info.trainer and info.pod_group_policy.source is not None


def waits_for_nodes(info: RuntimeInfo, launcher: PodSet) -> bool:
    """Whether the runtime says that the launcher starts after its nodes."""
    return any(dependency.name == info.trainer.name for dependency in info.job_of(launcher).depends_on or [])


def _move_behind(info: RuntimeInfo, launcher: PodSet) -> None:
    """Move the launcher behind its nodes, since JobSet knows only dependencies on what comes before."""
    nodes, jobs = info.trainer, info.template.replicated_jobs or []
    if info.pod_sets.index(launcher) < info.pod_sets.index(nodes):
        info.pod_sets.remove(launcher)
        info.pod_sets.insert(info.pod_sets.index(nodes) + 1, launcher)
        order = {pod_set.name: position for position, pod_set in enumerate(info.pod_sets)}
        jobs.sort(key=lambda job: order[job.name])
