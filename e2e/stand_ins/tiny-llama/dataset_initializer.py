"""Leaves a few rows in the form of the data set Alpaca where a dataset initializer would."""

import os
import sys
from pathlib import Path

import pyarrow as pa
from pyarrow import parquet

rows = [{"instruction": f"Say the number {n}.", "input": "", "output": str(n)} for n in range(16)]
data = Path(os.environ.get("TRANSFER_PATH", "/workspace/dataset"), "data")
data.mkdir(parents=True, exist_ok=True)
parquet.write_table(pa.Table.from_pylist(rows), data / "train-00000-of-00001.parquet")
sys.stdout.write(f"fetched {os.environ.get('STORAGE_URI')}\n")
