"""TrainJobs that admission refuses, with its exact answers and what refuses them where webhooks are switched off.

Field and rule together are what kubectl prints after `admission webhook "..." denied the request: `.
"""

# ruff: noqa: E501 - rules stay whole, to be searched for

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from tests.webhooks.blueprints import job, override, trainer
from trainer.api.rules import CREATED_IMMUTABLE, SUSPENDED_ONLY, TRAINER_IMMUTABLE
from trainer.kube.objects import Object


class Net(StrEnum):
    """What refuses an input when the webhooks are switched off."""

    SCHEMA = "schema"
    """The structural schema of the CRD; a field that it does not know is refused by kubectl's strict validation."""
    RULE = "rule"
    """A CEL rule of the CRD."""
    BUILD = "build"
    """The build, which says so in the condition Created."""


@dataclass(frozen=True, slots=True)
class BadInput:
    """One request and its answer."""

    name: str
    object: Object
    field: str
    rule: str
    """With the value that breaks it."""
    net: Net
    old: Object | None = None
    """What the object replaces; None when it is created."""


SCHEMA, RULE, BUILD = Net.SCHEMA, Net.RULE, Net.BUILD
CREATED: Object = {
    "conditions": [
        {
            "type": "Created",
            "status": "True",
            "reason": "JobsCreationSucceeded",
            "message": "Succeeded to create Jobs",
            "lastTransitionTime": "2026-01-01T00:00:00Z",
        }
    ]
}
"""The status of a TrainJob whose Jobs exist."""


def without(obj: Object, *path: str) -> Object:
    """A copy without one field."""
    name, *rest = path
    if rest:
        return obj | {name: without(obj[name], *rest)}
    return {key: value for key, value in obj.items() if key != name}


def changed(name: str, before: dict[str, Any], after: dict[str, Any], field: str, rule: str, net: Net) -> BadInput:
    """A change of the spec of a TrainJob whose Jobs exist."""
    return BadInput(name, job(status=CREATED, **(before | after)), field, rule, net, job(status=CREATED, **before))


