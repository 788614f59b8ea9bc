"""The dev cluster with its manager on this machine: up, down, status, demo, cluster."""
