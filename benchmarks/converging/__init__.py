"""The parts of `benchmarks.converge`."""
