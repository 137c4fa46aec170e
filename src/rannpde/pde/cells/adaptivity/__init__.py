"""The adaptive loop over meshes: solve, estimate, mark, refine."""
