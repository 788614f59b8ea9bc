"""Events that tell users what a controller did."""
