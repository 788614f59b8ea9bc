"""Stands in for the image dataset-initializer: writes down what it would fetch."""

import json
import os
import sys
import time
from pathlib import Path

time.sleep(0.5)
dataset = {name: os.environ[name] for name in ("STORAGE_URI", "SPLIT", "ENDPOINT_URL") if name in os.environ}
Path("/workspace/dataset/dataset.json").write_text(json.dumps(dataset))
sys.stdout.write(json.dumps({"fetched": dataset}) + "\n")
