"""A reader on a fixed set of objects."""

from __future__ import annotations

from trainer.framework.plugin_api.testing import StaticReader

__all__ = ["StaticReader"]
