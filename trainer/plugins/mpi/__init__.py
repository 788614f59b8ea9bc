"""MPI: a launcher that starts the training on its nodes over SSH."""
