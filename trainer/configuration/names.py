"""Names in configuration files."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from trainer.api import patterns
from trainer.api.model import text

Name = Annotated[str, Field(min_length=1)]
"""A name of whatever sort that cannot be left empty."""

ObjectName = Annotated[str, Field(min_length=1, json_schema_extra=text(pattern=patterns.OBJECT_NAME, longest=253))]
"""The name of an object in the cluster: a wrong one would only show in refusals of the API server, for ever."""

Namespace = Annotated[str, Field(json_schema_extra=text(pattern=patterns.OBJECT_NAME, longest=63))]
"""The name of a namespace; "" says that none is named."""
