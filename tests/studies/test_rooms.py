"""The rooms of the studies: each imports only from those below it."""

import ast
from pathlib import Path

import pytest

import rannpde

ROOT = Path(rannpde.__file__).parent / "studies"
BELOW = {"layer": set(), "target": set(), "cell": {"layer", "target"}}
BELOW["curves"] = {"cell", *BELOW["cell"]}
BELOW["study"] = {"curves", *BELOW["curves"]}
BELOW |= {"known_values": {"target"}, "true_solutions": {"target"}}
BELOW["run"] = {"study", "known_values", "true_solutions", *BELOW["study"]}
BELOW["show"] = {"run", *BELOW["run"]}
BELOW["paper"] = {"show", *BELOW["show"]}
BELOW["toml"] = BELOW["reproduce"] = {"paper", *BELOW["paper"]}


@pytest.mark.parametrize("path", sorted(ROOT.rglob("*.py")), ids=lambda p: str(p.relative_to(ROOT)))
def test_imports_point_downwards(path: Path) -> None:
    room = path.relative_to(ROOT).parts[0].removesuffix(".py")
    tree = ast.parse(path.read_text(encoding="utf-8"))
    found = {str(node.module) for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    used = {name.split(".")[2] for name in found if name.startswith("rannpde.studies.")} - {room}
    assert used <= BELOW.get(room, set())
    if path.name == "__init__.py":
        assert [type(node) for node in tree.body] == [ast.Expr], "a docstring only"
