"""Files of the older SAPP tool."""
