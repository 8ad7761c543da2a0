"""HyperParallel: what it can say, and its rules."""
