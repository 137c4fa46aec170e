"""Showing what was found: slopes from records, figures, one page; and the progress while cells run."""
