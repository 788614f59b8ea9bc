"""The plugins: one module or package for each machine learning framework, workload and scheduler."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trainer.plugins.jax import Jax
from trainer.plugins.jobset import JobSetPlugin
from trainer.plugins.plainml import PlainML
from trainer.plugins.torch.plugin import Torch

if TYPE_CHECKING:
    from collections.abc import Mapping

    from trainer.framework.discovery import PluginFactory

BUILT_IN: Mapping[str, PluginFactory] = {
    "jax": lambda _: Jax(),
    "jobset": lambda context: JobSetPlugin(context.reader),
    "plainml": lambda _: PlainML(),
    "torch": lambda _: Torch(),
}
"""How the plugins of this package are made, by name."""
