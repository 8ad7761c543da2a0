"""The verb ``sapp-ppb sweep``, its options, files and table."""
