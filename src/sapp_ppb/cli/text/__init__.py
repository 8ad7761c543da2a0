"""What verbs print: tables, timelines of letters, explanations."""
