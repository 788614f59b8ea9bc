"""The GPU memory and speed of the runtimes of torchtune, on one NVIDIA GPU of this machine.

    python -m benchmarks.fine_tuning [--only llama3_2/1B_lora_single_device] [--seconds 500]

Each variant for one GPU is a TrainJob of its own on a dev cluster that advertises the GPU, with the shipped runtime and
the settings that docs/reference/torchtune.md names for it; the plugin torch has to choose its recipe and configuration.
Weights are random, of full size, and come through the shipped initializers. Every sequence of a batch has the same
length. Peaks are those that torchtune logs: what PyTorch had reserved on the GPU, without the 0.5 GiB or so of the
CUDA context.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from hack.reference.torchtune import settings
from hack.torchtune_models import MODELS, Model
from trainer.plugins.torch.torchtune_recipes import DeviceScope, Method, Variant

WEIGHTS: Final = Path(__file__).with_name("fine_tuning_weights.py")
TRAINER: Final = Path(sys.executable).with_name("trainer")
_NAMESPACE: Final = "default"


@dataclass(frozen=True, slots=True)
class Peak:
    """What one variant took."""

    configuration: str
    recipe: str
    state: float
    """GiB of weights, gradients and optimizer, computed."""
    reserved: float
    """GiB that PyTorch had reserved at most."""
    tokens: float
    """Tokens per second, the median of the steps."""
    batch: int
    """Sequences in a batch."""


class DevCluster:
    """A dev cluster of its own that advertises one GPU."""

    def __init__(self, state: Path) -> None:
        self._state = state / "trainer"
        self._environ = os.environ | {
            "XDG_STATE_HOME": str(state),
            "KUBECONFIG": str(self._state / "kubeconfig"),
        }

    def trainer(self, *words: str, check: bool = True) -> str:
        """Standard output of a command; its standard error is shown."""
        return subprocess.run(
            [TRAINER, *words], env=self._environ, stdout=subprocess.PIPE, text=True, check=check
        ).stdout

    def train(self, name: str, manifest: Path) -> None:
        """Train, and raise ChildProcessError with what the cluster says when that does not complete in ten minutes."""
        output = self.trainer("run", "--file", str(manifest), "--timeout", "600", check=False)
        if not re.search(rf"^{name}  Complete", output, re.MULTILINE):
            raise ChildProcessError(output + self.trainer("explain", name, check=False))

    def log(self, name: str) -> str:
        """What torchtune's logger wrote, in the volume of the output."""
        (path,) = (self._state / "data" / "claims" / _NAMESPACE / f"output-{name}").rglob("logs/log_*.txt")
        return path.read_text()

    def forget(self, name: str) -> None:
        """Delete the TrainJob, and the files in its claims: the one of the output outlives it."""
        self.trainer("delete", name, check=False)
        for claim in (self._state / "data" / "claims").glob(f"*/*-{name}"):
            shutil.rmtree(claim, ignore_errors=True)


