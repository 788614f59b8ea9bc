"""Log lines for people and machines, without secrets and without stalls."""
