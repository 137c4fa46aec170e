"""Shapes that users write: boxes, balls, quadrics, polygons, formulas, meshes, and what they have in common."""
