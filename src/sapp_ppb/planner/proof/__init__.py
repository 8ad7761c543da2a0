"""Bounds on every plan: relaxed chains, exact fronts, and branch and bound over programs."""
