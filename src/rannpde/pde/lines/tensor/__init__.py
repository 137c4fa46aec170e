"""TensorSystem of functions of each coordinate, on boxes; incompressible flow in them."""
