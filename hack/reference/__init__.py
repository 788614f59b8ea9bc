"""Makes docs/reference from the code: what users look up is written once, beside what it describes."""
