"""What users of the SDK of the Training Operator do; runs with that SDK and without this project's environment."""
