"""What pages ask for once: objects, explanations, submissions, the cluster and its queues."""
