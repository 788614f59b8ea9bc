"""Admission: webhooks that may change or refuse what clients write.

Source: Kubernetes documentation, "Dynamic Admission Control".
"""
