"""What a data scientist does with the SDK of Kubeflow, scenario by scenario; prints what it answers as one JSON object.

Scenarios run side by side, each in a namespace of its own name, which has to exist.

    python -m e2e.sdk.scenarios DIRECTORY SCENARIO...

Trainings that wait for a file "go" look for it in DIRECTORY/<scenario>, which a patch mounts at /gate.
"""

from __future__ import annotations

import io
import json
import re
import sys
import traceback
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

from kubeflow.optimizer import OptimizerClient, Search, TrainJobTemplate
from kubeflow.trainer import (
    BuiltinTrainer,
    CustomTrainer,
    CustomTrainerContainer,
    DataCacheInitializer,
    DataFormat,
    DataType,
    HuggingFaceDatasetInitializer,
    HuggingFaceModelInitializer,
    Initializer,
    LoraConfig,
    Loss,
    S3DatasetInitializer,
    S3ModelInitializer,
    TorchTuneConfig,
    TorchTuneInstructDataset,
)
from kubeflow.trainer.options import (
    ActiveDeadlineSeconds,
    Annotations,
    ContainerPatch,
    Labels,
    Name,
    PodSpecPatch,
    TrainerArgs,
    TrainerCommand,
)

from e2e.sdk.session import TRAINER, Session, patched, until

KATIB = ("kubeflow.org", "v1beta1")
WAITS = TrainerCommand(["sh", "-c", "echo waiting; until test -e /gate/go; do sleep 0.1; done; echo went"])
SMALL = {"cpu": 1, "memory": "64Mi"}


def containers(job_set: Any) -> dict[str, Any]:
    """The containers of a JobSet by the names of their Jobs."""
    jobs = job_set["spec"]["replicatedJobs"]
    return {job["name"]: job["template"]["spec"]["template"]["spec"]["containers"][0] for job in jobs}


def variables(container: Any) -> dict[str, str]:
    return {each["name"]: each["value"] for each in container["env"] if "value" in each}


def train(rate: str) -> None:
    """Runs on each node."""
    import os  # noqa: PLC0415 - the SDK sends this function alone
    import time  # noqa: PLC0415 - likewise

    while not os.path.exists("/gate/go"):  # noqa: PTH110 - likewise
        time.sleep(0.1)
    print("node", os.environ["PET_NODE_RANK"], "of", os.environ["PET_NNODES"], "at", rate, "for", os.environ["WHOM"])


def train_with_mpi() -> None:
    """Runs in each process."""
    import os  # noqa: PLC0415 - the SDK sends this function alone
    import sys  # noqa: PLC0415 - likewise
    import time  # noqa: PLC0415 - likewise

    rank = os.environ["OMPI_COMM_WORLD_RANK"]
    while rank == "0" and not os.path.exists("/gate/go"):  # noqa: PTH110 - likewise
        time.sleep(0.1)
    # In one write: the launcher shares its output with the other process.
    sys.stdout.write(f"rank {rank} on {os.uname().nodename} with {sys.prefix}\n")


def train_with_xgboost() -> None:
    """Runs on each node, of which the first one has the tracker."""
    import hashlib  # noqa: PLC0415 - the SDK sends this function alone
    import os  # noqa: PLC0415 - likewise
    import socket  # noqa: PLC0415 - likewise
    import time  # noqa: PLC0415 - likewise

    import numpy  # noqa: ICN001, PLC0415 - likewise
    import xgboost  # noqa: PLC0415 - likewise
    from xgboost.tracker import RabitTracker  # noqa: PLC0415 - likewise

    while not os.path.exists("/gate/go"):  # noqa: PTH110 - likewise
        time.sleep(0.1)
    node, nodes = os.environ["DMLC_TASK_ID"], int(os.environ["DMLC_NUM_WORKER"])
    port = int(os.environ["DMLC_TRACKER_PORT"])
    host = socket.gethostbyname(os.environ["DMLC_TRACKER_URI"])  # all nodes run once the gate is open
    tracker = RabitTracker(n_workers=nodes, host_ip=host, port=port, sortby="task") if node == "0" else None
    if tracker:
        tracker.start()
    with xgboost.collective.CommunicatorContext(
        dmlc_tracker_uri=host, dmlc_tracker_port=port, dmlc_task_id=node, dmlc_retry=16
    ):
        numbers = numpy.arange(xgboost.collective.get_rank(), 64, nodes, dtype=float)
        matrix = xgboost.DMatrix(numbers.reshape(-1, 1), label=numbers)
        booster = xgboost.train({"nthread": 1, "max_depth": 2}, matrix, 3)
        print("worker", node, "of", nodes, "has", hashlib.sha256(booster.save_raw("json")).hexdigest())
    if tracker:
        tracker.wait_for()


