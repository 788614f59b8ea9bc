"""Stands in for the fine-tuning of the image llm-trainer: "trains" on what the initializers have left."""

import json
import os
import sys
import time
from pathlib import Path

workspace = Path("/workspace")
(model,) = workspace.glob("*model/model.json")
result = {
    "dataset": json.loads((workspace / "dataset" / "dataset.json").read_text()),
    "model": json.loads(model.read_text()),
    "lora": json.loads(os.environ["LORA_CONFIG"])["r"],
    "rank": os.environ["RANK"],
}
adapters = workspace / "adapters"
if adapters.is_dir():
    time.sleep(2)
    (adapters / "adapters.json").write_text(json.dumps(result))
sys.stdout.write(json.dumps({"trained": result}) + "\n")
