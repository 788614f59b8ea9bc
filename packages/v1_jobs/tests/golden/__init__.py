"""Jobs of the Training and MPI Operator, and what they become."""