TRAIN_JOBS = [
    BadInput("no-spec", without(job(), "spec"), "spec", "Required value", SCHEMA),
    BadInput("no-runtime-ref", job(runtimeRef=None), "spec.runtimeRef", "Required value", SCHEMA),
    BadInput("runtime-name-absent", job(runtimeRef={}), "spec.runtimeRef.name", "Required value", SCHEMA),
    BadInput(
        "runtime-name-empty", job(runtime=""), "spec.runtimeRef.name", 'Invalid value: "": must not be empty', SCHEMA
    ),
    BadInput(
        "runtime-name-long",
        job(runtime="r" * 254),
        "spec.runtimeRef.name",
        "Too long: may not be more than 253 bytes",
        SCHEMA,
    ),
    BadInput(
        "runtime-kind",
        job(runtimeRef={"name": "plain", "kind": "Runtime"}),
        "spec.runtimeRef.kind",
        'Unsupported value: "Runtime": supported values: "TrainingRuntime", "ClusterTrainingRuntime"',
        SCHEMA,
    ),
    BadInput(
        "runtime-group",
        job(runtimeRef={"name": "plain", "apiGroup": "example.com"}),
        "spec.runtimeRef.apiGroup",
        'Unsupported value: "example.com": supported values: "trainer.kubeflow.org"',
        SCHEMA,
    ),
    BadInput(
        "runtime-ref-typo",
        job(runtimeRef={"name": "plain", "kinds": "TrainingRuntime"}),
        "spec.runtimeRef.kinds",
        "Unknown field: did you mean kind?",
        SCHEMA,
    ),
    BadInput("spec-typo", job(trainr={}), "spec.trainr", "Unknown field: did you mean trainer?", SCHEMA),
    BadInput(
        "trainer-typo", trainer(numNode=2), "spec.trainer.numNode", "Unknown field: did you mean numNodes?", SCHEMA
    ),
    BadInput(
        "trainer-text",
        job(trainer="fast"),
        "spec.trainer",
        'Invalid value: "fast": must be a mapping of fields',
        SCHEMA,
    ),
    BadInput(
        "nodes-zero", trainer(numNodes=0), "spec.trainer.numNodes", "Invalid value: 0: must be at least 1", SCHEMA
    ),
    BadInput(
        "nodes-negative", trainer(numNodes=-1), "spec.trainer.numNodes", "Invalid value: -1: must be at least 1", SCHEMA
    ),
    BadInput(
        "nodes-text", trainer(numNodes="2"), "spec.trainer.numNodes", 'Invalid value: "2": must be an integer', SCHEMA
    ),
    BadInput(
        "nodes-true", trainer(numNodes=True), "spec.trainer.numNodes", "Invalid value: true: must be an integer", SCHEMA
    ),
    BadInput(
        "nodes-huge",
        trainer(numNodes=2**31),
        "spec.trainer.numNodes",
        "Invalid value: 2147483648: must be at most 2147483647",
        SCHEMA,
    ),
    BadInput(
        "nodes-beyond-kubernetes",
        trainer(numNodes=100_001),
        "spec.trainer.numNodes",
        "Invalid value: 100001: must be at most 100000, the most pods that a replicated Job can have",
        BUILD,
    ),
    BadInput(
        "processes-zero",
        trainer(numProcPerNode=0),
        "spec.trainer.numProcPerNode",
        'Invalid value: "0": must be auto, cpu, gpu or a positive integer',
        SCHEMA,
    ),
    BadInput(
        "processes-negative",
        trainer(numProcPerNode="-5"),
        "spec.trainer.numProcPerNode",
        'Invalid value: "-5": must be auto, cpu, gpu or a positive integer',
        SCHEMA,
    ),
    BadInput(
        "processes-word",
        trainer(numProcPerNode="many"),
        "spec.trainer.numProcPerNode",
        'Invalid value: "many": must be auto, cpu, gpu or a positive integer',
        SCHEMA,
    ),
    BadInput(
        "processes-fraction",
        trainer(numProcPerNode=1.5),
        "spec.trainer.numProcPerNode",
        "Invalid value: 1.5: must be an integer or a string; put it in quotes",
        SCHEMA,
    ),
    BadInput(
        "processes-of-plain",
        trainer(numProcPerNode=4),
        "spec.trainer.numProcPerNode",
        'Invalid value: "4": must be 1 or absent: only torch, MPI and JAX runtimes start several processes on a node',
        BUILD,
    ),
    BadInput(
        "processes-of-jax",
        job(runtime="jax", trainer={"numProcPerNode": "cpu"}),
        "spec.trainer.numProcPerNode",
        'Invalid value: "cpu": must be a number, gpu or auto: one JAX process uses all CPUs of a node',
        BUILD,
    ),
    BadInput(
        "image-number",
        trainer(image=3.11),
        "spec.trainer.image",
        "Invalid value: 3.11: must be a string; put it in quotes",
        SCHEMA,
    ),
    BadInput(
        "image-long", trainer(image="i" * 501), "spec.trainer.image", "Too long: may not be more than 500 bytes", SCHEMA
    ),
    BadInput(
        "image-nowhere",
        job(runtime="bare"),
        "spec.trainer.image",
        "Required value: container trainer of ClusterTrainingRuntime/bare has no image",
        BUILD,
    ),
    BadInput(
        "command-text",
        trainer(command="python train.py"),
        "spec.trainer.command",
        'Invalid value: "python train.py": must be a list',
        SCHEMA,
    ),
    BadInput(
        "command-number",
        trainer(command=["sleep", 10]),
        "spec.trainer.command[1]",
        "Invalid value: 10: must be a string; put it in quotes",
        SCHEMA,
    ),
    BadInput(
        "command-open-quote",
        trainer(command=["python -c 'print(1)"]),
        "spec.trainer.command",
        'Invalid value: "python -c \'print(1)": cannot be split into words (No closing quotation); write a list of words instead',
        BUILD,
    ),
    BadInput(
        "args-text", trainer(args="--fast"), "spec.trainer.args", 'Invalid value: "--fast": must be a list', SCHEMA
    ),
    BadInput("env-nameless", trainer(env=[{"value": "1"}]), "spec.trainer.env[0].name", "Required value", SCHEMA),
    BadInput(
        "env-twice",
        trainer(env=[{"name": "A", "value": "1"}, {"name": "A", "value": "2"}]),
        "spec.trainer.env[1]",
        'Duplicate value: {"name":"A"}',
        SCHEMA,
    ),
    BadInput(
        "env-number",
        trainer(env=[{"name": "A", "value": 1}]),
        "spec.trainer.env[0].value",
        "Invalid value: 1: must be a string; put it in quotes",
        SCHEMA,
    ),
    BadInput(
        "env-name",
        trainer(env=[{"name": "A=B", "value": "1"}]),
        "spec.trainer.env[0].name",
        'Invalid value: "A=B": must consist of printable ASCII characters other than =',
        SCHEMA,
    ),
    BadInput(
        "env-two-values",
        trainer(env=[{"name": "A", "value": "1", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}]),
        "spec.trainer.env[0].valueFrom",
        "Invalid value: may not be specified when value is not empty",
        BUILD,
    ),
    BadInput(
        "env-source",
        trainer(env=[{"name": "A", "valueFrom": {"secretRef": {"name": "s"}}}]),
        "spec.trainer.env[0].valueFrom.secretRef",
        "Unknown field: did you mean secretKeyRef?",
        SCHEMA,
    ),
    BadInput(
        "env-of-torch",
        job(runtime="torch", trainer={"env": [{"name": "PET_NNODES", "value": "9"}]}),
        "spec.trainer.env",
        "Forbidden: must not set PET_NNODES, which the torch plugin sets; remove it",
        BUILD,
    ),
    BadInput(
        "env-of-torch-in-override",
        override("torch", containers=[{"name": "trainer", "env": [{"name": "PET_NODE_RANK", "value": "9"}]}]),
        "spec.podSpecOverrides[0].containers[0].env",
        "Forbidden: must not set PET_NODE_RANK, which the torch plugin sets; remove it",
        BUILD,
    ),
    BadInput(
        "quantity",
        trainer(resourcesPerNode={"limits": {"cpu": "lots"}}),
        "spec.trainer.resourcesPerNode.limits[cpu]",
        'Invalid value: "lots": must be a quantity such as 2, 500m or 4Gi',
        SCHEMA,
    ),
    BadInput(
        "image",
        trainer(image="Pytorch/pytorch::latest"),
        "spec.trainer.image",
        'Invalid value: "Pytorch/pytorch::latest": must be an image such as python, team/image:tag or '
        'host:5000/team/image: ":latest" is no tag: letters, digits, _, . and -, at most 128 of them',
        BUILD,
    ),
    BadInput(
        "quantity-negative",
        trainer(resourcesPerNode={"limits": {"memory": "-1Gi"}}),
        "spec.trainer.resourcesPerNode.limits[memory]",
        'Invalid value: "-1Gi": must be greater than or equal to 0',
        BUILD,
    ),
    BadInput(
        "requests-above-limits",
        trainer(resourcesPerNode={"requests": {"cpu": 2}, "limits": {"cpu": 1}}),
        "spec.trainer.resourcesPerNode.requests[cpu]",
        "Invalid value: 2: must be less than or equal to cpu limit of 1",
        BUILD,
    ),
    BadInput(
        "requests-above-runtime",
        job(runtime="limited", trainer={"resourcesPerNode": {"requests": {"cpu": "8"}}}),
        "spec.trainer.resourcesPerNode.requests[cpu]",
        'Invalid value: "8": must be less than or equal to cpu limit of 4',
        BUILD,
    ),
    BadInput(
        "gpu-limit",
        trainer(resourcesPerNode={"requests": {"nvidia.com/gpu": 1}, "limits": {"nvidia.com/gpu": 2}}),
        "spec.trainer.resourcesPerNode.requests[nvidia.com/gpu]",
        "Invalid value: 1: must be equal to the nvidia.com/gpu limit, which is 2: it cannot be shared",
        BUILD,
    ),
    BadInput(
        "dataset-nowhere",
        job(datasetConfig={"storageUri": "s3://bucket/data"}),
        "spec.datasetConfig",
        "Forbidden: ClusterTrainingRuntime/plain has no container dataset-initializer; choose a runtime that has one, or remove this",
        BUILD,
    ),
    BadInput(
        "model-nowhere",
        job(modelConfig={"input": {"storageUri": "hf://org/model"}}),
        "spec.modelConfig.input",
        "Forbidden: ClusterTrainingRuntime/plain has no container model-initializer; choose a runtime that has one, or remove this",
        BUILD,
    ),
    BadInput(
        "export-nowhere",
        job(runtime="fine-tuning", modelConfig={"output": {"storageUri": "s3://bucket/model"}}),
        "spec.modelConfig.output",
        "Forbidden: ClusterTrainingRuntime/fine-tuning has no container model-exporter; choose a runtime that has one, or remove this",
        BUILD,
    ),
    BadInput(
        "uri",
        job(runtime="fine-tuning", datasetConfig={"storageUri": "invalid-uri"}),
        "spec.datasetConfig.storageUri",
        'Invalid value: "invalid-uri": must be a URI such as s3://bucket/path or hf://repository',
        SCHEMA,
    ),
    BadInput(
        "uri-of-nothing",
        job(runtime="fine-tuning", datasetConfig={"storageUri": "s3://"}),
        "spec.datasetConfig.storageUri",
        'Invalid value: "s3://": must be a URI such as s3://bucket/path or hf://repository',
        SCHEMA,
    ),
    BadInput(
        "secret-nameless",
        job(runtime="fine-tuning", datasetConfig={"secretRef": {}}),
        "spec.datasetConfig.secretRef.name",
        "Required value",
        SCHEMA,
    ),
    BadInput(
        "model-typo",
        job(runtime="fine-tuning", modelConfig={"ouput": {}}),
        "spec.modelConfig.ouput",
        "Unknown field: did you mean output?",
        SCHEMA,
    ),
    BadInput(
        "label-value",
        job(labels={"team": "a b"}),
        "spec.labels[team]",
        'Invalid value: "a b": must be a label value: letters, digits, -, _ and ., starting and ending with a letter or digit',
        SCHEMA,
    ),
    BadInput(
        "label-key",
        job(labels={"a b": "c"}),
        "spec.labels",
        'Invalid value: "a b": keys must be names of letters, digits, -, _ and ., such as team or example.com/team',
        BUILD,
    ),
    BadInput(
        "label-number",
        job(labels={"team": 1}),
        "spec.labels[team]",
        "Invalid value: 1: must be a string; put it in quotes",
        SCHEMA,
    ),
    BadInput(
        "annotation-number",
        job(annotations={"team": 1}),
        "spec.annotations[team]",
        "Invalid value: 1: must be a string; put it in quotes",
        SCHEMA,
    ),
    BadInput(
        "targets-absent",
        job(podSpecOverrides=[{"nodeSelector": {"a": "b"}}]),
        "spec.podSpecOverrides[0].targetJobs",
        "Required value",
        SCHEMA,
    ),
    BadInput(
        "targets-empty",
        job(podSpecOverrides=[{"targetJobs": []}]),
        "spec.podSpecOverrides[0].targetJobs",
        "Invalid value: []: must not be empty",
        SCHEMA,
    ),
    BadInput(
        "target-unknown",
        job(podSpecOverrides=[{"targetJobs": [{"name": "nodes"}]}]),
        "spec.podSpecOverrides[0].targetJobs[0].name",
        'Not found: "nodes": ClusterTrainingRuntime/plain has no such replicated Job; it has node',
        BUILD,
    ),
    BadInput(
        "target-twice",
        job(podSpecOverrides=[{"targetJobs": [{"name": "node"}, {"name": "Node"}]}]),
        "spec.podSpecOverrides[0].targetJobs[1].name",
        'Duplicate value: "Node"',
        BUILD,
    ),
    BadInput(
        "override-typo",
        override(container=[]),
        "spec.podSpecOverrides[0].container",
        "Unknown field: did you mean containers?",
        SCHEMA,
    ),
    BadInput(
        "override-container",
        override(containers=[{"name": "main"}]),
        "spec.podSpecOverrides[0].containers[0].name",
        'Not found: "main": replicated Job node of ClusterTrainingRuntime/plain has no such container; it has trainer',
        BUILD,
    ),
    BadInput(
        "override-init-container",
        override(initContainers=[{"name": "main"}]),
        "spec.podSpecOverrides[0].initContainers[0].name",
        'Not found: "main": replicated Job node of ClusterTrainingRuntime/plain has no such container; it has none',
        BUILD,
    ),
    BadInput(
        "override-image",
        override(containers=[{"name": "trainer", "image": "other"}]),
        "spec.podSpecOverrides[0].containers[0].image",
        "Unknown field: known here: name, command, args, env, envFrom, volumeMounts, securityContext",
        SCHEMA,
    ),
    BadInput(
        "override-affinity",
        override(affinity={"nodeAffinity": {"required": []}}),
        "spec.podSpecOverrides[0].affinity.nodeAffinity.required",
        "Unknown field: known here: preferredDuringSchedulingIgnoredDuringExecution, requiredDuringSchedulingIgnoredDuringExecution",
        SCHEMA,
    ),
    BadInput(
        "override-user",
        override(containers=[{"name": "trainer", "securityContext": {"runAsUser": -1}}]),
        "spec.podSpecOverrides[0].containers[0].securityContext.runAsUser",
        "Invalid value: -1: must be at least 0",
        SCHEMA,
    ),
    BadInput(
        "override-grace-period",
        override(terminationGracePeriodSeconds=-1),
        "spec.podSpecOverrides[0].terminationGracePeriodSeconds",
        "Invalid value: -1: must be at least 0",
        SCHEMA,
    ),
    BadInput(
        "override-pull-secret",
        override(imagePullSecrets=[{"name": "No"}]),
        "spec.podSpecOverrides[0].imagePullSecrets[0].name",
        'Invalid value: "No": must consist of lower-case letters, digits, - and ., and start and end with a letter or digit',
        SCHEMA,
    ),
    BadInput(
        "override-command",
        override(containers=[{"name": "trainer", "command": ['say "hi']}]),
        "spec.podSpecOverrides[0].containers[0].command",
        'Invalid value: "say \\"hi": cannot be split into words (No closing quotation); write a list of words instead',
        BUILD,
    ),
    BadInput(
        "mount-of-nothing",
        override(containers=[{"name": "trainer", "volumeMounts": [{"name": "data", "mountPath": "/data"}]}]),
        "spec.podSpecOverrides[0].containers[0].volumeMounts[0].name",
        'Invalid value: "data": is not a volume of the pods of node',
        BUILD,
    ),
    BadInput(
        "mount-without-path",
        override(containers=[{"name": "trainer", "volumeMounts": [{"name": "d"}]}]),
        "spec.podSpecOverrides[0].containers[0].volumeMounts[0].mountPath",
        "Required value",
        SCHEMA,
    ),
    BadInput(
        "mounts-at-one-path",
        override(
            volumes=[{"name": "d", "emptyDir": {}}],
            containers=[
                {
                    "name": "trainer",
                    "volumeMounts": [{"name": "d", "mountPath": "/d"}, {"name": "d", "mountPath": "/d"}],
                }
            ],
        ),
        "spec.podSpecOverrides[0].containers[0].volumeMounts[1]",
        'Duplicate value: {"mountPath":"/d"}',
        SCHEMA,
    ),
    BadInput(
        "volumes-of-one-name",
        override(volumes=[{"name": "d", "emptyDir": {}}] * 2),
        "spec.podSpecOverrides[0].volumes[1]",
        'Duplicate value: {"name":"d"}',
        SCHEMA,
    ),
    BadInput(
        "volume-of-two-kinds",
        override(volumes=[{"name": "d", "emptyDir": {}, "hostPath": {"path": "/d"}}]),
        "spec.podSpecOverrides[0].volumes[0]",
        'Invalid value: "d": has more than one volume type: emptyDir, hostPath',
        BUILD,
    ),
    BadInput(
        "volume-kind",
        override(volumes=[{"name": "d", "emptyDirectory": {}}]),
        "spec.podSpecOverrides[0].volumes[0].emptyDirectory",
        "Unknown field: did you mean emptyDir?",
        SCHEMA,
    ),
    BadInput(
        "claim-nameless",
        override(volumes=[{"name": "d", "persistentVolumeClaim": {}}]),
        "spec.podSpecOverrides[0].volumes[0].persistentVolumeClaim.claimName",
        "Required value",
        SCHEMA,
    ),
    BadInput(
        "toleration-operator",
        override(tolerations=[{"key": "a", "operator": "Is"}]),
        "spec.podSpecOverrides[0].tolerations[0].operator",
        'Unsupported value: "Is": supported values: "", "Equal", "Exists", "Gt", "Lt"',
        SCHEMA,
    ),
    BadInput(
        "toleration-effect",
        override(tolerations=[{"key": "a", "operator": "Exists", "effect": "Stop"}]),
        "spec.podSpecOverrides[0].tolerations[0].effect",
        'Unsupported value: "Stop": supported values: "", "NoExecute", "NoSchedule", "PreferNoSchedule"',
        SCHEMA,
    ),
    BadInput(
        "node-selector",
        override(nodeSelector={"zone": 1}),
        "spec.podSpecOverrides[0].nodeSelector[zone]",
        "Invalid value: 1: must be a string; put it in quotes",
        SCHEMA,
    ),
    BadInput("suspend-text", job(suspend="yes"), "spec.suspend", 'Invalid value: "yes": must be true or false', SCHEMA),
    BadInput(
        "deadline-zero",
        job(activeDeadlineSeconds=0),
        "spec.activeDeadlineSeconds",
        "Invalid value: 0: must be at least 1",
        SCHEMA,
    ),
    BadInput(
        "ttl-negative",
        job(ttlSecondsAfterFinished=-1),
        "spec.ttlSecondsAfterFinished",
        "Invalid value: -1: must be at least 0",
        SCHEMA,
    ),
    BadInput(
        "ttl-text",
        job(ttlSecondsAfterFinished="1h"),
        "spec.ttlSecondsAfterFinished",
        'Invalid value: "1h": must be an integer',
        SCHEMA,
    ),
    BadInput(
        "managed-by",
        job(managedBy="example.com/me"),
        "spec.managedBy",
        'Unsupported value: "example.com/me": supported values: "", "kubeflow.org/trainjob-controller", "kueue.x-k8s.io/multikueue"',
        SCHEMA,
    ),
    BadInput(
        "name-dots",
        job("a.b"),
        "metadata.name",
        'Invalid value: "a.b": must consist of lower-case letters, digits and -, start with a letter and end with a letter or digit',
        RULE,
    ),
    BadInput(
        "name-digit",
        job("1st"),
        "metadata.name",
        'Invalid value: "1st": must consist of lower-case letters, digits and -, start with a letter and end with a letter or digit',
        RULE,
    ),
    BadInput(
        "name-long",
        job("n" * 64),
        "metadata.name",
        f'Invalid value: "{"n" * 64}": is too long by 16: pods get names such as {"n" * 64}-node-0-0-abcde, of at most 63 characters',
        RULE,
    ),
    BadInput(
        "name-long-for-pods",
        job("n" * 60),
        "metadata.name",
        f'Invalid value: "{"n" * 60}": is too long by 12: pods get names such as {"n" * 60}-node-0-0-abcde, of at most 63 characters',
        BUILD,
    ),
    BadInput(
        "name-long-for-the-most-nodes",
        job("n" * 47, runtime="elastic-many"),
        "metadata.name",
        f'Invalid value: "{"n" * 47}": is too long by 1: pods get names such as {"n" * 47}-node-0-999-abcde when there are 1000 of them, of at most 63 characters',
        BUILD,
    ),
    BadInput(
        "nobody-trains",
        job(runtime="headless", trainer={"image": "image"}),
        "ClusterTrainingRuntime/headless spec.template.spec.replicatedJobs",
        'Invalid value: ["launcher","worker"]: none of them is the trainer; name one node or trainer-node, or label its template trainer.kubeflow.org/trainjob-ancestor-step: trainer',
        BUILD,
    ),
    BadInput(
        "mpi-without-a-launcher",
        job(runtime="mpi"),
        "ClusterTrainingRuntime/mpi spec.template.spec.replicatedJobs",
        'Invalid value: ["node"]: one must be called launcher: it runs the command of the TrainJob',
        BUILD,
    ),
    BadInput(
        "queue-without-a-name",
        job(runtime="gang", annotations={"scheduling.volcano.sh/queue-name": ""}),
        "spec.annotations[scheduling.volcano.sh/queue-name]",
        'Invalid value: "": must name a queue of Volcano; remove it for the default',
        BUILD,
    ),
    BadInput(
        "elastic-beyond-its-bounds",
        job(runtime="elastic", trainer={"numNodes": 3}),
        "spec.trainer.numNodes",
        "Invalid value: 3: must be between 1 and 2: ClusterTrainingRuntime/elastic spec.mlPolicy.torch.elasticPolicy",
        BUILD,
    ),
    BadInput(
        "rendezvous-of-elastic-torch",
        job(runtime="elastic", trainer={"env": [{"name": "PET_RDZV_ID", "value": "1"}]}),
        "spec.trainer.env",
        "Forbidden: must not set PET_RDZV_ID, which the torch plugin sets; remove it",
        BUILD,
    ),
    BadInput(
        "standalone-torch",
        job(runtime="torch", trainer={"env": [{"name": "PET_STANDALONE", "value": "1"}]}),
        "spec.trainer.env",
        "Forbidden: must not set PET_STANDALONE, which the torch plugin sets; remove it",
        BUILD,
    ),
    BadInput(
        "process-of-jax",
        job(runtime="jax", trainer={"env": [{"name": "JAX_PROCESS_ID", "value": "1"}]}),
        "spec.trainer.env",
        "Forbidden: must not set JAX_PROCESS_ID, which the jax plugin sets; remove it",
        BUILD,
    ),
]

