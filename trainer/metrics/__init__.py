"""What the manager exposes as a whole: the version of its build, and the catalogue of all metrics."""
