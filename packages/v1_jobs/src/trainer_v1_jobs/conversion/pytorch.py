"""PyTorchJob: nodes that `torchrun`, or the script itself, joins to one training.

Master and workers with equal pods become nodes of one Job, of which the first is the master. Where they differ, each
role is a Job of its own and has the variables of the operator written out.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from trainer.api.losses import Losses
from trainer.kube.objects import Object
from trainer_v1_jobs.api.kinds import ElasticPolicy, PyTorchJob
from trainer_v1_jobs.conversion import rendezvous
from trainer_v1_jobs.conversion.draft import Draft, Nodes, PerRoleJobs, draft_nodes, draft_per_role
from trainer_v1_jobs.conversion.places import name_variable
from trainer_v1_jobs.conversion.pods import UNBUFFERED, declared_port
from trainer_v1_jobs.conversion.source import Source

FRAMEWORK: Final = "torch"
RESERVED: Final = frozenset(
    {"PET_NNODES", "PET_NPROC_PER_NODE", "PET_NODE_RANK", "PET_MASTER_ADDR", "PET_MASTER_PORT", "PET_STANDALONE"}
)
"""Variables that only the plugin sets."""
RESERVED_IN_ELASTIC: Final = frozenset({"PET_RDZV_BACKEND", "PET_RDZV_ID", "PET_RDZV_ENDPOINT", "PET_MAX_RESTARTS"})
"""Further ones of an elastic training."""

_ELASTIC: Final = "spec.elasticPolicy"
_SCRIPT_VARIABLES: Final = frozenset({"MASTER_ADDR", "MASTER_PORT", "WORLD_SIZE", "RANK"})


def draft(source: Source, losses: Losses, port: int) -> Draft:
    """The parts of a PyTorchJob; `port` is where nodes meet."""
    job = _job(source)
    if not source.has_equal_roles:
        return _draft_per_role(source, losses)
    elastic = job.spec.elastic_policy
    if elastic is None and source.pods > 1 and source.role("Master") is None:
        rule = (
            "become nodes of one training: without a Master the operator did not join them; "
            "to keep them apart write a TrainJob of one node for each"
        )
        losses.add(source.roles[0].path, rule)
    torch: Object = {}
    if elastic is not None and not _is_standalone(source, elastic):
        torch["elasticPolicy"] = _elastic_policy(source, elastic, losses)
    variables = [*_variables(source, port, is_elastic=bool(torch))]
    if elastic is not None:
        variables += _elastic_variables(source, elastic, losses, is_alone=not torch)
    reserved = RESERVED | (RESERVED_IN_ELASTIC if torch else frozenset())
    if source.role("Master"):
        reserved |= _SCRIPT_VARIABLES
    result = draft_nodes(
        source,
        losses,
        framework=FRAMEWORK,
        ml_policy={"torch": torch},
        variables=[*variables, UNBUFFERED],
        runtime_variables=rendezvous.node_variables(source, elastic, port) if elastic is not None and torch else (),
        sidecar_variables=[name_variable(), *operator_variables(source, Nodes(), port), UNBUFFERED],
        reserved=reserved,
        ends_with_first=source.role("Master") is not None,
        meets_at=None if torch else port,
    )
    if (processes := _processes(job)) != "auto":
        result.trainer["numProcPerNode"] = processes
    if torch:
        _bound_size(result.trainer, torch["elasticPolicy"], source, losses)
        if source.version == "v1alpha1" and source.role("Master") is None:
            # What the plugin does with an elastic policy, which that version lacks.
            result.jobs[0]["template"]["spec"]["successPolicy"] = {"rules": [{"succeededCount": 1}]}
    return result


def operator_variables(source: Source, pods: Nodes | PerRoleJobs, port: int | None = None) -> Iterator[Object]:
    """What the operator gives every container, with the names of pods as they are now.

    Args:
        source: the job.
        pods: who says the names.
        port: where nodes meet. Default: where the job says.
    """
    job, master = _job(source), source.role("Master")
    if master is not None:
        host, number = pods.host(0), str(port or declared_port(source, master))
        yield from (_literal(name, host) for name in ("MASTER_ADDR", "PET_MASTER_ADDR"))
        yield from (_literal(name, number) for name in ("MASTER_PORT", "PET_MASTER_PORT"))
        yield _literal("WORLD_SIZE", str(_world_size(source)))
        yield from ({"name": name, "valueFrom": pods.rank} for name in ("RANK", "PET_NODE_RANK"))
    yield _literal("PET_NPROC_PER_NODE", str(_processes(job)))
    if job.spec.elastic_policy is None:
        yield _literal("PET_NNODES", str(source.pods))
    else:
        yield from _elastic_operator_variables(source, job.spec.elastic_policy, pods, port)


def _draft_per_role(source: Source, losses: Losses) -> Draft:
    elastic = _job(source).spec.elastic_policy
    if elastic is not None:
        rule = "no longer changes the number of workers: give Master and Worker equal pods for that"
        losses.add(_ELASTIC, rule)
        rendezvous.check_backend(source, elastic, losses)
    return draft_per_role(
        source,
        losses,
        framework=FRAMEWORK,
        variables=lambda _role, per_role: [*operator_variables(source, per_role)],
        ends_with="Master",
    )


def _job(source: Source) -> PyTorchJob:
    assert isinstance(source.job, PyTorchJob), "each kind has a draft of its own"
    return source.job


def _processes(job: PyTorchJob) -> int | str:
    """Processes of a node: a number, auto, cpu or gpu."""
    elastic = job.spec.elastic_policy
    stated = job.spec.nproc_per_node
    if stated is None and elastic is not None:
        stated = elastic.n_proc_per_node
    if stated is None:
        return "auto"
    return int(stated) if str(stated).isdigit() else stated


def _world_size(source: Source) -> int:
    """As the operator counts it, which takes a number of processes that it does not know for one."""
    processes = _processes(_job(source))
    return source.pods * (processes if isinstance(processes, int) else 1)


def _variables(source: Source, port: int, *, is_elastic: bool) -> Iterator[Object]:
    """Those for scripts that do without torchrun, where the plugin does not set them."""
    if source.role("Master") is None:
        return
    is_sparse = source.version == "v1alpha1" or is_elastic
    if is_sparse:
        yield name_variable()
        yield _literal("MASTER_ADDR", Nodes().host(0))
        yield _literal("MASTER_PORT", str(port))
    if is_sparse or _processes(_job(source)) not in {"auto", 1}:
        yield _literal("WORLD_SIZE", str(_world_size(source)))
        yield {"name": "RANK", "valueFrom": Nodes().rank}


def _literal(name: str, value: str) -> Object:
    return {"name": name, "value": value}


def _is_standalone(source: Source, policy: ElasticPolicy) -> bool:
    """Whether there is one node, and it will stay alone."""
    most = policy.max_replicas or policy.min_replicas or source.pods
    return bool(policy.standalone) and source.pods == most == 1 and not policy.metrics


def _elastic_policy(source: Source, policy: ElasticPolicy, losses: Losses) -> Object:
    """The policy of the runtime; what it does not have is lost."""
    worker = source.role("Worker")
    workers = worker.replicas if worker else source.pods
    least = policy.min_replicas or policy.max_replicas or workers
    most = policy.max_replicas or policy.min_replicas or workers
    rendezvous.check_backend(source, policy, losses)
    if policy.standalone:
        rule = "is left out: the nodes train together; for a training on each, let the command be torchrun --standalone"
        losses.add(f"{_ELASTIC}.standalone", rule)
    result: Object = {"minNodes": least, "maxNodes": most}
    if policy.max_restarts is not None:
        result["maxRestarts"] = policy.max_restarts
    if policy.metrics:
        result["metrics"] = policy.metrics
    return result


def _elastic_variables(source: Source, policy: ElasticPolicy, losses: Losses, *, is_alone: bool) -> Iterator[Object]:
    """Options of torchrun besides the policy of the runtime; all, if that has none or is ignored."""
    if (is_alone or source.version == "v1alpha1") and policy.max_restarts is not None:
        yield _literal("PET_MAX_RESTARTS", str(policy.max_restarts))
    if configuration := rendezvous.configuration(source, policy, losses, is_alone=is_alone):
        yield _literal("PET_RDZV_CONF", configuration)


def _bound_size(trainer: Object, policy: Object, source: Source, losses: Losses) -> None:
    """Start with a number of nodes within the bounds, which count a master as well."""
    nodes = trainer["numNodes"]
    trainer["numNodes"] = min(max(nodes, policy["minNodes"]), policy["maxNodes"])
    if trainer["numNodes"] != nodes:
        rule = f"becomes {trainer['numNodes']}: {nodes} is out of the bounds of elasticPolicy, and a master is a node"
        losses.add(f"{source.roles[-1].path}.replicas", rule)


def _elastic_operator_variables(
    source: Source, policy: ElasticPolicy, pods: Nodes | PerRoleJobs, plugin_port: int | None
) -> Iterator[Object]:
    worker = source.role("Worker") or source.roles[0]
    least = policy.min_replicas or policy.max_replicas
    most = policy.max_replicas or policy.min_replicas
    yield from rendezvous.operator_variables(source, policy, pods, plugin_port)
    yield _literal("PET_NNODES", f"{least}:{most}" if least else str(worker.replicas))
    if policy.max_restarts is not None:
        yield _literal("PET_MAX_RESTARTS", str(policy.max_restarts))
    if policy.standalone:
        yield _literal("PET_STANDALONE", "")
