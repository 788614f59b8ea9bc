"""`python -m trainer_devcluster`: runs the dev cluster in the foreground."""

from __future__ import annotations

import sys

from trainer_devcluster.cluster import main

if __name__ == "__main__":
    sys.exit(main())
