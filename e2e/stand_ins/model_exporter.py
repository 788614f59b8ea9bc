"""Stands in for the image model-exporter: says what it would send, and where."""

import json
import os
import sys
from pathlib import Path

adapters = json.loads(Path("/workspace/adapters/adapters.json").read_text())
exported = {"to": os.environ.get("STORAGE_URI"), "adapters": adapters}
sys.stdout.write(json.dumps({"exported": exported}) + "\n")
