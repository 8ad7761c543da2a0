"""Good plans soon: annealing on the exact simulator, its compiled moves, and its budget."""
