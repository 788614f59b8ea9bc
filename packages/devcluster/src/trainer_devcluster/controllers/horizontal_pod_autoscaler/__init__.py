"""A stand-in for the autoscaler: metrics come from annotations, everything else is as Kubernetes does it.

Kubernetes documentation, "Horizontal Pod Autoscaling". The metric `cpu` is what the annotation
`devcluster.trainer/metric-cpu` says: of a pod for that pod, of the HorizontalPodAutoscaler for all its pods.
"""
