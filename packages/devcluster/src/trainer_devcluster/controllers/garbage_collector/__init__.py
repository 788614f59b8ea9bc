"""Garbage collection: dependents follow their owners (Kubernetes documentation, "Garbage Collection")."""
