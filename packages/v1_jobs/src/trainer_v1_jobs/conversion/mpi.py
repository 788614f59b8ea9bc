"""MPIJob, of either operator: a launcher that starts processes on workers over SSH.

The Training Operator used `kubectl exec` for it, so its images may lack sshd.
"""

from __future__ import annotations

from typing import Final

from trainer.api.losses import Losses
from trainer.kube.objects import Object, mapping_at, objects_in
from trainer_v1_jobs.api.kinds import MPIJob, MPIJobSpec, MPIJobV2beta1, MPIJobV2beta1Spec
from trainer_v1_jobs.conversion.draft import Draft, replicated_job
from trainer_v1_jobs.conversion.places import NODE, Place
from trainer_v1_jobs.conversion.pods import Pods, main_container, pods_of, set_env
from trainer_v1_jobs.conversion.restarts import check_backoff_limit, restart_fields
from trainer_v1_jobs.conversion.source import Role, Source

FRAMEWORK: Final = "mpi"
RESERVED: Final = {
    "OpenMPI": frozenset(
        {
            "OMPI_MCA_orte_default_hostfile", "OMPI_MCA_orte_keep_fqdn_hostnames", "OMPI_MCA_orte_set_default_slots",
            "OMPI_MCA_plm_rsh_args", "PRTE_MCA_prte_default_hostfile", "PRTE_MCA_prte_keep_fqdn_hostnames",
            "PRTE_MCA_prte_set_default_slots", "PRTE_MCA_prte_do_not_resolve", "PRTE_MCA_plm_ssh_args",
        }
    ),
    "Intel": frozenset(
        {
            "I_MPI_HYDRA_HOST_FILE", "I_MPI_HYDRA_BOOTSTRAP", "I_MPI_HYDRA_BOOTSTRAP_EXEC_EXTRA_ARGS", "I_MPI_PERHOST",
        }
    ),
    "MPICH": frozenset({"HYDRA_HOST_FILE", "HYDRA_LAUNCHER", "HYDRA_LAUNCHER_EXTRA_ARGS"}),
}  # fmt: skip
"""Variables that only the plugin sets, by implementation."""

_EXEC: Final = frozenset({"OMPI_MCA_plm_rsh_agent", "I_MPI_HYDRA_BOOTSTRAP_EXEC"})
"""Variables of the Training Operator's transport."""
_LAUNCHER: Final = "launcher"
_ROLE: Final = "K_MPI_JOB_ROLE"
_PLACES: Final = {"Launcher": Place(_LAUNCHER), "Worker": Place(NODE)}
_DIRECTORY: Final = "/root/.ssh"
_PORT: Final = 2222
_LAUNCHER_BACKOFF_LIMIT: Final = 6
"""That of Jobs that state none, as which the MPI Operator makes the launcher."""
_NO_GPU: Final = (
    {"name": "NVIDIA_VISIBLE_DEVICES", "value": ""},
    {"name": "NVIDIA_DRIVER_CAPABILITIES", "value": ""},
)
"""Variables with which a launcher that does not train sees no GPU of its machine."""
_ANY_GROUP: Final = 1000
"""Group that may read the key where the user is that of an image: one that Kubernetes adds to those of the user."""
_SERVER: Final = """\
test "$(id -u)" != 0 || mkdir -p /run/sshd
exec /usr/sbin/sshd -D -e -f /dev/null -p {port} -h {directory}/id_rsa \\
  -o AuthorizedKeysFile={directory}/authorized_keys \\
  -o StrictModes=no -o PidFile=none -o LogLevel=FATAL -o SetEnv=PYTHONUNBUFFERED=1
"""
"""Needs an sshd in the image and no configuration: the key of the TrainJob is also the host key."""


