"""Names of sides: what a user gave, coordinates of flat faces, and numbers for the rest."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from rannpde.domains.boundary.solids import Leaf, Solid
from rannpde.errors import InputError

Labelled = tuple[int, str]
"""Number of a solid in its tree, and the label of one of its charts."""


def side_names(leaves: Sequence[Leaf], labels: Sequence[Labelled]) -> dict[Labelled, str]:
    """The name of every side.

    A face of a box that no one named is called by its coordinate, ``x=0``, and so shares a name with every other such
    face in that plane. A shape with a name gives it to its side, ``hole``, or to its sides, ``wing.edge1``. The others
    are numbered in the order in which they were written, ``ball1``, ``ball2``; edges of a polygon that is alone in
    its kind are ``edge1``, …
    """
    tags = _tags([leaf.solid for leaf in leaves])
    names: dict[Labelled, str] = {}
    for leaf, label in labels:
        given, tag, alone = tags[leaf]
        if "=" in label and given is None:
            names[leaf, label] = label
        elif not label:
            names[leaf, label] = tag
        elif given is None and alone:
            names[leaf, label] = label
        else:
            names[leaf, label] = f"{tag}.{label}"
    _refuse_twice(names, tags)
    return names


def _tags(solids: Sequence[Solid]) -> list[tuple[str | None, str, bool]]:
    """Given name, name in use, and whether it is the only shape of its kind, of each solid."""
    names = [getattr(solid, "name", None) for solid in solids]
    kinds = [str(getattr(solid, "kind", "shape")) for solid in solids]
    taken, amount = {name for name in names if name}, Counter(kinds)
    repeated = [name for name, number in Counter(name for name in names if name).items() if number > 1]
    if repeated:
        raise InputError(f"the name {repeated[0]!r} is used twice; give each shape a name of its own")
    numbers: Counter[str] = Counter()
    tags = []
    for name, kind in zip(names, kinds, strict=True):
        tag = name
        while tag is None or (name is None and tag in taken):
            numbers[kind] += 1
            tag = f"{kind}{numbers[kind]}"
        tags.append((name, tag, amount[kind] == 1))
    return tags


def _refuse_twice(names: dict[Labelled, str], tags: list[tuple[str | None, str, bool]]) -> None:
    owners: dict[str, Labelled] = {}
    for key, name in names.items():
        before = owners.setdefault(name, key)
        if before != key and "=" not in name:
            shapes = f"{tags[before[0]][1]} and {tags[key[0]][1]}"
            raise InputError(f"the name {name!r} is used twice, by {shapes}; give the shapes names of their own")
