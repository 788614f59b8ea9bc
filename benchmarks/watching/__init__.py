"""Pages of a dashboard that are open, for `benchmarks.dashboard`."""
