"""Which checkpoint an export takes, where its directory is that of the checkpoints of the training."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from trainer.progress.report import DIRECTORY_VARIABLE
from trainer_initializers.errors import TransferError
from trainer_initializers.options import TransferOptions
from trainer_initializers.shared_directory import SharedDirectory

_NAME = re.compile(r"(step|checkpoint)-([0-9]{1,18})")
_LAST_FILE = {"checkpoint": "trainer_state.json"}
"""What transformers writes last into a checkpoint; ours have their name only once they are complete."""


def with_last_checkpoint(options: TransferOptions) -> TransferOptions:
    """The options with the last complete checkpoint as directory; the same where another directory is exported.

    Raises:
        TransferError: there is no complete checkpoint, or a part of the path is a link.
    """
    stated = options.variable(DIRECTORY_VARIABLE)
    if stated is None or Path(os.path.normpath(stated)) != options.directory:
        return options
    last = max(_complete(options.directory), default=None)
    if last is None:
        raise TransferError(
            f"{options.directory} has no complete checkpoint, such as step-1200: check the volume, or export another "
            "directory with TRANSFER_PATH"
        )
    return replace(options, directory=options.directory / last[1])


def _complete(path: Path) -> Iterator[tuple[int, str]]:
    """Steps and names of the complete checkpoints."""
    try:
        directory = SharedDirectory.open(path)
    except FileNotFoundError:
        return
    for name in directory.names():
        match = _NAME.fullmatch(name)
        if match is None or not _is_directory(directory, name):
            continue
        last_file = _LAST_FILE.get(match[1])
        if last_file is None or directory.size(f"{name}/{last_file}") is not None:
            yield int(match[2]), name


def _is_directory(directory: SharedDirectory, name: str) -> bool:
    try:
        return stat.S_ISDIR(directory.status(name).st_mode)
    except (FileNotFoundError, TransferError):  # a link, or it is gone
        return False
