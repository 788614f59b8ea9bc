"""Stands in for the image model-exporter: says what it would send, and where."""

import json
import os
import sys
from pathlib import Path

(epoch,) = Path("/workspace/adapters").glob("epoch_*")
adapters = json.loads((epoch / "adapter_config.json").read_text())
files = sorted(path.name for path in epoch.iterdir() if path.suffix == ".safetensors")
sys.stdout.write(json.dumps({"to": os.environ["STORAGE_URI"], "rank": adapters["r"], "files": files}) + "\n")
