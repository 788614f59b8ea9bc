"""Names of objects in configuration files."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

Name = Annotated[str, Field(min_length=1)]
"""A name that cannot be left empty."""
