"""Static condensation of cells onto the traces on their faces, and nested dissection of the traces."""
