"""The configuration file of the manager."""
