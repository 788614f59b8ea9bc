"""The work queue: which keys are to be looked at, and when."""
