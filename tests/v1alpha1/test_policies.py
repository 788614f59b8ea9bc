"""Rules of the released Trainer about the policies of runtimes."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest

from tests.v1alpha1.test_admission import MPI, NODE, env, job, replicated_job, runtime
from trainer.api.trainingruntime import CLUSTER_TRAINING_RUNTIMES, Runtime
from trainer.framework.plugin_api.devices import USUAL_DEVICES
from trainer.framework.runtimes.runtimes import read_runtime
from trainer.kube.errors import ForbiddenError, NotFoundError
from trainer.kube.objects import Object
from trainer.kube.resource import PRIORITY_CLASSES
from trainer.v1alpha1.client import decoded
from trainer.v1alpha1.policies import ignored, policy_errors, priority_classes_of, priority_errors
from trainer_kube_testing import FakeClient

LLAMA, LARGE, QWEN = "torchtune-llama3.2-1b", "torchtune-llama3.3-70b", "torchtune-qwen2.5-1.5b"
LORA, QLORA = "model.lora_attn_modules=[q_proj]", "model.quantize_base=True"
GPU: dict[str, Any] = {"resourcesPerNode": {"limits": {"nvidia.com/gpu": 1}}}
TWO_GPUS = replicated_job("node", "node", ancestor="trainer")
TWO_GPUS["template"]["spec"]["template"]["spec"]["containers"][0]["resources"] = {"limits": {"nvidia.com/gpu": 2}}


def tune(name: str, *args: str, command: tuple[str, ...] = ("tune", "run"), **trainer: Any) -> Object:
    """A TrainJob with the command of torchtune."""
    return job(name, trainer={"command": [*command], "args": [*args], **trainer})


def read(obj: Object) -> Runtime:
    """A runtime as it is read from the cluster."""
    return read_runtime(CLUSTER_TRAINING_RUNTIMES, decoded(obj))


def texts(train_job: Object, policy: Object | None = None, *jobs: Object) -> list[str]:
    """The errors of a TrainJob."""
    name = train_job["spec"]["runtimeRef"]["name"]
    found = read(runtime(name, policy or {"torch": {}}, *(jobs or (TWO_GPUS,))))
    return [str(error) for error in policy_errors(train_job["spec"], found, DEVICES_OF)]


@pytest.mark.parametrize(
    "train_job",
    [
        pytest.param(tune(LLAMA), id="all weights"),
        pytest.param(tune(LLAMA, LORA), id="LoRA"),
        pytest.param(tune(LLAMA, LORA, QLORA, **GPU), id="QLoRA on one GPU"),
        pytest.param(tune(LLAMA, QLORA, numProcPerNode=1), id="QLoRA in one process"),
        pytest.param(tune(LLAMA, LORA, QLORA, "model.use_dora=true"), id="quantized DoRA"),
        pytest.param(tune(LARGE, QLORA), id="QLoRA of a large model"),
        pytest.param(tune(LARGE, numNodes=4), id="several nodes"),
        pytest.param(tune("other", "output_dir=/o", numNodes=4, command=("tune", "run", "mine")), id="another command"),
        pytest.param(job("other", trainer={"args": ["output_dir=/o"], "numNodes": 4}), id="the runtime's command"),
    ],
)
def test_torchtune_accepts(train_job: Object) -> None:
    """What torchtune can do is accepted, and so are commands that are not completed."""
    assert texts(train_job) == []


DEVICES_OF = partial(USUAL_DEVICES.devices_of, namespace="default", by_name=True)
ONE_DEVICE = "torchtune runs QLoRA of llama3_2/1B on a single device"
MANAGED = 'must not set immutable config "{}" in trainer args; it is managed by the runtime'


@pytest.mark.parametrize(
    ("train_job", "expected"),
    [
        pytest.param(
            tune("torchtune-gemma-2b"),
            {
                "spec.runtimeRef.name": "must have a supported pretrained model, invalid model configured: gemma/2B",
            },
            id="another model",
        ),
        pytest.param(
            tune(LLAMA, numNodes=2),
            {"spec.trainer.numNodes": "must be 1 for llama3_2/1B model"},
            id="several nodes of a small model",
        ),
        pytest.param(
            tune(QWEN, QLORA, numProcPerNode=1),
            {"spec.runtimeRef.name": "names qwen2_5/1.5B, which torchtune cannot fine-tune with QLoRA"},
            id="QLoRA of Qwen",
        ),
        pytest.param(
            tune(LLAMA, QLORA),
            {
                "spec.trainer.numProcPerNode": f"must be 1, or unset with one GPU: {ONE_DEVICE}",
                "spec.trainer.resourcesPerNode": f"must have one GPU, unless numProcPerNode is 1: {ONE_DEVICE}",
            },
            id="QLoRA on two GPUs",
        ),
        pytest.param(
            tune(LARGE, LORA, numNodes=2),
            {"spec.trainer.numNodes": "must be 1 with LoRA: on several nodes torchtune trains all weights"},
            id="LoRA on several nodes",
        ),
        pytest.param(
            tune(LLAMA, "epochs=1", "output_dir=/o", "tokenizer.path=/t"),
            {
                "spec.trainer.args[1]": MANAGED.format("output_dir"),
                "spec.trainer.args[2]": MANAGED.format("tokenizer.path"),
            },
            id="paths of the runtime",
        ),
    ],
)
def test_torchtune_refuses(train_job: Object, expected: dict[str, str]) -> None:
    """What the released Trainer refuses of torchtune is refused."""
    found = [text.partition(": Invalid value: ") for text in texts(train_job)]
    assert {field: text.partition(": ")[2] for field, _, text in found} == expected
    assert len(found) == len(expected)


def test_env_injection() -> None:
    """A target must be in the runtime."""
    targets = [{"jobName": "node", "containerNames": ["side", "gone"]}, {"jobName": "lost", "containerNames": ["a"]}]
    errors = texts(job(), {"torch": {"envInjection": {"targets": targets}}}, NODE)
    words = "envInjection target podSet {} container {} not found in runtime template"
    assert [error.rpartition("}: ")[2] for error in errors] == [
        words.format('"node"', '"gone"'),
        words.format('"lost"', '"a"'),
    ]


def volcano(*classes: str, queue: str | None = None) -> Runtime:
    """A runtime with a gang of Volcano."""
    jobs = [replicated_job(f"job-{index}", "node") for index, _ in enumerate(classes)]
    for each, name in zip(jobs, classes, strict=True):
        each["template"]["spec"]["template"]["spec"]["priorityClassName"] = name
    obj = runtime("gang", {"torch": {}}, *(jobs or [NODE]))
    obj["spec"]["podGroupPolicy"] = {"volcano": {}}
    if queue is not None:
        obj["spec"]["template"]["metadata"] = {"annotations": {"scheduling.volcano.sh/queue-name": queue}}
    return read(obj)


def with_queue(queue: str) -> Object:
    """A TrainJob whose patch names a queue."""
    metadata = {"annotations": {"scheduling.volcano.sh/queue-name": queue}}
    return job(
        "gang", runtimePatches=[{"manager": "a.io/b", "trainingRuntimeSpec": {"template": {"metadata": metadata}}}]
    )


@pytest.mark.parametrize(
    ("found", "train_job", "is_refused"),
    [
        pytest.param(volcano(), job("gang"), False, id="no queue"),
        pytest.param(volcano(queue="a"), job("gang"), False, id="a queue"),
        pytest.param(volcano(queue=""), job("gang"), True, id="an empty queue"),
        pytest.param(volcano(queue=""), with_queue("a"), False, id="a patch names one"),
        pytest.param(volcano(queue="a"), with_queue(""), True, id="a patch empties it"),
    ],
)
def test_queues(found: Runtime, train_job: Object, is_refused: bool) -> None:
    """A queue has a name, where one is written."""
    errors = [str(error) for error in policy_errors(train_job["spec"], found, DEVICES_OF)]
    field = "spec.annotations[scheduling.volcano.sh/queue-name]"
    assert errors == ([f'{field}: Invalid value: "": Volcano queue name must not be empty'] if is_refused else [])


@pytest.mark.parametrize(
    ("classes", "missing"),
    [
        pytest.param(["high"], [], id="present"),
        pytest.param(["high", "lost", "gone"], ["lost", "gone"], id="missing"),
        pytest.param(["lost", "system-node-critical", "gone"], ["lost"], id="none after one of the system"),
    ],
)
async def test_priority_classes(classes: list[str], missing: list[str]) -> None:
    """The cluster has the PriorityClasses of a gang."""
    client = FakeClient(resources=[PRIORITY_CLASSES])
    high = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "high"}, "value": 1}
    await client.create(PRIORITY_CLASSES, high)
    errors = await priority_errors(volcano(*classes), priority_classes_of(client))
    words = 'PriorityClass "{0}" doesn\'t exist'
    assert [str(error).partition(": create")[0] for error in errors] == [
        f'spec.templateSpec.priorityClassName: Invalid value: "{name}": {words.format(name)}' for name in missing
    ]
    assert await priority_errors(read(runtime("plain", {"torch": {}}, NODE)), priority_classes_of(client)) == []


@pytest.mark.parametrize(("error", "exists"), [(ForbiddenError(403, "no"), True), (NotFoundError(404, "no"), False)])
async def test_priority_classes_that_cannot_be_seen(error: ForbiddenError | NotFoundError, exists: bool) -> None:
    """A manager with the released rights, which lack these, refuses nothing because of that."""
    client = FakeClient(resources=[PRIORITY_CLASSES])
    client.faults.fail(error, verb="get")
    assert await priority_classes_of(client)("high") is exists


UNLABELLED = runtime("r", {}, replicated_job("node", "node"))


@pytest.mark.parametrize(
    ("obj", "trainer", "fields"),
    [
        pytest.param(runtime("r", {}, NODE), {"resourcesPerNode": {"limits": {"cpu": 1}}}, [], id="both are there"),
        pytest.param(UNLABELLED, {"numNodes": 2}, ["spec.trainer"], id="no label"),
        pytest.param(UNLABELLED, {}, [], id="nothing is set"),
    ],
)
def test_ignored(obj: Object, trainer: Object, fields: list[str]) -> None:
    """An author learns which settings do nothing."""
    assert [warning.field for warning in ignored({"trainer": trainer}, read(obj))] == fields


def test_mpi() -> None:
    """What is reserved is named; a launcher that is the only Job trains alone."""
    train_job = job("mpi", **env("OMPI_MCA_plm_rsh_args"))
    train_job["spec"]["trainer"]["numNodes"] = 2
    errors = texts(train_job, {"mpi": MPI}, replicated_job("launcher", "node", ancestor="trainer"))
    assert [error.partition(":")[0] for error in errors] == ["spec.trainer.env", "spec.trainer.numNodes"]
