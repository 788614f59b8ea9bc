"""From changes of objects to calls of a reconcile function."""
