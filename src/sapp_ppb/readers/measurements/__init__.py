"""What was measured: traces, peaks of memory, steps, and profiles of other planners."""