TRAIN_JOB_CHANGES = [
    changed(
        "runtime-name",
        {},
        {"runtime": "jax"},
        "spec.runtimeRef.name",
        f"Forbidden: {CREATED_IMMUTABLE}",
        RULE,
    ),
    changed(
        "runtime-kind",
        {},
        {"runtimeRef": {"name": "plain", "kind": "TrainingRuntime"}},
        "spec.runtimeRef.kind",
        f"Forbidden: {CREATED_IMMUTABLE}",
        RULE,
    ),
    changed(
        "manager",
        {},
        {"managedBy": "kueue.x-k8s.io/multikueue"},
        "spec.managedBy",
        'Invalid value: "kueue.x-k8s.io/multikueue": managedBy is immutable: '
        "delete the TrainJob and submit it again, or submit another one",
        RULE,
    ),
    changed(
        "deadline",
        {"activeDeadlineSeconds": 60},
        {"activeDeadlineSeconds": 120},
        "spec.activeDeadlineSeconds",
        "Invalid value: 120: activeDeadlineSeconds is immutable: "
        "delete the TrainJob and submit it again, or submit another one",
        RULE,
    ),
    changed(
        "deadline-added",
        {},
        {"activeDeadlineSeconds": 120},
        "spec.activeDeadlineSeconds",
        "Invalid value: 120: activeDeadlineSeconds is immutable: "
        "delete the TrainJob and submit it again, or submit another one",
        RULE,
    ),
    changed(
        "deadline-removed",
        {"activeDeadlineSeconds": 60},
        {"activeDeadlineSeconds": None},
        "spec.activeDeadlineSeconds",
        "Invalid value: null: activeDeadlineSeconds is immutable: "
        "delete the TrainJob and submit it again, or submit another one",
        RULE,
    ),
    changed(
        "image",
        {"trainer": {"image": "a"}},
        {"trainer": {"image": "b"}},
        "spec.trainer.image",
        f"Forbidden: {CREATED_IMMUTABLE}",
        RULE,
    ),
    changed(
        "nodes-while-running",
        {},
        {"trainer": {"numNodes": 2}},
        "spec.trainer",
        f"Forbidden: {TRAINER_IMMUTABLE}",
        RULE,
    ),
    changed(
        "trainer-removed",
        {"trainer": {"image": "a"}},
        {"trainer": None},
        "spec.trainer",
        f"Forbidden: {TRAINER_IMMUTABLE}",
        RULE,
    ),
    changed(
        "dataset",
        {"runtime": "fine-tuning", "datasetConfig": {"storageUri": "s3://bucket/a"}},
        {"datasetConfig": {"storageUri": "s3://bucket/b"}},
        "spec.datasetConfig.storageUri",
        f"Forbidden: {CREATED_IMMUTABLE}",
        RULE,
    ),
    changed(
        "model-added",
        {"runtime": "fine-tuning"},
        {"modelConfig": {"input": {"storageUri": "hf://org/model"}}},
        "spec.modelConfig",
        f"Forbidden: {CREATED_IMMUTABLE}",
        RULE,
    ),
    changed(
        "labels-while-running",
        {},
        {"labels": {"team": "a"}},
        "spec.labels",
        f"Forbidden: {SUSPENDED_ONLY}",
        RULE,
    ),
    changed(
        "annotations-while-running",
        {"annotations": {"a": "b"}},
        {"annotations": None},
        "spec.annotations",
        f"Forbidden: {SUSPENDED_ONLY}",
        RULE,
    ),
    changed(
        "node-selector-while-running",
        {},
        {"podSpecOverrides": [{"targetJobs": [{"name": "node"}], "nodeSelector": {"zone": "a"}}]},
        "spec.podSpecOverrides",
        f"Forbidden: {SUSPENDED_ONLY}",
        RULE,
    ),
    changed(
        "service-account-while-suspended",
        {"suspend": True},
        {"podSpecOverrides": [{"targetJobs": [{"name": "node"}], "serviceAccountName": "robot"}]},
        "spec.podSpecOverrides",
        "Forbidden: only nodeSelector, tolerations, schedulingGates and metadata can be changed once the Jobs have been "
        "created; to change anything else, delete the TrainJob and submit it again, or submit another one",
        RULE,
    ),
    changed(
        "volumes-while-suspended",
        {"suspend": True, "podSpecOverrides": [{"targetJobs": [{"name": "node"}], "nodeSelector": {"zone": "a"}}]},
        {
            "podSpecOverrides": [
                {"targetJobs": [{"name": "node"}], "volumes": [{"name": "d", "emptyDir": {}}]},
            ]
        },
        "spec.podSpecOverrides",
        "Forbidden: only nodeSelector, tolerations, schedulingGates and metadata can be changed once the Jobs have been "
        "created; to change anything else, delete the TrainJob and submit it again, or submit another one",
        RULE,
    ),
    BadInput(
        "bad-before-creation",
        trainer(numNodes=0),
        "spec.trainer.numNodes",
        "Invalid value: 0: must be at least 1",
        SCHEMA,
        old=trainer(numNodes=1),
    ),
    BadInput(
        "unfit-before-creation",
        job(runtime="plain", trainer={"numProcPerNode": 8}),
        "spec.trainer.numProcPerNode",
        'Invalid value: "8": must be 1 or absent: only torch, MPI and JAX runtimes start several processes on a node',
        BUILD,
        old=job(runtime="plain"),
    ),
]
