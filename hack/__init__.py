"""Scripts that make files of this repository from what they are about."""
