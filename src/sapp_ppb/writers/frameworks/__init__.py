"""Configurations of frameworks: one file a framework, and edits that keep the rest of a file."""
