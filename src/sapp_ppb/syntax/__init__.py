"""Shell words, Python names and nodes of YAML: taken apart, never run."""
