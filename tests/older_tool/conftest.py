"""What is promised to those who come from the older SAPP tool; docs/migrating.md lists why."""

from tests.cli.conftest import _compiled, model_file, run

__all__ = ["_compiled", "model_file", "run"]
