"""The search: which parameters the next trial gets, and which trial is stopped before its end.

All of it is made of the history of the trials each time, without state, clock or shared random numbers: the same
history gives the same answer, in any process. Calls block for milliseconds (a Gaussian process: for seconds) and are
made in a thread; several may run at once. numpy and Optuna are imported when an algorithm needs them.
"""

from trainer_sweeps.search.history import PastTrial
from trainer_sweeps.search.pruning import prune_reason
from trainer_sweeps.search.space import AlgorithmUnavailableError
from trainer_sweeps.search.suggestion import number_of_trials, seed_of, suggestion

__all__ = [
    "AlgorithmUnavailableError",
    "PastTrial",
    "number_of_trials",
    "prune_reason",
    "seed_of",
    "suggestion",
]
