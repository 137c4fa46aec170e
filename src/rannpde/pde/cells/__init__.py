"""Random networks on the boxes of a tree, tied together by traces on their faces: the method of cells."""
