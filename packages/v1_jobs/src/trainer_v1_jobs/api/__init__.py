"""The kinds of the Training Operator, `kubeflow.org/v1`, and MPIJob of the MPI Operator, `kubeflow.org/v2beta1`.

They are read to be converted into TrainJobs. Semantics are those of Training Operator 1.9 and MPI Operator 0.8.
"""
