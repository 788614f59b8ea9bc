"""The programs of the image: `python -m trainer_initializers dataset|model|export`."""

from __future__ import annotations

import argparse
import contextlib
import os
import signal
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from trainer_initializers.checkpoints import with_last_checkpoint
from trainer_initializers.errors import TransferError, exit_code_of, one_line, printable
from trainer_initializers.fetch import fetch
from trainer_initializers.file_store import Exporter, open_store
from trainer_initializers.local import files_to_export
from trainer_initializers.options import DIRECTORIES, TransferOptions, read_options
from trainer_initializers.staging import Staging
from trainer_initializers.transfer_progress import TransferProgress
from trainer_initializers.variables import unused_variables

_TERMINATION_LOG = "/dev/termination-log"
"""Where the kubelet reads the message of a container; TERMINATION_MESSAGE_PATH names another file."""

_LISTED = 20
"""Files that an export lists by name: adapters and models have fewer, checkpoints in pieces may have thousands."""


def main(
    arguments: Sequence[str] | None = None,
    environ: Mapping[str, str] = os.environ,
    sleep: Callable[[float], None] = time.sleep,
) -> int:
    """Run one of the programs; whatever fails ends in one line on stderr and in the termination message."""
    parser = argparse.ArgumentParser(
        prog="python -m trainer_initializers",
        description="Fetch a dataset or model before a training, or export a model after it.",
        epilog="STORAGE_URI names the source, or the target of an export; docs/initializers.md lists all variables.",
    )
    parser.add_argument("command", choices=sorted(DIRECTORIES), help="what is transferred")
    command: str = parser.parse_args(arguments).command
    try:
        options = read_options(command, environ)
        for warning in unused_variables(options):
            _say(f"warning: {warning}")
        (_export if command == "export" else _fetch)(options, sleep)
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:  # Rust panics with one of these
        message = f"{command}: {one_line(error, environ)}"
        sys.stderr.write(f"error: {message}\n")
        sys.stderr.flush()
        with contextlib.suppress(OSError):  # outside of a container there is no such file
            Path(environ.get("TERMINATION_MESSAGE_PATH") or _TERMINATION_LOG).write_text(message, encoding="utf-8")
        return exit_code_of(error)
    return 0


def _fetch(options: TransferOptions, sleep: Callable[[float], None]) -> None:
    index = fetch(open_store(options), Staging(options.directory), options, TransferProgress(), sleep=sleep)
    size = sum(file.size or 0 for file in index.files)
    _say(f"{options.shown} is in {options.directory}: {len(index.files)} files, {size} bytes")


def _export(options: TransferOptions, _sleep: Callable[[float], None]) -> None:
    storage = open_store(options)
    if not isinstance(storage, Exporter):
        raise TransferError(
            f"{options.shown} cannot be written: export to hf://, s3://, gs://, az://, pvc:// or file://"
        )
    options = with_last_checkpoint(options)
    files, refused = files_to_export(options)
    if not files and not refused:
        raise TransferError(f"{options.directory} has no files to export: check the volume, or set TRANSFER_PATH")
    progress = TransferProgress()
    progress.start(sum(file.size for file in files))
    written = storage.export(files, progress.add) if files else 0
    for file in files[:_LISTED]:
        _say(f"{options.shown.rstrip('/')}/{file.path}, {file.size} bytes")
    if len(files) > _LISTED:
        _say(f"and {len(files) - _LISTED} other files")
    _say(f"{options.directory} is in {options.shown}: {written} of {len(files)} files were written")
    if refused:
        others = f", and so are {len(refused) - 1} others" if len(refused) > 1 else ""
        raise TransferError(
            f"{refused[0].path!r} {refused[0].fault}, and is not exported{others}: have the training write a file, or "
            f"leave it out with IGNORE_PATTERNS; the other {len(files)} files are in {options.shown}"
        )


def _say(text: str) -> None:
    """Print a line, in which names of files can command neither a terminal nor those who read progress."""
    sys.stdout.write(f"{printable(text)}\n")
    sys.stdout.flush()


def _end(*_: object) -> None:
    """End at once: what is complete is in the log of parts, and the next run goes on from there."""
    os._exit(128 + signal.SIGTERM)


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, _end)  # the first process of a container ignores it otherwise
    sys.exit(main())
