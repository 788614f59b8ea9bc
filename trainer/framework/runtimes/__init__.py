"""Which runtime a TrainJob builds on: the live one, or the snapshot that was kept of it."""
