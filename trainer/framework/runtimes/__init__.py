"""The runtime that a TrainJob builds on: the live one, or its snapshot."""
