"""`trainer crds`: the CustomResourceDefinitions of TrainJob and the runtimes."""

from __future__ import annotations

import sys

from trainer.api.crds import crds_yaml


def crds() -> None:
    """Print the CustomResourceDefinitions, for `kubectl apply --server-side -f -`."""
    sys.stdout.write(crds_yaml())
