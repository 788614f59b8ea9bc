"""Gangs by Kubernetes itself: trainings whose pods start together or not at all (the Workload API)."""
