"""What platform engineers run: the manager, its plugins, CRDs and shipped runtimes."""
