"""Who looks at the page, what they may see and do, and how much of the process each of them gets."""
