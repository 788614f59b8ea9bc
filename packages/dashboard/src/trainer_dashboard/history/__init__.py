"""The history of trainings: a recorder that follows a cluster, and a database that keeps what the cluster forgets.

`recorder` follows TrainJobs and all that is made for them by informers, and writes to a `database`; `queries` answers
questions about what was written. Nothing else reads the tables.
"""
