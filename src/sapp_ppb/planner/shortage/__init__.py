"""Where nothing fits: the least memory that any plan needs, and which change would do."""
