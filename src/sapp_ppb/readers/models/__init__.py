"""Model files and what they are made of; configurations of published models."""
