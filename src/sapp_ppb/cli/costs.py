"""``sapp-ppb costs``: a model file out of what can be measured, or is known of a model and a device."""

import typer

from sapp_ppb.cli import costs_hf, costs_memory, costs_profiles, costs_trace
from sapp_ppb.cli.guard import verb

SHORT_HELP = "Make a model file from measurements, or from sizes alone."
HELP = """
Make a model file from measurements: times from profiler timelines, memory from peaks,
or both from the profile of another planner.
Before there is anything to measure, make one of estimates: hf.

\b
Examples:
  sapp-ppb costs trace traces/ --body DecodeLayer:80 --head Embedding --tail lm_head -mb 16 -o times.json
  sapp-ppb costs dryrun output_dryrun --runs guide.yaml --times times.json -o model.json
  sapp-ppb costs init init.yaml -o model.json
  sapp-ppb costs csv layers.csv -o model.json
  sapp-ppb costs hf config.json --device h100 --tp 8 --seq 8192 -o model.json
"""

app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
for name, function, words, short in (
    ("trace", costs_trace.trace, costs_trace.HELP, costs_trace.SHORT_HELP),
    ("dryrun", costs_memory.dryrun, costs_memory.DRYRUN_HELP, costs_memory.DRYRUN_SHORT_HELP),
    ("init", costs_memory.init, costs_memory.INIT_HELP, costs_memory.INIT_SHORT_HELP),
    (
        "galvatron",
        costs_profiles.galvatron,
        costs_profiles.GALVATRON_HELP,
        costs_profiles.GALVATRON_SHORT_HELP,
    ),
    (
        "pipedream",
        costs_profiles.pipedream,
        costs_profiles.PIPEDREAM_HELP,
        costs_profiles.PIPEDREAM_SHORT_HELP,
    ),
    ("csv", costs_profiles.table, costs_profiles.CSV_HELP, costs_profiles.CSV_SHORT_HELP),
    ("hf", costs_hf.hf, costs_hf.HELP, costs_hf.SHORT_HELP),
):
    app.command(name, help=words, short_help=short)(verb(function))
