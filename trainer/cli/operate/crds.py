"""`trainer crds`: the CustomResourceDefinitions of TrainJob and the runtimes."""

from __future__ import annotations

from trainer.api.crds import crds_yaml
from trainer.cli.console import output


def crds() -> None:
    """Print the CustomResourceDefinitions, for `kubectl apply --server-side -f -`."""
    output().file.write(crds_yaml())
