"""Cells of Trefftz networks: several networks, each on a part of the domain, coupled along the faces between them."""
