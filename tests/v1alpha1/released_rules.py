"""All rules of Kubeflow Trainer (Go) about TrainJobs and runtimes, each with objects that break it and that keep it.

The schema of the CRD checks a rule (422), or the webhook does (403). The times of runtime patches, which the webhook
sets, are in `test_v1alpha1.test_times`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tests.v1alpha1.test_admission import LAUNCHER, MPI, NODE, RUNTIMES, env, job, patched, replicated_job, runtime
from trainer.kube.objects import Object

OK, FORBIDDEN, INVALID = 200, 403, 422


@dataclass(frozen=True, slots=True)
class Case:
    """One request and the answer to it."""

    name: str
    object: Object
    status: int = OK
    text: str = ""
    """In the message, or in a warning where the request is accepted; … stands for anything."""
    old: Object | None = None
    """What the object replaces; None when it is created."""


def with_volcano(name: str, *, queue: str | None = None, priority: str = "") -> Object:
    """A runtime with a gang of Volcano."""
    node = replicated_job("node", "node", ancestor="trainer")
    if priority:
        node["template"]["spec"]["template"]["spec"]["priorityClassName"] = priority
    found = runtime(name, {"torch": {}}, node)
    found["spec"]["podGroupPolicy"] = {"volcano": {}}
    if queue is not None:
        found["spec"]["template"]["metadata"] = {"annotations": {"scheduling.volcano.sh/queue-name": queue}}
    return found


def injecting(name: str, *containers: str, job_name: str = "node") -> Object:
    """A runtime that gives the variables of torchrun to more containers."""
    targets = [{"jobName": job_name, "containerNames": [*containers]}]
    return runtime(name, {"torch": {"envInjection": {"targets": targets}}}, NODE)


TWO_GPUS = replicated_job("node", "node", ancestor="trainer")
TWO_GPUS["template"]["spec"]["template"]["spec"]["containers"][0]["resources"] = {"limits": {"nvidia.com/gpu": 2}}
FETCHING = [replicated_job(name, name) for name in ("dataset-initializer", "model-initializer")]
TUNED = ("torchtune-llama3.2-1b", "torchtune-llama3.3-70b", "torchtune-qwen2.5-1.5b", "torchtune-gemma-2b")
ALL_RUNTIMES = [
    *RUNTIMES,
    *(runtime(name, {"torch": {}}) for name in TUNED),
    runtime("fetching", {"torch": {}}, *FETCHING, NODE),
    runtime("jax", {"jax": {}}),
    injecting("injecting", "side", "init"),
    injecting("missing", "gone"),
    injecting("lost", "side", job_name="lost"),
    runtime("two-gpus-torchtune", {"torch": {}}, TWO_GPUS) | {"metadata": {"name": "torchtune-llama3.2-3b"}},
    runtime("unlabelled", {}, replicated_job("node", "node")),
    with_volcano("queued", queue="a"),
    with_volcano("no-queue", queue=""),
    with_volcano("urgent", priority="high"),
    with_volcano("too-urgent", priority="lost"),
]
PRIORITY_CLASSES = ("high",)


def in_queue(queue: str) -> Object:
    """A patch that names a queue of Volcano."""
    metadata = {"annotations": {"scheduling.volcano.sh/queue-name": queue}}
    return {"runtimePatches": [{"manager": "a.io/b", "trainingRuntimeSpec": {"template": {"metadata": metadata}}}]}


def named(name: str) -> Object:
    obj = job(suspend=True)
    return obj | {"metadata": obj["metadata"] | {"name": name}}


def tune(name: str, *args: str, **trainer: Any) -> Object:
    """A TrainJob with the command of torchtune."""
    return job(name, trainer={"command": ["tune", "run"], "args": [*args], **trainer})


def trained(name: str, *variables: str, **trainer: Any) -> Object:
    """A TrainJob with these variables and settings of the trainer."""
    return job(name, trainer={**env(*variables)["trainer"], **trainer})


def stored(part: str, uri: str) -> Object:
    """A TrainJob with a dataset or a model."""
    return job("fetching", initializer={part: {"storageUri": uri}})


def unchangeable(member: str, before: Any, after: Any) -> list[Case]:
    """A member of the spec that cannot be changed, and can come and go."""
    old, new, none = (job("fetching", **spec) for spec in ({member: before}, {member: after}, {}))
    return [
        Case(f"{member} changes", new, INVALID, f"spec.{member}: Invalid value: … field is immutable", old),
        Case(f"{member} is added", old, old=none),
        Case(f"{member} is removed", none, old=old),
    ]


def patch_change(name: str, before: Any, after: Any, *, is_free: bool = False) -> list[Case]:
    """A change of a member of the pods in a patch, while the TrainJob is suspended."""
    old, new = (job(suspend=True, **patched({name: value})) for value in (before, after))
    if is_free:
        return [Case(f"{name} of a patch changes", new, old=old)]
    text = f".template.spec.{name}: Invalid value: … field is immutable"
    return [Case(f"{name} of a patch changes", new, INVALID, text, old)]


EMPTY: Object = {"trainingRuntimeSpec": {"template": {"spec": {}}}}
LABEL_FORMAT = "metadata.name must match RFC 1035 DNS label format"
MANAGED = "spec.managedBy: Invalid value: … ManagedBy must be trainer.kubeflow.org/trainjob-controller or "
NO_URI = "storageUri may be empty, or it must be a valid URI (scheme://...)"
FETCHED: Object = {"model": {"storageUri": "hf://a/b"}}
FETCHED_ANEW: Object = {"model": {"storageUri": "hf://a/c"}}
SIDE = {"name": "side", "volumeMounts": [{"name": "v", "mountPath": "/v"}]}
OTHER_SIDE = {"name": "side", "volumeMounts": [{"name": "v", "mountPath": "/w"}]}
INIT, OTHER_INIT = SIDE | {"name": "init"}, OTHER_SIDE | {"name": "init"}
SUSPENDED = "RuntimePatches can only be modified when the TrainJob is suspended before or after the update"
ACTIVE = "RuntimePatches cannot be modified when the JobSet's ReplicatedJob node is still active"
PLACED = patched({"nodeSelector": {"a": "b"}})
COUNTS = {"ready": 0, "succeeded": 0, "failed": 0, "active": 1, "suspended": 0}
RUNNING = {"status": {"jobsStatus": [{"name": "node"} | COUNTS]}}
NOT_FOUND = "must be created before the TrainJob is created"
RESERVED = "spec.trainer.env: Invalid value: "
ONE_DEVICE = "torchtune runs QLoRA of llama3_2/1B on a single device"
ONE_GPU: Object = {"resourcesPerNode": {"limits": {"nvidia.com/gpu": 1}}}
QLORA, LORA = "model.quantize_base=True", "model.lora_attn_modules=[q_proj]"
PATHS = ("output_dir", "tokenizer.path", "checkpointer.checkpoint_dir", "tokenizer.merges_file")
ENVIRONMENT = "must not have envs for the dataset-initializer, model-initializer, node containers"
NO_CHANGE = "spec.trainer: Invalid value: … field is immutable"
IMAGE: Object = {"image": "a"}
SIZES = {name: IMAGE | {name: value} for name, value in (("numNodes", 2), *ONE_GPU.items())}
QUEUE = "spec.annotations[scheduling.volcano.sh/queue-name]"
ONE_POLICY = "spec.mlPolicy: Invalid value: Only one of the policy can be configured"
POLICIES = ("torch", "mpi", "jax", "xgboost", "flux")

RULES: dict[str, list[Case]] = {
    "the name is a DNS label": [
        Case("valid-job-name", named("valid-job-name")),
        Case("63 characters", named("a" * 63), text="metadata.name"),
        Case("64 characters", named("a" * 64), INVALID, "metadata.name must be no more than 63 characters"),
        *(Case(name, named(name), INVALID, LABEL_FORMAT) for name in ("Upper", "1st", "ends-", "a.b")),
        Case("an update", named("1st"), INVALID, LABEL_FORMAT, old=named("1st") | {"spec": job()["spec"]}),
    ],
    "what was decided at the creation cannot be changed": [
        Case(
            "runtimeRef changes", job("xgboost"), INVALID, "spec.runtimeRef: Invalid value: … field is immutable", job()
        ),
        *unchangeable("trainer", {"image": "a"}, {"image": "b"}),
        *(
            Case(f"{name} of the trainer changes", job(trainer=size), INVALID, NO_CHANGE, job(trainer=IMAGE))
            for name, size in SIZES.items()
        ),
        *unchangeable("initializer", FETCHED, FETCHED_ANEW),
        *unchangeable("activeDeadlineSeconds", 1, 2),
        Case(
            "managedBy changes",
            job(managedBy="kueue.x-k8s.io/multikueue"),
            INVALID,
            "spec.managedBy: Invalid value: … field is immutable",
            job(),
        ),
        Case("managedBy is left out", job(), old=job(managedBy="trainer.kubeflow.org/trainjob-controller")),
    ],
    "pods of patches: only placement can be changed": [
        *patch_change("serviceAccountName", "a", "b"),
        *patch_change("volumes", [{"name": "v", "emptyDir": {}}], [{"name": "v", "emptyDir": {"medium": "Memory"}}]),
        *patch_change("containers", [SIDE], [OTHER_SIDE]),
        *patch_change("initContainers", [INIT], [OTHER_INIT]),
        *patch_change("imagePullSecrets", [{"name": "a"}], [{"name": "b"}]),
        *patch_change("securityContext", {"runAsUser": 1}, {"runAsUser": 2}),
        *patch_change("terminationGracePeriodSeconds", 300, 600),
        *patch_change("nodeSelector", {"a": "b"}, {"a": "c"}, is_free=True),
        *patch_change("affinity", {}, {"podAntiAffinity": {}}, is_free=True),
        *patch_change("tolerations", [{"key": "a"}], [{"key": "b"}], is_free=True),
        *patch_change("schedulingGates", [{"name": "a.io/a"}], [{"name": "a.io/b"}], is_free=True),
        Case("another manager", job(suspend=True, **patched({}, manager="b.io/b")), old=job(suspend=True, **PLACED)),
    ],
    "managedBy is one of two": [
        Case("this controller", job(managedBy="trainer.kubeflow.org/trainjob-controller")),
        Case("MultiKueue", job(managedBy="kueue.x-k8s.io/multikueue")),
        Case("another", job(managedBy="invalid"), INVALID, MANAGED),
        Case("that of v2alpha1", job(managedBy="kubeflow.org/trainjob-controller"), INVALID, MANAGED),
    ],
    "storageUri is empty or a URI": [
        *(Case(f"{part} {uri!r}", stored(part, uri)) for part in FETCHED | {"dataset": 0} for uri in ("", "gs://b/p")),
        *(
            Case(f"{part} {uri!r}", stored(part, uri), INVALID, f"spec.initializer.{part}.storageUri: Invalid value: ")
            for part in ("dataset", "model")
            for uri in ("invalid-uri", "s3://")
        ),
    ],
    "times are positive": [
        Case("no deadline", job(activeDeadlineSeconds=0), INVALID, "spec.activeDeadlineSeconds: Invalid value: 0"),
        Case("no grace", job(**patched({"terminationGracePeriodSeconds": 0}))),
        Case(
            "less than no grace",
            job(**patched({"terminationGracePeriodSeconds": -1})),
            INVALID,
            "terminationGracePeriodSeconds: Invalid value: -1",
        ),
    ],
    "the runtime is of a known kind": [
        Case("no reference", job() | {"spec": {}}, INVALID, "spec.runtimeRef: Required value"),
        Case("no name", job(runtimeRef={}), INVALID, "spec.runtimeRef.name: Required value"),
        Case("an empty name", job(""), INVALID, "spec.runtimeRef.name: "),
        Case(
            "another kind",
            job(runtimeRef={"name": "a", "kind": "Other"}),
            FORBIDDEN,
            "unsupported runtime: Other.trainer.kubeflow.org",
        ),
        Case(
            "another group",
            job(runtimeRef={"name": "a", "apiGroup": "example.com"}),
            FORBIDDEN,
            "unsupported runtime: ClusterTrainingRuntime.example.com",
        ),
        Case(
            "no group",
            job(runtimeRef={"name": "torch", "apiGroup": ""}),
            FORBIDDEN,
            "unsupported runtime: ClusterTrainingRuntime",
        ),
        Case(
            "no kind",
            job(runtimeRef={"name": "torch", "kind": ""}),
            FORBIDDEN,
            "unsupported runtime: .trainer.kubeflow.org",
        ),
        Case("the default", job(runtimeRef={"name": "torch"})),
    ],
    "the runtime exists": [
        Case("none", job("none"), FORBIDDEN, f"specified clusterTrainingRuntime {NOT_FOUND}"),
        Case(
            "none in the namespace",
            job(runtimeRef={"name": "none", "kind": "TrainingRuntime"}),
            FORBIDDEN,
            f"specified trainingRuntime {NOT_FOUND}",
        ),
        Case("one in the namespace", job(runtimeRef={"name": "mine", "kind": "TrainingRuntime"})),
        Case("it was deleted", job("none", suspend=True), text=NOT_FOUND, old=job("none")),
        Case("it trains nothing", job("unlabelled", trainer={"numNodes": 2}), text="spec.trainer: has no effect"),
        Case("it is deprecated", job("old"), text='Referenced ClusterTrainingRuntime "old" is deprecated'),
    ],
    "torch: variables are reserved": [
        *(
            Case(name, trained("torch", "A", name), FORBIDDEN, f"invalid envs configured: [{name}]")
            for name in ("PET_NNODES", "PET_NPROC_PER_NODE", "PET_NODE_RANK", "PET_MASTER_ADDR", "PET_MASTER_PORT")
        ),
        Case("of others", trained("torch", "OMPI_MCA_plm_rsh_args", "DMLC_TASK_ID", "JAX_PROCESS_ID")),
    ],
    "torch: containers of envInjection exist": [
        Case("they do", job("injecting")),
        Case(
            "one is missing", job("missing"), FORBIDDEN, 'envInjection target podSet "node" container "gone" not found'
        ),
        Case("no such Job", job("lost"), FORBIDDEN, 'envInjection target podSet "lost" container "side" not found'),
    ],
    "torchtune: models, nodes and methods": [
        Case("one node", tune(TUNED[0])),
        Case("several of a large model", tune(TUNED[1], numNodes=4)),
        Case("another model", tune(TUNED[3]), FORBIDDEN, "must have a supported pretrained model"),
        Case("several nodes", tune(TUNED[0], numNodes=2), FORBIDDEN, "must be 1 for llama3_2/1B model"),
        Case(
            "QLoRA of Qwen", tune(TUNED[2], QLORA, numProcPerNode=1), FORBIDDEN, "spec.runtimeRef.name: Invalid value"
        ),
        Case("QLoRA in two processes", tune(TUNED[0], QLORA, numProcPerNode=2), FORBIDDEN, ONE_DEVICE),
        Case("QLoRA in one process", tune(TUNED[0], QLORA, numProcPerNode=1)),
        Case("LoRA", tune(TUNED[0], LORA)),
        Case(
            "QLoRA on two GPUs",
            tune("torchtune-llama3.2-3b", QLORA),
            FORBIDDEN,
            "must be 1, or unset with one GPU: … must have one GPU, unless numProcPerNode is 1: ",
        ),
        Case("QLoRA on one GPU", tune("torchtune-llama3.2-3b", LORA, QLORA, **ONE_GPU)),
        Case("quantized DoRA", tune("torchtune-llama3.2-3b", LORA, QLORA, "model.use_dora=true")),
        Case("QLoRA of a large model", tune(TUNED[1], QLORA)),
        Case("another command", tune("torch", "output_dir=/o", command=["tune", "run", "mine"], numNodes=4)),
        Case("the runtime's command", job(trainer={"args": ["output_dir=/o"], "numNodes": 4})),
        Case("LoRA on several nodes", tune(TUNED[1], LORA, numNodes=2), FORBIDDEN, "must be 1 with LoRA"),
        *(
            Case(path, tune(TUNED[0], f"{path}=/p"), FORBIDDEN, f'must not set immutable config "{path}"')
            for path in PATHS
        ),
    ],
    "MPI: variables are reserved": [
        *(
            Case(name, trained("mpi", name), FORBIDDEN, f"invalid envs configured: [OMPI_MCA_{name[9:]}]")
            for name in (
                "OMPI_MCA_orte_default_hostfile",
                "OMPI_MCA_orte_keep_fqdn_hostnames",
                "OMPI_MCA_orte_set_default_slots",
                "OMPI_MCA_plm_rsh_args",
            )
        ),
        Case("of others", trained("mpi", "PET_NNODES", "OMPI_MCA_btl")),
    ],
    "MPI: several nodes need a Job for them": [
        Case("two with", job("mpi", trainer={"numNodes": 2})),
        Case("one without", job("lonely", trainer={"numNodes": 1})),
        Case(
            "two without", job("lonely", trainer={"numNodes": 2}), FORBIDDEN, "spec.trainer.numNodes: Invalid value: 2"
        ),
    ],
    "XGBoost: variables are reserved": [
        *(
            Case(name, trained("xgboost", "A", name), FORBIDDEN, f"spec.trainer.env[1]: Forbidden: {name} is reserved")
            for name in ("DMLC_TRACKER_URI", "DMLC_TRACKER_PORT", "DMLC_TASK_ID", "DMLC_NUM_WORKER")
        ),
    ],
    "JAX: no variable is reserved": [
        Case("a user's", trained("jax", "JAX_COORDINATOR_ADDRESS", "JAX_NUM_PROCESSES", "JAX_PROCESS_ID")),
    ],
    "Flux: processes and its init container": [
        Case("one process", job("flux", trainer={"numProcPerNode": 1})),
        Case(
            "none",
            job("flux", trainer={"numProcPerNode": 0}),
            FORBIDDEN,
            "spec.trainer.numProcPerNode: Invalid value: 0",
        ),
        Case("its name is taken", job("reserved"), FORBIDDEN, "InitContainer 'flux-installer' is reserved"),
    ],
    "an initializer has its Job and container": [
        Case("they are there", job("fetching", initializer={"dataset": {}, "model": {}})),
        Case("no Job for a dataset", job(initializer={"dataset": {}}), FORBIDDEN, "must have dataset-initializer job"),
        Case("no Job for a model", job(initializer={"model": {}}), FORBIDDEN, "must have model-initializer job"),
        Case(
            "no container",
            job("other-container", initializer={"dataset": {}}),
            FORBIDDEN,
            "must have container with name - dataset-initializer in the dataset-initializer job",
        ),
        Case("no mount called initializer", job("data", initializer={"dataset": {"storageUri": "cache://a/b"}})),
    ],
    "patches change while no pods run": [
        Case("running", job(**PLACED), FORBIDDEN, SUSPENDED, job()),
        Case("suspended", job(suspend=True, **PLACED), old=job(suspend=True)),
        Case("resumed with it", job(**PLACED), old=job(suspend=True)),
        Case("suspended with it", job(suspend=True, **PLACED), old=job()),
        Case("pods still end", job(suspend=True, **PLACED), FORBIDDEN, ACTIVE, job(suspend=True) | RUNNING),
        Case("unchanged, pods run", job(suspend=True, **PLACED), old=job(**PLACED) | RUNNING),
    ],
    "a manager has a domain": [
        *(
            Case(name, job(**patched({}, manager=name)), FORBIDDEN, f'runtimePatches.manager: … "{name}": {text}')
            for name, text in (
                ("kueue", "must be a domain-prefixed path"),
                ("kueue.k8s.io/", "must be a domain-prefixed path"),
                ("/a", "must be a domain-prefixed path"),
                ("Kueue.io/a", "the part before / must be a DNS name"),
                ("a.io/ b", "Invalid path"),
            )
        ),
        Case("the entry of Kueue", job(runtimePatches=[{"manager": "kueue.x-k8s.io/manager"} | EMPTY])),
        Case("kueue.x-k8s.io/manager", job(**patched({}, manager="kueue.x-k8s.io/manager"))),
        Case("twice", job(runtimePatches=PLACED["runtimePatches"] * 2), INVALID, "Duplicate value"),
        Case("without", job(runtimePatches=[{}]), INVALID, "spec.runtimePatches[0].manager: Required value"),
    ],
    "patches name what the runtime has": [
        Case("a Job", job(**patched({}, name="worker")), FORBIDDEN, "must not have replicated job that doesn't exist"),
        Case(
            "a container",
            job(**patched({"containers": [{"name": "x"}]})),
            FORBIDDEN,
            "must not have container that doesn't exist in the runtime job node",
        ),
        Case(
            "an init container",
            job(**patched({"initContainers": [{"name": "x"}]})),
            FORBIDDEN,
            "must not have initContainer that doesn't exist in the runtime job node",
        ),
    ],
    "patches set no variables of the main containers": [
        *(
            Case(
                name,
                job("fetching", **patched({"containers": [{"name": name, "env": [{"name": "A"}]}]}, name)),
                FORBIDDEN,
                ENVIRONMENT,
            )
            for name in ("node", "dataset-initializer", "model-initializer")
        ),
        Case("of another", job(**patched({"containers": [{"name": "side", "env": [{"name": "A"}]}]}))),
    ],
    "Volcano: queue and PriorityClass": [
        Case("a queue", job("queued")),
        Case("an empty queue", job("no-queue"), FORBIDDEN, f'{QUEUE}: Invalid value: "": Volcano queue name must not'),
        Case("a patch names one", job("no-queue", **in_queue("a"))),
        Case("a patch empties it", job("queued", **in_queue("")), FORBIDDEN, "Volcano queue name must not"),
        Case("a PriorityClass", job("urgent")),
        Case("none of the name", job("too-urgent"), FORBIDDEN, 'PriorityClass "lost" doesn\'t exist'),
        Case("it was deleted", job("too-urgent", suspend=True), text='"lost" doesn\'t exist', old=job("too-urgent")),
    ],
    "a runtime has the Jobs that TrainJobs change": [
        Case(
            "several replicas",
            runtime("r", {}, NODE | {"replicas": 2}),
            FORBIDDEN,
            "replicas: Invalid value: 2: always",
        ),
        *(
            Case(
                f"another container than that of {step}",
                runtime("r", {}, replicated_job("a", "other", ancestor=step), kind=kind),
                FORBIDDEN,
                f"must contain the required container for the ancestor: {step}",
            )
            for step in ("trainer", "dataset-initializer", "model-initializer")
            for kind in ("ClusterTrainingRuntime", "TrainingRuntime")
        ),
        Case("another ancestor", runtime("r", {}, replicated_job("a", "other", ancestor="other"))),
        Case("it can be changed", runtime("torch", {"torch": {}, "numNodes": 2}), old=RUNTIMES[0]),
    ],
    "a runtime has one policy": [
        *(
            Case(f"{first} and {second}", runtime("r", {first: {}, second: {}}), INVALID, ONE_POLICY)
            for index, first in enumerate(POLICIES)
            for second in POLICIES[index + 1 :]
        ),
        Case("all", runtime("r", {name: {} for name in POLICIES}), INVALID, ONE_POLICY),
        *(Case(name, runtime("r", {name: {}}, replicated_job("node", "node"), LAUNCHER)) for name in POLICIES),
    ],
    "a runtime says something": [
        Case("nothing", runtime("r", {}) | {"spec": {}}, INVALID, "spec: Invalid value"),
        Case(
            "an empty template", runtime("r", {}) | {"spec": {"template": {}}}, INVALID, "spec.template: Invalid value"
        ),
    ],
    "policies have values that are known": [
        Case("MPI", runtime("r", {"mpi": MPI | {"mpiImplementation": "invalid"}}), INVALID, "mpiImplementation"),
        Case(
            "Flux", runtime("r", {"flux": {"numProcPerNode": 0}}), INVALID, "NumProcPerNode in fluxPolicy must be >= 1"
        ),
        Case("injected node", injecting("r", "side", "node"), INVALID, "must not include the main node container"),
    ],
}
