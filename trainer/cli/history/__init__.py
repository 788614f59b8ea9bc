"""The history on the command line: recording, listing, comparing, exporting."""
