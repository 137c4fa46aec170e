"""Interfaces of a problem: level sets on which coefficients jump or have kinks."""
