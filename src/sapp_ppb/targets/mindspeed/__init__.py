"""MindSpeed: what it can say, and its rules."""