def measure(rate: str) -> None:
    """A trial of Katib."""
    print(f"loss={float(rate) / 2}")


def runtimes(session: Session) -> Any:
    """Runtimes, and what is installed in one."""
    client, output = session.client, io.StringIO()
    with redirect_stdout(output):
        client.get_runtime_packages(client.get_runtime("torch-distributed"))
    found = {each.name: each.trainer.framework for each in client.list_runtimes()}
    return {"found": found, "packages": output.getvalue(), "left": len(client.list_jobs())}


def function(session: Session) -> Any:
    """A function on two nodes of the default runtime, with packages and variables."""
    client = session.client
    trainer = CustomTrainer(
        func=train,
        func_args={"rate": "3"},
        num_nodes=2,
        resources_per_node=SMALL,
        packages_to_install=["packaging"],
        env={"WHOM": "you"},
    )
    options = [Name("function"), Labels({"a": "b"}), Annotations({"c": "d"}), ActiveDeadlineSeconds(600)]
    name = client.train(trainer=trainer, options=[*options, session.gated()])
    life, stored, built = session.life(name), session.stored(name), session.job_set(name)
    job = client.get_job(name)
    events = [(event.involved_object_kind, event.reason) for event in client.get_job_events(name)]
    other = client.get_runtime("jax-distributed")
    return {
        "name": name,
        "life": life,
        "nodes": job.num_nodes,
        "steps": session.steps(name),
        "log": session.log(name),
        "events": events,
        "by runtime": [[each.name for each in client.list_jobs(runtime)] for runtime in (job.runtime, other, None)],
        "metadata": [stored["metadata"]["labels"], stored["metadata"]["annotations"]],
        "runtimeRef": stored["spec"]["runtimeRef"],
        "limits": stored["spec"]["trainer"]["resourcesPerNode"]["limits"],
        "same command": stored["spec"]["trainer"]["command"] == containers(built)["node"]["command"],
    }


def container(session: Session) -> Any:
    """A container whose log is followed; afterwards it is deleted with all that belonged to it."""
    client, followed, reported = session.client, [], []
    trainer = CustomTrainerContainer(image="any", num_nodes=1)
    name = client.train(runtime="torch-distributed", trainer=trainer, options=[WAITS, session.gated()])
    session.reaches(name, "Running")
    before = until(lambda: session.log(name))
    for line in client.get_job_logs(name, follow=True):
        followed.append(line)
        session.go()
    session.reaches(name, "Complete", callbacks=[lambda job: reported.append(job.status)])
    client.delete_job(name)
    until(lambda: not session.core.list_namespaced_pod(session.namespace).items)
    return {"before": before, "followed": followed, "last": reported[-1], "left": len(client.list_jobs())}


def failure(session: Session) -> Any:
    """A training that exceeds its deadline."""
    options = [TrainerCommand(["sleep"]), TrainerArgs(["600"]), ActiveDeadlineSeconds(2)]
    trainer = CustomTrainerContainer(image="any")
    name = session.client.train(runtime="torch-distributed", trainer=trainer, options=[Name("late"), *options])
    try:
        session.reaches(name, "Complete")
    except RuntimeError as error:
        return [str(error), session.reaches(name, "Failed").status]


