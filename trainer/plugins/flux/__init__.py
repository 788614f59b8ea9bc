"""Flux: an HPC resource manager of its own in the pods, which starts the training."""
