"""Tensor-product bases on boxes, and incompressible flow on them."""
