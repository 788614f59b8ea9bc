"""Metrics of TrainJobs: how many there are, how they fare, and how long each stage takes.

The gauges, `trainer_trainjobs` and those by reason and by name, are what a replica's cache shows, and every replica has
them: aggregate with `max by (namespace, runtime, framework, state) (trainer_trainjobs)`, never with a sum over replicas
alone. All others count what the leader has done, each replica for the time of its leadership: `sum(...)` over replicas
is right.

Counters count changes that this process has written into a status, not states that it finds: what was finished before
is not counted again after a restart or a change of leaders. A process that ends between the write and the next scrape
takes the increase with it; nothing is counted twice.
"""
