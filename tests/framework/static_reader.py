"""A reader on a fixed set of objects."""

from __future__ import annotations

from trainer.framework.testing import StaticReader

__all__ = ["StaticReader"]
