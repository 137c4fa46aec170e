"""Random basis functions of cells, orthonormal on their points."""
