"""Black-box tests: real processes, real kubectl, real training."""
