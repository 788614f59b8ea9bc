"""Stands in for the image model-initializer: writes down what it would fetch."""

import json
import os
import sys
import time
from pathlib import Path

time.sleep(2)
model = {name: os.environ[name] for name in ("STORAGE_URI", "TRANSFORMER_TYPE") if name in os.environ}
Path("/workspace/model/model.json").write_text(json.dumps(model))
sys.stdout.write(json.dumps({"fetched": model}) + "\n")
