"""The metrics that a training has logged, as charts and data."""
