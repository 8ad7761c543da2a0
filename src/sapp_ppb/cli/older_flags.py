"""Flags of the older tool, which had no verbs: those that have another name now are refused with it."""

from typing import Any

import typer
from typer.core import TyperGroup

from sapp_ppb.cli.guard import BAD_INPUT, say

_MODEL = "give the path of the model file after the verb"
_LOGS = "give logs of dry runs, or memory_record.csv, to 'sapp-ppb costs dryrun'"
_NEW_NAMES = {
    "-lf": _MODEL,
    "-m": _MODEL,
    "-lm": "give --schedule interleaved-less-memory",
    "-dual": "give --schedule dualpipev",
    "-sc": "give --schedule NAME, as 'sapp-ppb plan --help' lists them",
    "-naive": "every plan is compared with even splits; leave it out",
    "-manual": "give the YAML file to 'sapp-ppb compare MODEL.json MANUAL.yaml' or 'sapp-ppb simulate'",
    "-seq": "give --schedule seq1f1b --sequence-chunks K",
    "-init": "make a model file with 'sapp-ppb costs init INIT.yaml -o MODEL.json'",
    "-guide": "ask 'sapp-ppb dryrun-guide -s S -l LAYERS'",
    "-auto": "run what 'sapp-ppb dryrun-guide' says, and give the logs to 'sapp-ppb costs dryrun'",
    "-train": "check the YAML with 'sapp-ppb check TRAIN.yaml --model MODEL.json', which plans for it too",
    "-dump": "make a model file with 'sapp-ppb costs', which writes it to --output",
    "-mf": _LOGS,
    "-cm": _LOGS,
    "-O": "there are no levels; give more time with --time-limit",
    "-exec": "there is nothing to switch on; leave it out",
}
# Its long names: those of a flag above, and those of options that have a name here.
_LONG_NAMES = {
    "--layer_folder": "-lf",
    "--model_name": "-m",
    "--less_memory": "-lm",
    "--dualpipe_v": "-dual",
    "--simulate_naive": "-naive",
    "--manual_config": "-manual",
    "--init": "-init",
    "--guide": "-guide",
    "--dump_layer": "-dump",
    "--memory_folder": "-mf",
    "--compute_memory": "-cm",
    "--optimization_level": "-O",
    "--exec": "-exec",
}
_NEW_NAMES |= {long: _NEW_NAMES[short] for long, short in _LONG_NAMES.items()} | {
    "--stage": "give --stages",
    "--micro_batch": "give --micro-batches",
    "--interleave_degree": "give --interleave",
    "--max_memory": "give --memory-limit",
    "--constant_memory": "give --constant-memory",
    "--output_folder": "give --output",
    "--time_limit": "give --time-limit",
}
_OF_THE_GROUP = ("-h", "--help", "--version")


class Verbs(TyperGroup):
    """The verbs, and a way for those who come from the older tool."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Refuse flags of the older tool before anything else is looked at."""
        for argument in args[: args.index("--")] if "--" in args else args:
            flag = argument.split("=")[0].rstrip("0123456789")  # -O2 is -O 2
            if flag in _NEW_NAMES:
                self._refuse(f"{flag} is a flag of the older tool: {_NEW_NAMES[flag]}")
        if args and args[0].startswith("-") and args[0] not in _OF_THE_GROUP:
            self._refuse(
                f"a verb must come before {args[0]}, as in: sapp-ppb plan MODEL.json -s 16 -mb 32 -mem 56000"
            )
        return super().parse_args(ctx, args)

    @staticmethod
    def _refuse(message: str) -> None:
        say(f"error: {message}")
        raise typer.Exit(BAD_INPUT)
