"""The Job controller: pods for Jobs, and an exact account of how they end (batch/v1)."""
