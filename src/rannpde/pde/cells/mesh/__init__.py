"""Meshes of cells: the tree of boxes, cells clipped by the boundary, faces, and graded initial meshes."""
