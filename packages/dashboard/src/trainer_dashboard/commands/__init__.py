"""Commands of `trainer` that this distribution adds: the page, its server, the history; and what others ask it for."""
