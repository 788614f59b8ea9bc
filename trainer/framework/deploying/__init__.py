"""Build (KEP-2170), ComponentDeployer: what is built reaches the cluster by server-side apply."""
