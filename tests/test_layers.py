"""The ladder of imports: each package uses only what stands below it."""

import ast
from pathlib import Path

import pytest

import rannpde

ROOT = Path(rannpde.__file__).parent
BELOW = {
    "errors": set(),
    "network": {"errors"},
    "domains": {"errors", "network"},
    "fitting": {"errors", "network", "domains"},
    "pde": {"errors", "network", "domains", "fitting"},
    "theory": {"errors", "network", "domains", "fitting"},
    "loading": {"network", "pde"},
    "plotting": {"errors", "network", "domains", "fitting", "pde"},
    "sklearn": {"errors", "network", "domains", "fitting"},
    "studies": {"errors", "network", "domains", "fitting", "pde", "theory", "plotting"},
    "cli": {"errors", "network", "domains", "fitting", "pde", "theory", "plotting", "studies"},
}
MODULES = sorted(p for p in ROOT.rglob("*.py") if p.parent != ROOT or p.stem not in ("__init__", "__main__"))


def imports(tree: ast.AST) -> set[str]:
    names = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are absolute"
            names |= {
                f"{node.module}.{alias.name}" if node.module == "rannpde" else str(node.module) for alias in node.names
            }
    return names


@pytest.mark.parametrize("path", MODULES, ids=lambda p: str(p.relative_to(ROOT)))
def test_imports_point_downwards(path):
    layer = path.relative_to(ROOT).parts[0].removesuffix(".py")
    tree = ast.parse(path.read_text(encoding="utf-8"))
    used = {name.split(".")[1] for name in imports(tree) if name.startswith("rannpde.")} - {layer, "__version__"}
    if path.relative_to(ROOT).as_posix() == "pde/solution.py":
        used -= {"plotting"}  # Solution.plot() loads the pictures when it is called: the one exception
    assert used <= BELOW[layer], f"{layer} may not import {used - BELOW[layer]}"
    if layer not in ("plotting", "studies", "cli"):
        top = ast.Module([node for node in tree.body if isinstance(node, ast.Import | ast.ImportFrom)], [])
        assert not any(name.startswith("matplotlib") for name in imports(top))
