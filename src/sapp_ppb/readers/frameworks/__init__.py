"""Configurations of frameworks: one file a framework."""
