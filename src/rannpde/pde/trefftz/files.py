"""Trefftz solutions in files, of whatever kind."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rannpde.arrays import Array
from rannpde.pde.trefftz.cells.arrangement import unpack_arrangement
from rannpde.pde.trefftz.cells.network import CellsNetwork
from rannpde.pde.trefftz.cells.slabs import SlabArrangement
from rannpde.pde.trefftz.modal import ModalNetwork, unpack_modal
from rannpde.pde.trefftz.network import TrefftzNetwork, under, unpack_network
from rannpde.pde.trefftz.varying.network import VaryingNetwork, unpack_varying


def unpack_trefftz(
    header: Mapping[str, Any], arrays: Mapping[str, Array]
) -> TrefftzNetwork | CellsNetwork | ModalNetwork | VaryingNetwork:
    """The inverse of ``pack`` of one network, of cells of networks, and of evolutions."""
    if "boxes" in header:
        return unpack_varying(header, arrays)
    if "modes" in header:
        return unpack_modal(header, arrays)
    if "cells" not in header:
        return unpack_network(header, arrays)
    networks = tuple(unpack_network(one, under(arrays, f"cell{k}.")) for k, one in enumerate(header["cells"]))
    own = under(arrays, "arrangement.")
    return CellsNetwork(networks, SlabArrangement.unpack(own) if "planes" in own else unpack_arrangement(own))
