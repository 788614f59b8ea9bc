"""The history of trainings: a recorder that follows a cluster, and a database that keeps what the cluster forgets.

`recorder` follows TrainJobs, all that is made for them, and OptimizationJobs by informers, and writes to a `database`;
`queries` and `sweep_queries` answer questions about what was written. Nothing else reads the tables.
"""
