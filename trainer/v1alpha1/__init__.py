"""`trainer.kubeflow.org/v1alpha1`, the API of Kubeflow Trainer (Go): all that knows of it is in this room.

Objects are converted at the edge: `client` reads and writes them, by `decode`, `encode` and `status`; `discovery` finds
out whether a cluster serves them. `profile` and `plugins` build what Go builds, `admission` refuses what it refuses;
`take_over` and `finalizer` are for what its manager has left. `trainjob` and `trainingruntime` are the models of the
definitions (`crds`).
"""
