"""Errors of the history."""

from __future__ import annotations

from trainer.cli.errors import CommandError


class HistoryError(CommandError):
    """The database cannot be used, or has not what is asked for; the message says why, without a password."""


class RefusedError(HistoryError):
    """The database refuses what is written, and would again."""


class RecordingEndedError(HistoryError):
    """Nothing more can be recorded by this process, which ends."""


class TakenOverError(RecordingEndedError):
    """Another process has taken over the recording of the cluster."""


class LostFileError(RecordingEndedError):
    """The file of the database is damaged, or no longer the one that was opened."""
