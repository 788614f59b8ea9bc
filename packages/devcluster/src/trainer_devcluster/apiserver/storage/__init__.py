"""All objects of the cluster, in memory and in the journal."""