def draft(source: Source, losses: Losses, _port: int) -> Draft:
    """The parts of an MPIJob."""
    policy = _policy(source, losses)
    launcher, worker = source.role("Launcher"), source.role("Worker")
    assert launcher is not None, "reading refuses a job without one"
    if worker is None:
        policy["runLauncherAsNode"] = True
        if source.version == "v1alpha1":
            rule = "gets a node beside it, where mpirun starts processes, too: that version has no launcher alone"
            losses.add(launcher.path, rule)
    reserved = RESERVED[_implementation(source)] | _EXEC
    # Without workers there will be no node beside the launcher, but a runtime has one.
    node = _node(source, worker or launcher, losses if worker else Losses(), reserved)
    start = _launcher(source, launcher, losses, reserved)
    nodes = (worker.replicas if worker else 0) + (1 if policy.get("runLauncherAsNode") else 0)
    trainer = {"numNodes": nodes, "numProcPerNode": _spec(source).slots_per_worker or 1}
    return Draft(FRAMEWORK, [node, start], {"mpi": policy}, trainer)


def _spec(source: Source) -> MPIJobSpec | MPIJobV2beta1Spec:
    assert isinstance(source.job, MPIJob | MPIJobV2beta1), "each kind has a draft of its own"
    return source.job.spec


def _implementation(source: Source) -> str:
    spec = _spec(source)
    return (isinstance(spec, MPIJobV2beta1Spec) and spec.mpi_implementation) or "OpenMPI"


def _policy(source: Source, losses: Losses) -> Object:
    spec = _spec(source)
    if not isinstance(spec, MPIJobV2beta1Spec):
        return {}
    policy: Object = {}
    if spec.mpi_implementation is not None:
        policy["mpiImplementation"] = spec.mpi_implementation
    if spec.ssh_auth_mount_path is not None:
        policy["SSHAuthMountPath"] = spec.ssh_auth_mount_path
    if spec.run_launcher_as_worker:
        policy["runLauncherAsNode"] = True
    if spec.launcher_creation_policy == "AtStartup":
        losses.add("spec.launcherCreationPolicy", "is left out: the launcher starts once its workers are ready")
    return policy


def _node(source: Source, role: Role, losses: Losses, reserved: frozenset[str]) -> Object:
    variables = [{"name": _ROLE, "value": "worker"}] if isinstance(source.job, MPIJobV2beta1) else []
    pods = _pods_with(variables, source, role, losses, reserved)
    if isinstance(source.job, MPIJobV2beta1):
        if not pods.main.get("command") and not pods.main.get("args"):
            pods.main["command"] = ["/usr/sbin/sshd", "-De"]
    else:
        _serve_ssh(pods, role, losses)
    return replicated_job(NODE, pods, restart_fields(source, role, pods, losses), is_trainer=True)


def _serve_ssh(pods: Pods, role: Role, losses: Losses) -> None:
    """Make workers that were reached by `kubectl exec` run sshd."""
    main = pods.main
    path = f"{role.containers_path}[{main['name']}]"
    rule = "are reached over SSH, and no longer by kubectl exec: their image needs sshd, and that of the launcher ssh"
    losses.add(role.path, rule)
    for name in ("command", "args"):
        if main.pop(name, None):
            losses.add(f"{path}.{name}", "is left out: workers run sshd")
    if main.get("env") or main.get("envFrom"):
        losses.add(f"{path}.env", "does not reach processes that SSH starts: hand it on with mpirun -x NAME")
    main["command"] = ["/bin/sh", "-c"]
    main["args"] = [_SERVER.format(port=_PORT, directory=_DIRECTORY)]
    main["ports"] = [*main.get("ports", []), {"name": "ssh", "containerPort": _PORT}]
    main.setdefault("readinessProbe", {"tcpSocket": {"port": _PORT}, "periodSeconds": 2})


