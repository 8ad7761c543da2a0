"""Texts as they stand in files, read safely: JSON, YAML, TOML, Python literals, numbers."""
