"""Doing the work: cells in processes, and the records in which finished ones are kept."""
