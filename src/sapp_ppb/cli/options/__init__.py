"""Options that verbs share, by what they are about, and how their text becomes values."""
