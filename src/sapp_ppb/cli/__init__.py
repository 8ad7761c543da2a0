"""
Commands: one file a verb, which parses, calls and prints.

Only typer is imported with these modules; what works is imported by the verb that
needs it, so that help costs nothing.
"""
