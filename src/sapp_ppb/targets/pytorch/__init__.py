"""PyTorch pipelining: what it can say, and its rules."""