def resumed(session: Session) -> Any:
    """A TrainJob in the hands of Kueue: suspended when it is made, started, stopped, started again."""
    name, arguments = "resumed", (*TRAINER, session.namespace, "trainjobs")
    trainer = CustomTrainerContainer(image="any", num_nodes=2)
    options: dict[str, Any] = {}
    for option in (WAITS, session.gated()):
        option(options, trainer, session.client.backend)
    empty = {"manager": "kueue.x-k8s.io/manager", "trainingRuntimeSpec": {"template": {"spec": {}}}}
    spec = {"runtimeRef": {"name": "torch-distributed"}, "suspend": True, **options["spec"]}
    spec |= {"trainer": spec["trainer"] | {"numNodes": 2}, "runtimePatches": [*spec["runtimePatches"], empty]}
    job = {"apiVersion": "/".join(TRAINER), "kind": "TrainJob", "metadata": {"name": name}, "spec": spec}
    session.api.create_namespaced_custom_object(*arguments, job)

    def suspend(whether: bool) -> None:
        session.api.patch_namespaced_custom_object(*arguments, name, {"spec": {"suspend": whether}})

    def conditions() -> list[list[str]]:
        return [[each["type"], each["status"]] for each in session.stored(name)["status"].get("conditions", [])]

    seen = []
    for _ in range(2):
        until(lambda: conditions() == [["Suspended", "True"]])
        seen.append(session.client.get_job(name).status)
        suspend(False)
        seen.append(session.reaches(name, "Running").status)
        suspend(len(seen) == 2)
    session.go()
    seen.append(session.reaches(name, "Complete", "Failed").status)
    return {"seen": seen, "conditions": conditions()}


def mpi(session: Session) -> Any:
    """A function on a launcher and a node."""
    trainer = CustomTrainer(func=train_with_mpi, num_nodes=2, resources_per_node=SMALL)
    options = [Name("mpi"), session.gated("launcher")]
    name = session.client.train(runtime="deepspeed-distributed", trainer=trainer, options=options)
    return {"life": session.life(name), "nodes": session.client.get_job(name).num_nodes, "log": session.log(name)}


def xgboost(session: Session) -> Any:
    """A function on two nodes."""
    trainer = CustomTrainer(func=train_with_xgboost, num_nodes=2)
    name = session.client.train(
        runtime="xgboost-distributed", trainer=trainer, options=[Name("xgboost"), session.gated()]
    )
    return {"life": session.life(name), "logs": [session.log(name, step=f"node-{node}") for node in (0, 1)]}


def builtin(session: Session) -> Any:
    """torchtune on data and a model that initializers fetch."""
    client = session.client
    config = TorchTuneConfig(
        dtype=DataType.FP32,
        batch_size=2,
        epochs=1,
        loss=Loss.CEWithChunkedOutputLoss,
        num_nodes=1,
        peft_config=LoraConfig(lora_rank=4, lora_alpha=8),
        dataset_preprocess_config=TorchTuneInstructDataset(source=DataFormat.PARQUET, split="train"),
        resources_per_node={"gpu": 1},
    )
    initializer = Initializer(
        dataset=HuggingFaceDatasetInitializer("hf://tatsu-lab/alpaca/data", access_token="t"),
        model=HuggingFaceModelInitializer("hf://meta-llama/Llama-3.2-1B-Instruct"),
    )
    runtime = client.get_runtime("torchtune-llama3.2-1b")
    name = client.train(runtime=runtime, initializer=initializer, trainer=BuiltinTrainer(config))
    status = session.reaches(name, "Complete", "Failed").status
    steps = session.steps(name)
    return {"status": status, "steps": steps, "logs": {step: session.log(name, step=step) for step in steps}}


def initializers(session: Session) -> Any:
    """Initializers of other sources, which the dev cluster cannot reach: the JobSet shows them."""
    client = session.client
    stored = Initializer(
        dataset=S3DatasetInitializer("s3://data/set", endpoint="http://s3", ignore_patterns=["*.txt", "*.md"]),
        model=S3ModelInitializer("s3://a/model", region="eu"),
    )
    cached = Initializer(
        dataset=DataCacheInitializer("cache://schema/table", "s3://metadata.json", 3, worker_mem="1Gi")
    )
    tuned = client.train(
        runtime="torchtune-qwen2.5-1.5b", initializer=stored, trainer=BuiltinTrainer(TorchTuneConfig(epochs=1))
    )
    trainer = CustomTrainerContainer(image="any")
    read = client.train(runtime="torch-distributed-with-cache", initializer=cached, trainer=trainer, options=[WAITS])
    built = [containers(session.job_set(name)) for name in (tuned, read)]
    for name in (tuned, read):
        client.delete_job(name)
    return [{job: variables(each) for job, each in jobs.items() if job.endswith("-initializer")} for jobs in built]


