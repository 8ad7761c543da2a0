"""Where a model that was measured goes: to a file, to stdout as JSON, or as a page for people."""

from pathlib import Path
from typing import TYPE_CHECKING

from sapp_ppb.cli.guard import say
from sapp_ppb.cli.output import write_document, write_result

if TYPE_CHECKING:
    from sapp_ppb.costs import Model


def deliver(model: "Model", page: str, output: str | None, *, force: bool, json_: bool) -> None:
    """Write the model file where one is wanted, then print it or the page."""
    from sapp_ppb.writers import model_to_json, write_model

    try:
        if output is not None:
            write_model(model, Path(output), force)
            say(f"wrote {output}")
    finally:  # a full disk does not take the page from the screen
        if json_:
            write_document(model_to_json(model))
        else:
            write_result(page)