def _launcher(source: Source, role: Role, losses: Losses, reserved: frozenset[str]) -> Object:
    is_v2beta1 = isinstance(source.job, MPIJobV2beta1)
    container = main_container(source, role.template["spec"]["containers"])
    variables: list[Object] = [{"name": _ROLE, "value": "launcher"}] if is_v2beta1 else []
    has_gpu = any("gpu" in name for name in mapping_at(container, "resources", "limits"))
    hides_gpus = not _trains(source) if is_v2beta1 else not has_gpu
    pods = _pods_with([*variables, *(_NO_GPU if hides_gpus else ())], source, role, losses, reserved)
    fields = restart_fields(source, role, pods, losses)
    account = pods.template["spec"].get("serviceAccountName")
    if not is_v2beta1 and account and account == f"{source.metadata.get('name')}-{_LAUNCHER}":
        rule = f"is made by nobody here: remove it, or make a ServiceAccount {account}"
        losses.add(f"{role.path}.template.spec.serviceAccountName", rule)
    if is_v2beta1:
        limit = source.run_policy.backoff_limit if source.run_policy else None
        fields["backoffLimit"] = _LAUNCHER_BACKOFF_LIMIT if limit is None else limit
        fields["podReplacementPolicy"] = "Failed"
        if role.restart_policy == "Never":
            del fields["podFailurePolicy"]  # the operator made it a Job, for which each failed pod counts
    else:
        check_backoff_limit(source, 1, losses)
    return replicated_job(_LAUNCHER, pods, fields)


def _trains(source: Source) -> bool:
    """Whether the launcher of a job of the MPI Operator trains: if it is a worker, or there are none."""
    spec = _spec(source)
    return source.role("Worker") is None or (isinstance(spec, MPIJobV2beta1Spec) and bool(spec.run_launcher_as_worker))


def _pods_with(variables: list[Object], source: Source, role: Role, losses: Losses, reserved: frozenset[str]) -> Pods:
    """The pods of a role with what both operators change of them; only the container that trains gets variables."""
    pods = pods_of(source, role, losses, reserved | {variable["name"] for variable in variables}, places=_PLACES)
    set_env(pods.main, variables)
    _resolve_hosts(pods, source, role, losses)
    _let_read_key(pods, source, role, losses)
    return pods


def _resolve_hosts(pods: Pods, source: Source, role: Role, losses: Losses) -> None:
    """Have pods in the network of their machine find each other by DNS, as the MPI Operator does."""
    spec = pods.template["spec"]
    if not spec.get("hostNetwork"):
        return
    spec["dnsPolicy"] = "ClusterFirstWithHostNet"
    interface = {"Intel": "I_MPI_HYDRA_IFACE", "MPICH": "HYDRA_IFACE"}.get(_implementation(source), "")
    names = {variable["name"] for variable in objects_in(pods.main.get("env"))}
    if interface and role.name == "Launcher" and interface not in names:
        rule = (
            f"needs the variable {interface}, the network interface of the machines: trainer takes eth0, that of pods"
        )
        losses.add(f"{role.path}.template.spec.hostNetwork", rule)


def _let_read_key(pods: Pods, source: Source, role: Role, losses: Losses) -> None:
    """Let a user other than root read the key of SSH; the MPI Operator leaves it open in another directory."""
    spec, job = pods.template["spec"], _spec(source)
    context = mapping_at(spec, "securityContext")
    user = mapping_at(pods.main, "securityContext").get("runAsUser", context.get("runAsUser"))
    if not isinstance(job, MPIJobV2beta1Spec):
        if user:
            rule = (
                f"needs a home of user {user} with the key of SSH: set mlPolicy.mpi.SSHAuthMountPath of the runtime to "
                "its .ssh, and fsGroup of the pods"
            )
            losses.add(f"{role.path}.template.spec.securityContext", rule)
    elif user != 0 and context.get("fsGroup") is None and job.ssh_auth_mount_path not in {None, _DIRECTORY}:
        spec["securityContext"] = context | {"fsGroup": user or _ANY_GROUP}
