"""Configurations of managers in tests."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from trainer.configuration.configuration import Configuration

HEAD = "apiVersion: config.trainer.kubeflow.org/v1alpha1\nkind: Configuration\n"
"""How every file begins."""


def bare(**sections: Any) -> Configuration:
    """For a manager that listens nowhere; sections are objects, as in files."""
    return Configuration.from_object(sections, strict=True).without_servers()


def write(file: Path, text: str) -> Path:
    """Write a file with these settings."""
    file.write_text(f"{HEAD}{text}\n", encoding="utf-8")
    return file
