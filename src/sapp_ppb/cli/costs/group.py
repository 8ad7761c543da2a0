"""``sapp-ppb costs``: a model file out of what can be measured, or is known of a model and a device."""

import typer

from sapp_ppb.cli.costs import hf, memory, profiles, trace
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
    ("trace", trace.trace, trace.HELP, trace.SHORT_HELP),
    ("dryrun", memory.dryrun, memory.DRYRUN_HELP, memory.DRYRUN_SHORT_HELP),
    ("init", memory.init, memory.INIT_HELP, memory.INIT_SHORT_HELP),
    (
        "galvatron",
        profiles.galvatron,
        profiles.GALVATRON_HELP,
        profiles.GALVATRON_SHORT_HELP,
    ),
    (
        "pipedream",
        profiles.pipedream,
        profiles.PIPEDREAM_HELP,
        profiles.PIPEDREAM_SHORT_HELP,
    ),
    ("csv", profiles.table, profiles.CSV_HELP, profiles.CSV_SHORT_HELP),
    ("hf", hf.hf, hf.HELP, hf.SHORT_HELP),
):
    app.command(name, help=words, short_help=short)(verb(function))
