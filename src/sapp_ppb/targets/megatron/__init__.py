"""Megatron-LM: what it can say, and its rules."""
