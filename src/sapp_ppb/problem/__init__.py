"""Problem: what is given, and the faults it can have before any planning."""

from sapp_ppb.problem.problem import Problem

__all__ = ["Problem"]
