"""Controller machinery in asyncio: client, informer, work queue, controller, manager; knows nothing of training."""
