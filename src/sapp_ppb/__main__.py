"""
The command ``sapp-ppb``, which is ``python -m sapp_ppb`` as well.

It imports nothing before it can be interrupted in a word.
"""

import sys

_INTERRUPTED = 3


def main() -> None:
    """Run the command; Ctrl-C and a request to end stop it with a message and a code of its own."""
    try:
        from sapp_ppb.interrupts import stop_as_by_ctrl_c, stop_no_more

        stop_as_by_ctrl_c()
        from sapp_ppb.cli.main import main as run

        try:
            run()
        finally:
            stop_no_more()
    except KeyboardInterrupt:
        if sys.stderr is not None:
            from sapp_ppb.cli.guard import say

            say("error: interrupted")
        sys.exit(_INTERRUPTED)


if __name__ == "__main__":
    main()