@dataclass(frozen=True, slots=True)
class Bench:
    """Where and how long a variant is trained."""

    cluster: DevCluster
    place: Path
    length: int
    """Tokens of each sequence."""
    steps: int

    def measure(self, model: Model, variant: Variant) -> Peak:
        """Train for some steps, and read what torchtune has logged."""
        configuration = variant.config_of(model.name)
        weights = self.place / "weights" / model.runtime
        if not weights.exists():
            shutil.rmtree(weights.parent, ignore_errors=True)
            make("model", configuration, str(weights))
        # A name of its own: JobSet refuses a claim that was kept from an earlier one.
        name = re.sub(r"[^a-z0-9]+", "-", configuration.lower())
        manifest = self.place / "trainjob.json"
        manifest.write_text(json.dumps(self.train_job(name, model, variant, weights)))
        try:
            self.cluster.train(name, manifest)
            log = self.cluster.log(name)
            found = self.cluster.trainer("logs", name)
        finally:
            self.cluster.forget(name)
        tokens = sorted(float(each) for each in re.findall(r"tokens_per_second_per_gpu:([\d.]+)", log))
        recipe = re.search(r"Running (\w+) with resolved config", found)
        batch = re.search(r"^.*\bbatch_size: (\d+)$", found, re.MULTILINE)
        assert recipe is not None, found
        assert batch is not None, found
        return Peak(
            configuration=configuration,
            recipe=recipe[1],
            state=model.state(variant, 1),
            reserved=max(float(each) for each in re.findall(r"peak_memory_reserved:([\d.]+)", log)),
            tokens=tokens[len(tokens) // 2],
            batch=int(batch[1]),
        )

    def train_job(self, name: str, model: Model, variant: Variant, weights: Path) -> dict[str, Any]:
        """The TrainJob of a user of the runtime, with local files, few steps, and adapters alone as its output."""
        trainer = settings(model, variant, 1)
        args = [
            *trainer.pop("args", []),
            f"max_steps_per_epoch={self.steps}",
            "gradient_accumulation_steps=1",
            f"tokenizer.max_seq_len={self.length}",
            *(["save_adapter_weights_only=True"] if variant.method is not Method.FULL else []),
        ]
        environment = {"HF_HUB_OFFLINE": "1", "HF_HOME": "/workspace/dataset/.cache"}
        return {
            "apiVersion": "trainer.kubeflow.org/v2alpha1",
            "kind": "TrainJob",
            "metadata": {"name": name, "namespace": _NAMESPACE},
            "spec": {
                "runtimeRef": {"name": model.runtime},
                "datasetConfig": {"storageUri": f"file://{self.place}/dataset"},
                "modelConfig": {"input": {"storageUri": f"file://{weights}"}},
                "trainer": {
                    **trainer,
                    "args": args,
                    "env": [{"name": name, "value": value} for name, value in environment.items()],
                },
            },
        }


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure the variants, smallest model first, and print a row for each."""
    parser = argparse.ArgumentParser(prog="benchmarks.fine_tuning", description="Fine-tune on one GPU.")
    parser.add_argument("--only", action="append", metavar="CONFIGURATION", help="may be given several times")
    parser.add_argument("--length", type=int, default=512, help="tokens of each sequence (default: 512)")
    parser.add_argument("--steps", type=int, default=12, help="steps of each training (default: 12)")
    parser.add_argument("--seconds", type=float, default=3600, help="begin no further variant after (default: 3600)")
    parser.add_argument("--output", type=Path, default=Path("fine_tuning.json"), help="default: fine_tuning.json")
    given = parser.parse_args(arguments)
    until = time.monotonic() + given.seconds
    peaks: list[Peak] = []
    failed = 0
    with tempfile.TemporaryDirectory() as directory:
        place = Path(directory)
        cluster = DevCluster(place / "state")
        bench = Bench(cluster, place, given.length, given.steps)
        make("data", str(place / "dataset"), str(given.length))
        try:
            cluster.trainer("up", "--node-resources", "nvidia.com/gpu=1,memory=100Gi,cpu=16")
            for model, variant in variants(given.only):
                if time.monotonic() > until:
                    break
                try:
                    peaks.append(bench.measure(model, variant))
                except (AssertionError, ChildProcessError, ValueError) as error:
                    sys.stderr.write(f"{variant.config_of(model.name)} failed: {error}\n")
                    failed += 1
                    continue
                sys.stdout.write(row(peaks[-1]) + "\n")
                sys.stdout.flush()
                given.output.write_text(json.dumps([asdict(each) for each in peaks], indent=2))
        finally:
            cluster.trainer("down", "--delete", check=False)
    if failed:
        raise SystemExit(f"error: {failed} variants could not be measured")


def variants(only: Sequence[str] | None) -> Iterator[tuple[Model, Variant]]:
    """All variants for one device, those of the smallest model first."""
    for model in sorted(MODELS, key=lambda each: each.parameters):
        for variant in model.on_one_node:
            if variant.devices is DeviceScope.ONE and (not only or variant.config_of(model.name) in only):
                yield model, variant


def make(*words: str) -> None:
    """Make weights or data in a process of its own, which gives the memory of the GPU back when it ends."""
    subprocess.run([sys.executable, WEIGHTS, *words], check=True)


def row(peak: Peak) -> str:
    """A line of the table."""
    return (
        f"{peak.configuration:36} {peak.recipe:38} batch {peak.batch}  state {peak.state:5.1f} GiB  "
        f"reserved {peak.reserved:5.1f} GiB  {peak.tokens:8.0f} tokens/s"
    )


if __name__ == "__main__":
    main()
