"""Recipes of torchtune that are killed while they save an epoch, and go on from the one before at the next start."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from e2e.prerequisites import needs_module
from e2e.tiny_llama import LLAMA2, TINY
from trainer.progress.injection.install import install

pytestmark = [pytest.mark.timeout(400), needs_module("torchtune")]

KILLED = """
import signal
import torch

save = torch.save

def save_or_die(what, path, *given, **options):
    is_last = str(path).endswith("recipe_state.pt") and what["epochs_run"] == 2
    if is_last and os.environ.get("KILL") == "half-written":
        with open(path, "wb") as file:
            file.write(b"PK")
    elif not is_last or "KILL" in os.environ:
        save(what, path, *given, **options)
    else:
        return save(what, path, *given, **options)
    if is_last:
        os.kill(os.getpid(), signal.SIGKILL)

torch.save = save_or_die
"""
"""Ends a recipe when the weights of its second epoch are there, and its state is half-written, or not yet noted."""
LORA = [
    *("lora_finetune_single_device", "--config", "llama2/7B_lora_single_device"),
    # On CPUs, where it makes no copy, torchtune would merge the adapters into the model that it goes on training.
    *("model=torchtune.models.llama2.lora_llama2", "model.lora_rank=4", "save_adapter_weights_only=True"),
]
FULL = [
    *("--nproc_per_node", "2", "full_finetune_distributed", "--config", "llama2/7B_full"),
    *("model=torchtune.models.llama2.llama2", "optimizer.fused=False"),
]
LOSS = re.compile(r"\d+\|(\d+)\|Loss: ([0-9.]+)")


@pytest.fixture(scope="module")
def sources(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the model, its data and what kills the recipes are."""
    directory = tmp_path_factory.mktemp("sources")
    for script, name in (("dataset_initializer", "dataset"), ("make_model", "model")):
        environment = os.environ | {"TRANSFER_PATH": str(directory / name)}
        command = [sys.executable, str(LLAMA2 / f"{script}.py"), str(directory / name)]
        subprocess.run(command, env=environment, check=True, capture_output=True, timeout=100)
    (directory / "sitecustomize.py").write_text((LLAMA2 / "sitecustomize.py").read_text() + KILLED)
    install(directory / "reporter")
    return directory


def tuned(sources: Path, directory: Path, recipe: Sequence[str], **environment: str) -> tuple[int, dict[int, str], str]:
    """Run a recipe: its exit code, the losses by step, and all that it has written."""
    files = ",".join(f"model-0000{number}-of-00002.safetensors" for number in (1, 2))
    command = [
        *(f"{sys.exec_prefix}/bin/tune", "run", *recipe, *TINY, "epochs=3", "seed=1", "max_steps_per_epoch=null"),
        *("dataset=torchtune.datasets.alpaca_dataset", "dataset.source=parquet"),
        *(f"dataset.data_dir={sources}/dataset/data", f"tokenizer.path={sources}/model/tokenizer.model"),
        *(f"checkpointer.checkpoint_dir={sources}/model", f"checkpointer.checkpoint_files=[{files}]"),
        f"output_dir={directory}/output",
    ]
    variables = {
        **os.environ,
        "PYTHONPATH": f"{sources}:{sources}/reporter",
        "PYTHONWARNINGS": "ignore::trainer_reporter.Never",
        "HF_HUB_OFFLINE": "1",
        "HF_HOME": str(directory),
        "OMP_NUM_THREADS": "1",
        **environment,
    }
    result = subprocess.run(command, env=variables, capture_output=True, timeout=200, check=False)
    written = (result.stdout + result.stderr).decode()
    return result.returncode, {int(step): loss for step, loss in LOSS.findall(written)}, written


@pytest.mark.parametrize(
    ("recipe", "kill", "code", "steps"),
    [
        pytest.param(LORA, "complete", -9, 8, id="lora-on-one-device"),
        pytest.param(FULL, "half-written", 1, 4, id="all-weights-in-two-processes"),
    ],
)
def test_killed_while_it_saves(
    recipe: list[str], kill: str, code: int, steps: int, sources: Path, tmp_path: Path
) -> None:
    """The next start trains the incomplete epoch again, with the losses of an undisturbed training."""
    _, expected, _ = tuned(sources, tmp_path / "undisturbed", recipe)
    directory = {"TRAINER_CHECKPOINT_DIR": str(tmp_path / "claim")}
    first = tuned(sources, tmp_path, recipe, **directory, KILL=kill)
    assert (first[0], max(first[1])) == (code, 2 * steps), first[2]
    assert f'"checkpoint":{{"step":{steps},' in first[2]

    (tmp_path / "output").unlink()  # it goes with the pod; the link in its place led to the claim
    second = tuned(sources, tmp_path, recipe, **directory)

    assert second[0] == 0, second[2]
    assert f"trainer: goes on after step {steps}, with the files of epoch 0 in {tmp_path}/output\n" in second[2]
    assert second[1] == {step: loss for step, loss in expected.items() if step > steps}
    assert max(second[1]) == 3 * steps
    assert {path.name for path in (tmp_path / "output").glob("epoch_*")} == {"epoch_0", "epoch_1", "epoch_2"}
    assert [path.name for path in (tmp_path / "output" / "recipe_state").iterdir()] == ["recipe_state.pt"]
    assert "trainer: checkpoints" not in first[2] + second[2]


def test_what_is_not_gone_on_from(sources: Path, tmp_path: Path) -> None:
    """A command that says whether to resume and an output with files are left alone; what lacks files begins anew."""
    directory = {"TRAINER_CHECKPOINT_DIR": str(tmp_path / "claim")}
    code, losses, written = tuned(sources, tmp_path, [*LORA, "resume_from_checkpoint=False"], **directory)
    assert (code, len(losses)) == (0, 24), written
    assert not (tmp_path / "claim").exists()
    assert not (tmp_path / "output").is_symlink()

    code, losses, written = tuned(sources, tmp_path, LORA, **directory)
    assert (code, len(losses)) == (0, 24), written
    assert f"trainer: no checkpoints: {tmp_path}/output goes with the pod, and cannot become a link into " in written

    tuned(sources, tmp_path / "pod", LORA, **directory)
    (tmp_path / "pod" / "output" / "epoch_1" / "adapter_model.pt").unlink()
    code, losses, written = tuned(sources, tmp_path / "pod", LORA, **directory)
    assert (code, len(losses)) == (0, 24), written
    assert "trainer: begins anew: files of the last checkpoint are missing or changed" in written
