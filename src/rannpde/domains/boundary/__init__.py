"""Boundaries: charts of curves and surfaces, walls, solids and trees of them, arcs, sides, re-entrant edges."""
