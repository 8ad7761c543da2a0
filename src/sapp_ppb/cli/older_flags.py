"""Flags of the older tool, which had no verbs: those that have another name now are refused with it."""

from typing import Any

import typer
from typer.core import TyperGroup

from sapp_ppb.cli.guard import BAD_INPUT, say

_NEW_NAMES = {
    "-lf": "give the path of the model file after the verb",
    "-m": "give the path of the model file after the verb",
    "-lm": "give --schedule interleaved-less-memory",
    "-naive": "every plan is compared with even splits; leave it out",
    "-manual": "give the YAML file to 'sapp-ppb compare MODEL.json MANUAL.yaml' or 'sapp-ppb simulate'",
    "-seq": "give --schedule seq1f1b --sequence-chunks K",
    "-init": "make a model file with 'sapp-ppb costs init INIT.yaml -o MODEL.json'",
    "-train": "check the YAML with 'sapp-ppb check TRAIN.yaml --model MODEL.json', which plans for it too",
    "-dump": "make a model file with 'sapp-ppb costs', which writes it to --output",
    "-cm": "a communication model is not available; give the time of a hop with --p2p",
    "-O": "there are no levels; give more time with --time-limit",
    "-exec": "there is nothing to switch on; leave it out",
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
