"""The method of cells: random networks on the cells of an adaptive mesh, coupled by the traces on their faces."""
