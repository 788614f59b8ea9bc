"""Metrics of TrainJobs: their number by state, what happens to them, and how long each stage takes.

The gauges, `trainer_trainjobs` and those by reason and by name, show the cache of a replica, and every replica has
them: aggregate with `max by (namespace, runtime, framework, state) (trainer_trainjobs)`, never with a sum. All others
count what a replica has done while it was the leader: `sum(...)` over replicas is right.

Counters count changes that this process has written into a status: what had happened before a restart or a change of
leaders is not counted again. A process that ends between the write and the next scrape loses the increase.
"""
