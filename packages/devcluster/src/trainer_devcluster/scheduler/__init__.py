"""The scheduler of the dev cluster: decides which pods its one node takes, one by one or as gangs.

Kubernetes documentation, "Kubernetes Scheduler". What it looks at is in `node_fit`, what it does about gangs in
`placement`. What does not fit waits until something ends; only gangs of Kubernetes preempt
others, where the gate is on.
"""

from trainer_devcluster.scheduler.candidate import GangScheduler, definition_of, parse_gang_schedulers
from trainer_devcluster.scheduler.scheduler import Scheduler, register

__all__ = ["GangScheduler", "Scheduler", "definition_of", "parse_gang_schedulers", "register"]
