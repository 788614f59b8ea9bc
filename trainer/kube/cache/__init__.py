"""Local copies of resources: reflector, store, informer, and all of a process's own writes in them."""
