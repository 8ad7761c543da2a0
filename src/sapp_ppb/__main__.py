"""``python -m sapp_ppb`` is the command ``sapp-ppb``."""

from sapp_ppb.cli.main import main

if __name__ == "__main__":
    main()
