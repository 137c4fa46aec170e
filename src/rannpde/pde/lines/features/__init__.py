"""Random features as a basis in space: resolution, quadrature, Galerkin projection."""
