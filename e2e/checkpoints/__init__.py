"""Checkpoints end to end, from the claim to trainings that are interrupted.

| | needs | |
|---|---|---|
| `test_claims.py` | a cluster | whose directory of a claim it is, how long it stays, and what is said without a claim |
| `test_survival.py` | a cluster | trainings that are suspended, evicted and killed, and go on |
| `test_processes.py` | PyTorch | ranks that get signals or are killed: what all of them save, and how they end |
| `test_frameworks.py` | frameworks | the same without a line in the script |
"""
