"""Plan files, and the orders that they may hold."""
