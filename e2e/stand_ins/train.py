"""Stands in for training scripts: says which process of how many it is, once it has reached node 0."""

import os
import socket
import sys
from pathlib import Path

rank, world = os.environ["RANK"], os.environ["WORLD_SIZE"]
workspace = Path("/workspace")
if workspace.is_mount():
    (workspace / f"rank-{rank}").write_text("trained")
line = " ".join(["rank", rank, "of", world, "on node", os.environ["GROUP_RANK"], *sys.argv[1:]])
# The torchrun of node 0 listens where it tells all processes to meet, unless that is left to their first.
if os.environ["TORCHELASTIC_USE_AGENT_STORE"] == "True":
    socket.create_connection((os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])), timeout=30).close()
sys.stdout.write(f"{line}\n")
