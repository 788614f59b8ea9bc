"""The images that manifests and chart name."""

from __future__ import annotations

MANAGER, INITIALIZER, TRANSFORMERS = "trainer-operator", "trainer-initializer", "transformers-runtime"
NAMES = (MANAGER, INITIALIZER, TRANSFORMERS)
