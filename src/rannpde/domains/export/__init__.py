"""Domains as pictures and files: outlines, fillings by simplices, VTK."""
