"""Keyring process: a process that makes keys and certificates, and ends."""

from __future__ import annotations

import os
import subprocess
import sys

import msgspec

from trainer.keyring import KeyringAnswer, KeyringQuestion
from trainer.kube.errors import KubeError

TIMEOUT = 20.0
"""Seconds that the process may take; half a second is usual."""


def ask(question: KeyringQuestion) -> KeyringAnswer:
    """Have a process find out what is due, and make it; blocks, so call it in a thread.

    Raises:
        KubeError: there is no answer.
    """
    # It finds the modules that this process has, and none in the working directory.
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    command = [sys.executable, "-P", "-m", "trainer.keyring"]
    try:
        ended = subprocess.run(
            command,
            input=msgspec.json.encode(question),
            capture_output=True,
            timeout=TIMEOUT,
            env=environment,
            check=True,
        )
        return msgspec.json.decode(ended.stdout, type=KeyringAnswer)
    except subprocess.CalledProcessError as error:
        lines = error.stderr.decode(errors="replace").splitlines() or [f"exit status {error.returncode}"]
        raise KubeError(f"the process that makes certificates failed: {lines[-1]}") from error
    except subprocess.TimeoutExpired as error:
        raise KubeError(f"the process that makes certificates took longer than {TIMEOUT:g} s") from error
    except (OSError, msgspec.DecodeError) as error:
        raise KubeError(f"cannot start the process that makes certificates: {error}") from error
