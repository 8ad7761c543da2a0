"""``sapp-ppb costs``: a model file out of what can be measured."""

import typer

from sapp_ppb.cli import costs_trace
from sapp_ppb.cli.guard import verb

SHORT_HELP = "Make a model file from measurements."
HELP = """
Make a model file from measurements: times from profiler timelines, memory from peaks.

\b
Examples:
  sapp-ppb costs trace traces/ --body DecodeLayer:80 --head Embedding --tail lm_head -mb 16 -o model.json
"""

app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
for name, module, function in (("trace", costs_trace, costs_trace.trace),):
    app.command(name, help=module.HELP, short_help=module.SHORT_HELP)(verb(function))
