"""Images in archives of the Open Container Initiative; needs Python's standard library alone."""
