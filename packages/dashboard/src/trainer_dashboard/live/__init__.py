"""What pages follow while it changes: the list, a training, its logs and metrics, comparisons."""
