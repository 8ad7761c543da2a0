"""The verbs of ``sapp-ppb costs``, and what they print."""
