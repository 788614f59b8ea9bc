"""The plugins: one module or package for each machine learning framework, workload and scheduler."""
