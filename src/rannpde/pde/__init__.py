"""Partial differential equations: stated in one line, solved from their equations.

statement ← problem ← collocation, lines ← solve; ``zoo`` holds named problems.
"""