def patches(session: Session) -> Any:
    """All that a patch can say, in the JobSet; and what is refused."""
    client, both = session.client, {"labels": {"team": "a"}, "annotations": {"note": "b"}}
    pod = PodSpecPatch(
        service_account_name="default",
        volumes=[{"name": "scratch", "emptyDir": {}}],
        containers=[
            ContainerPatch(
                name="node",
                volume_mounts=[{"name": "scratch", "mountPath": "/scratch"}],
                security_context={"runAsUser": 7},
            )
        ],
        image_pull_secrets=[{"name": "registry"}],
        security_context={"fsGroup": 7},
        node_selector={"disk": "fast"},
        affinity={"podAntiAffinity": {}},
        tolerations=[{"key": "gpu", "operator": "Exists"}],
        scheduling_gates=[{"name": "example.com/gate"}],
    )
    trainer = CustomTrainerContainer(image="any", resources_per_node={"cpu": 0.5})
    whole = CustomTrainerContainer(image="any")
    arguments = {"runtime": "torch-distributed", "trainer": whole}
    name = client.train(**arguments, options=[WAITS, patched("node", pod, both)])
    built, status = session.job_set(name), client.get_job(name).status
    (job,) = built["spec"]["replicatedJobs"]
    unknown = patched("worker", PodSpecPatch(node_selector={"disk": "fast"}))
    variable = patched(
        "node", PodSpecPatch(containers=[ContainerPatch(name="node", env=[{"name": "A", "value": "b"}])])
    )
    return {
        "status": status,
        "metadata": [built["metadata"], job["template"]["metadata"], job["template"]["spec"]["template"]["metadata"]],
        "pod": job["template"]["spec"]["template"]["spec"],
        "half a CPU": session.refusal(runtime="torch-distributed", trainer=trainer, options=[WAITS]),
        "unknown Job": session.refusal(**arguments, options=[WAITS, unknown]),
        "variable": session.refusal(**arguments, options=[WAITS, variable]),
    }


def optimizer(session: Session) -> Any:
    """An Experiment of Katib: its trial becomes a TrainJob as Katib makes it, and the SDK finds it."""
    client, katib = OptimizerClient(session.config), (*KATIB, session.namespace)
    template = TrainJobTemplate(
        trainer=CustomTrainer(func=measure, resources_per_node=SMALL), runtime="torch-distributed"
    )
    name = client.optimize(template, search_space={"rate": Search.choice([0.5])})
    experiment = session.api.get_namespaced_custom_object(*katib, "experiments", name)
    text = json.dumps(experiment["spec"]["trialTemplate"]["trialSpec"])
    trial = f"{name}-first"
    metadata = {"name": trial, "labels": {"katib.kubeflow.org/experiment": name}}
    assignments = {"parameterAssignments": [{"name": "rate", "value": "0.5"}]}
    body = {"apiVersion": "/".join(KATIB), "kind": "Trial", "metadata": metadata, "spec": assignments}
    owner = session.api.create_namespaced_custom_object(*katib, "trials", body)
    reference = {"apiVersion": "/".join(KATIB), "kind": "Trial", "name": trial, "uid": owner["metadata"]["uid"]}
    job = json.loads(re.sub(r"\$\{trialParameters\.rate\}", "0.5", text))
    job["metadata"] = metadata | {"ownerReferences": [reference | {"controller": True, "blockOwnerDeletion": True}]}
    session.api.create_namespaced_custom_object(*TRAINER, session.namespace, "trainjobs", job)
    status = session.reaches(trial, "Complete", "Failed").status
    (found,) = client.get_job(name).trials
    return {"status": status, "seen": found.trainjob.status, "rate": found.parameters, "log": session.log(trial)}


SCENARIOS: dict[str, Callable[[Session], Any]] = {
    each.__name__: each
    for each in (
        *(runtimes, function, container, failure, resumed),
        *(mpi, xgboost, builtin, initializers, patches, optimizer),
    )
}


def answer(directory: Path, name: str) -> Any:
    """What comes of a scenario."""
    try:
        return {"answer": SCENARIOS[name](Session(name, directory / name))}
    except BaseException:
        return {"error": traceback.format_exc()}


def main() -> None:
    directory, *names = sys.argv[1:]
    with ThreadPoolExecutor(4) as threads:
        answers = dict(zip(names, threads.map(lambda name: answer(Path(directory), name), names), strict=True))
    print(json.dumps(answers))


if __name__ == "__main__":
    main()
