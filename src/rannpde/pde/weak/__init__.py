"""The weak form on cells: local random networks, coupled by traces, where solutions need not be smooth."""
