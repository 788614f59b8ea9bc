"""Numbers, never asserted: what `trainer.kube` costs next to kopf and to kubernetes_asyncio's own watch."""
