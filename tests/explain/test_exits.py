"""What to do about containers that have ended badly."""

from __future__ import annotations

import pytest

from trainer.explain.exits import exit_remedy

ENDED = "pod demo-node-0-0-abcde: container trainer exited with code 1"


@pytest.mark.parametrize(
    ("line", "remedy"),
    [
        pytest.param("KeyError: 3", "its log says why", id="unknown"),
        pytest.param(
            "ModuleNotFoundError: No module named 'trainer_reporter'", "ask for the reporter", id="module-of-reporter"
        ),
        pytest.param("ModuleNotFoundError: No module named 'peft'", "take an image that has the module", id="module"),
        pytest.param("[rank0]: ModuleNotFoundError: No module named 'a.b'", "take an image", id="of a rank"),
        pytest.param("[1,0]<stderr>:ModuleNotFoundError: No module named 'a'", "take an image", id="of mpirun"),
        pytest.param("[default0]:[rank0]: SyntaxError: x", "correct the script", id="of torchrun and PyTorch"),
        pytest.param(
            "FileNotFoundError: [Errno 2] No such file or directory: 'data.csv'", "travels with --folder", id="file"
        ),
        pytest.param(
            "python3: can't open file '/workspace/train.py': [Errno 2] No such file or directory",
            "correct the path of the script",
            id="script",
        ),
        pytest.param("SyntaxError: invalid syntax", "correct the script", id="syntax"),
        pytest.param(
            "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.", "smaller batch", id="GPU memory"
        ),
        pytest.param(
            "RuntimeError: Found no NVIDIA driver on your system.", "ask for GPUs in spec.trainer", id="no GPU"
        ),
        pytest.param(
            "RuntimeError: DataLoader worker (pid 42) is killed by signal: Bus error. It is possible that dataloader's "
            "workers are out of shared memory.",
            "/dev/shm is too small",
            id="shared memory",
        ),
        pytest.param("OSError: [Errno 28] No space left on device", "is full", id="disk"),
        pytest.param("PermissionError: [Errno 13] Permission denied: '/data/a'", "fsGroup", id="permission"),
        pytest.param(
            "trainer: cannot install requirements.txt with pip (exit code 1): ERROR: No matching distribution",
            "correct the requirements",
            id="requirements",
        ),
        pytest.param("trainer: the image has no torchrun: take an image with it", "do what the message", id="start"),
    ],
)
def test_last_words(line: str, remedy: str) -> None:
    """The last known line of the log tells more than the exit code, with other lines above and below it."""
    log = ("Traceback (most recent call last):", line, "terminated")
    assert remedy in exit_remedy(ENDED, log)
    assert remedy in exit_remedy(f"{ENDED}: {line}")


@pytest.mark.parametrize(
    ("text", "remedy"),
    [
        pytest.param(
            "container dataset-initializer exited with code 2: dataset: s3://a/b: the bucket is in another region: set "
            "REGION to its region",
            "do what the message says",
            id="initializer",
        ),
        pytest.param("container trainer exited with code 139", "crashed in native code", id="code"),
        pytest.param(
            "container trainer exited with code 137 (OOMKilled)",
            "raise spec.trainer.resourcesPerNode.limits[memory]",
            id="memory",
        ),
        pytest.param(
            "container trainer exited with code 127",
            "correct spec.trainer.command, or take an image that has it",
            id="no command",
        ),
        pytest.param(
            "container model-initializer exited with code 128 (StartError: exec)",
            "correct the command of container model-initializer in the runtime, or take an image that has it",
            id="no start",
        ),
    ],
)
def test_ends(text: str, remedy: str) -> None:
    """What the end says itself counts before the log."""
    assert remedy in exit_remedy(f"pod demo: {text}", ("ModuleNotFoundError: No module named 'a'",))
