"""Everything that a release publishes, made from one commit: `make release` writes it to dist/."""
