"""The ladder of imports: each package uses only those below it, and so do the parts of ``pde`` and ``domains``."""

import ast
from collections.abc import Iterator
from functools import cache
from graphlib import TopologicalSorter
from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest

import rannpde

ROOT = Path(rannpde.__file__).parent


def place(path: Path, level: int) -> str:
    """The package or module that a file belongs to, counted from ours."""
    return path.relative_to(ROOT).parts[level].removesuffix(".py")


FOUNDATION = {
    "arrays",
    "checkpoints",
    "cluster",
    "display",
    "errors",
    "grammar",
    "io",
    "progress",
    "rounding",
    "threads",
}
"""What every package may import."""
BELOW = {
    "arrays": set(),
    "checkpoints": set(),
    "errors": {"arrays"},
    "grammar": {"errors"},
    "io": {"arrays", "errors"},
    "threads": set(),
    "rounding": set(),
    "display": set(),
    "progress": {"display", "errors"},
    "cluster": {"arrays", "errors", "threads"},
    "network": set(),
    "domains": {"network"},
    "fitting": {"network", "domains"},
    "pde": {"network", "domains", "fitting"},
    "theory": {"network", "domains", "fitting", "pde"},
    "loading": {"network", "pde"},
    "plotting": {"network", "domains", "fitting", "pde"},
    "sklearn": {"network", "domains", "fitting"},
    "studies": {"network", "domains", "fitting", "pde", "theory", "plotting"},
    "cli": {"network", "domains", "fitting", "pde", "theory", "plotting", "studies"},
}
STATED = {"statement", "functional_values", "functions", "residual", "problem"}
BELOW_IN_PDE = {
    "tolerance": set(),
    "statement": set(),
    "functions": {"statement"},
    "functional_values": {"statement", "functions"},
    "residual": {"statement", "functional_values", "functions"},
    "problem": {"statement", "functional_values", "functions", "residual"},
    "zoo": STATED,
    "memory": set(),
    "budget": {"memory"},
    "monitor": {"budget"},
    "interpolation": set(),
    "access": {"statement"},
    "tables": set(),
    "packing": {"problem"},
    "report": set(),
    "solution": {"problem", "monitor", "access", "tables", "packing", "report"},
    "forward_model": STATED | {"monitor", "solution"},
    "ensembles": {"solution"},
    "start": STATED | {"solution"},
    "unsolved": STATED | {"monitor", "solution", "start"},
    "discontinuities": STATED,
    "capability": set(),
    "intrinsic": STATED,
    "exit_times": STATED,
    "trapping": STATED | {"intrinsic", "exit_times"},
    "degeneracy": STATED | {"tolerance"},
    "adaptivity": {"monitor"},
    "time": {"monitor"},
    "initial": STATED | {"time"},
    "equilibria": STATED | {"initial"},
    "singular_points": STATED | {"initial"},
    "gauss_newton": {"monitor"},
    "newton": set(),
    "collocation": STATED
    | {"capability", "adaptivity", "gauss_newton", "monitor", "solution", "start", "forward_model"},
    "polynomials": STATED | {"capability", "gauss_newton", "monitor", "solution", "forward_model"},
    "cells": STATED
    | {
        "capability",
        "adaptivity",
        "degeneracy",
        "discontinuities",
        "equilibria",
        "singular_points",
        "intrinsic",
        "trapping",
        "monitor",
        "solution",
        "start",
        "initial",
        "time",
        "forward_model",
    },
    "lines": STATED | {"capability", "adaptivity", "discontinuities", "monitor", "solution", "time", "forward_model"},
    "trefftz": STATED
    | {
        "capability",
        "adaptivity",
        "budget",
        "intrinsic",
        "exit_times",
        "trapping",
        "monitor",
        "newton",
        "solution",
        "start",
        "forward_model",
    },
    "paths": STATED | {"capability", "budget", "monitor", "solution"},
    "weak": STATED | {"capability", "monitor", "newton", "solution", "cells", "adaptivity", "time", "forward_model"},
    "flow": STATED
    | {"capability", "monitor", "newton", "solution", "cells", "adaptivity", "forward_model", "weak", "time"},
    "spectrum": STATED | {"budget", "monitor", "solution", "cells", "adaptivity", "weak", "trefftz", "flow"},
    "inverse": STATED | {"monitor", "solution", "forward_model", "cells", "lines"},
    "family": STATED | {"monitor", "solution"},
    "free_corners": STATED,
    "uniqueness": STATED | {"degeneracy", "monitor", "solution"},
    "selection": STATED
    | {
        "capability",
        "free_corners",
        "uniqueness",
        "budget",
        "monitor",
        "solution",
        "unsolved",
        "flow",
        "weak",
        "cells",
        "collocation",
        "lines",
        "trefftz",
        "paths",
        "polynomials",
    },
    "outputs": STATED | {"budget", "monitor", "solution", "selection", "flow", "trefftz", "weak"},
    "identification": STATED
    | {"monitor", "solution", "forward_model", "cells", "lines", "paths", "inverse", "selection"},
    "solve_table": {"identification", "selection"},
    "solve": STATED
    | {
        "identification",
        "discontinuities",
        "flow",
        "outputs",
        "budget",
        "memory",
        "monitor",
        "solution",
        "forward_model",
        "ensembles",
        "cells",
        "lines",
        "inverse",
        "family",
        "paths",
        "selection",
        "weak",
    },
}
"""statement ← problem ← cells, collocation, lines, trefftz, paths ← inverse ← solve; the methods never meet before
these, but for the weak form, which stands on the trees of cells."""
ANSWERS = {"solution.py": {"outputs"}}
"""``solution.integral(…)`` and its like: the questions load when they are asked, inside functions."""
BELOW_IN_DOMAINS = {
    "sobol": set(),
    "streams": {"sobol"},
    "coordinates": set(),
    "roots": set(),
    "region": {"streams"},
    "boundary": {"streams", "coordinates", "roots", "region"},
    "quadrature": {"streams", "region", "boundary"},
    "shapes": {"streams", "coordinates", "region", "boundary", "quadrature"},
    "domain": {"streams", "coordinates", "region", "boundary", "shapes"},
    "operations": {"coordinates", "roots", "region", "boundary", "quadrature", "shapes", "domain"},
    "norms": {"region", "quadrature", "domain"},
    "export": {"roots", "boundary", "shapes", "domain", "operations"},
}
"""sobol ← streams, coordinates, roots ← region ← boundary ← quadrature ← shapes ← domain ← operations, norms ←
export."""
OPERATORS = {
    "shapes/base.py": {"operations", "export"},
    "shapes/boxes.py": {"operations"},
    "shapes/cutting.py": {"operations"},
}
"""``one | other``, ``shape.part(…)``, ``shape.plot()``: what they make loads when they are called, inside functions."""
BELOW_IN_CELLS = {
    "tuning": set(),
    "interfaces": set(),
    "basis": {"tuning"},
    "mesh": {"tuning", "interfaces", "basis"},
    "network": {"interfaces", "basis", "mesh"},
    "condensation": {"mesh"},
    "constraints": {"basis", "mesh", "condensation"},
    "stationary": {"tuning", "basis", "mesh", "network", "condensation", "constraints"},
    "time": {"tuning", "interfaces", "basis", "mesh", "network", "condensation", "constraints"},
    "adaptivity": {"tuning", "interfaces", "basis", "mesh", "network", "stationary"},
    "model": {"tuning", "basis", "mesh", "network", "stationary", "time"},
    "method": {"tuning", "network", "time", "adaptivity", "model"},
}
"""interfaces, basis ← mesh ← condensation ← constraints ← stationary, time ← method; the loop drives either."""
BELOW_IN_LINES = {
    "tuning": set(),
    "quantised": set(),
    "solution": {"quantised"},
    "comparison": {"solution"},
    "settings": {"tuning", "solution"},
    "features": {"tuning", "solution", "comparison", "settings"},
    "fourier": {"tuning", "solution", "settings"},
    "tensor": {"tuning", "solution", "settings", "features"},
    "adaptive": {"tuning", "solution", "comparison", "settings"},
    "sensitivities": {"tuning", "solution", "settings", "features", "fourier", "tensor"},
    "files": {"tuning", "quantised", "solution", "features", "fourier", "tensor"},
    "method": {
        "tuning",
        "solution",
        "comparison",
        "settings",
        "adaptive",
        "features",
        "fourier",
        "tensor",
        "sensitivities",
    },
}
"""solution ← settings ← features, fourier ← tensor ← sensitivities ← method: bases do not know who uses them."""
DRAWS = (
    "pde/solution.py",
    "pde/paths/solution.py",
    "pde/spectrum/result.py",
    "pde/spectrum/pseudospectrum.py",
    "pde/spectrum/continuation/result.py",
    "pde/ensembles.py",
    "pde/problem/problem.py",
    "pde/inverse/identified.py",
    "pde/inverse/design.py",
    "pde/family/parametric.py",
)
"""Their ``plot()`` and their views in notebooks load the pictures when they are called: the one exception."""
MODULES = sorted(p for p in ROOT.rglob("*.py") if p.parent != ROOT or p.stem not in ("__init__", "__main__"))
INNER = [p for p in MODULES if place(p, 0) == "pde" and p != ROOT / "pde" / "__init__.py"]
LINES = [p for p in INNER if place(p, 1) == "lines" and p != ROOT / "pde" / "lines" / "__init__.py"]
SHAPES = [p for p in MODULES if place(p, 0) == "domains" and p != ROOT / "domains" / "__init__.py"]
CELLS = [p for p in INNER if place(p, 1) == "cells" and p != ROOT / "pde" / "cells" / "__init__.py"]
PACKAGES = sorted({p.parent for p in ROOT.rglob("__init__.py")})


def statements(tree: ast.AST) -> Iterator[ast.AST]:
    """All statements of a module, those inside of others too; expressions, most of a module, are left out."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.stmt | ast.ExceptHandler | ast.match_case):
            yield node
            yield from statements(node)


@cache
def imports(tree: ast.AST) -> frozenset[str]:
    names = set()
    for node in statements(tree):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are absolute"
            package = node.module is not None and (ROOT.parent / node.module.replace(".", "/")).is_dir()
            names |= {f"{node.module}.{alias.name}" if package else str(node.module) for alias in node.names}
    return frozenset(names)


@cache
def without_hints(tree: ast.Module) -> ast.Module:
    """The module without what only type checkers read."""
    kept = [node for node in tree.body if not (isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test))]
    return ast.Module(kept, [])


@cache
def read(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def parts_used(path: Path, above: str) -> set[str]:
    """The parts of a package that a module uses: ``above`` is the package with its dot, ``rannpde.pde.``."""
    names = imports(without_hints(read(path)))
    return {name.removeprefix(above).split(".")[0] for name in names if name.startswith(above)}


def at_the_top(tree: ast.Module) -> ast.Module:
    """The imports that run when the module loads."""
    return ast.Module([node for node in tree.body if isinstance(node, ast.Import | ast.ImportFrom)], [])


def test_imports_point_downwards():
    upwards = {}
    for path in MODULES:
        layer, tree = place(path, 0), read(path)
        used = {name.split(".")[1] for name in imports(tree) if name.startswith("rannpde.")} - {layer, "__version__"}
        if path.relative_to(ROOT).as_posix() in DRAWS:
            used -= {"plotting"}
        upwards[path] = used - BELOW[layer] - (set() if layer in FOUNDATION else FOUNDATION)
    assert not {path: wrong for path, wrong in upwards.items() if wrong}


def test_pictures_load_when_they_are_drawn():
    light = [path for path in MODULES if place(path, 0) not in ("plotting", "studies", "cli")]
    heavy = {path for path in light for name in imports(at_the_top(read(path))) if name.startswith("matplotlib")}
    assert not heavy


def test_inside_pde_imports_point_downwards():
    upwards = {}
    for path in INNER:
        part = place(path, 1)
        used = parts_used(path, "rannpde.pde.") - ANSWERS.get(path.relative_to(ROOT / "pde").as_posix(), set())
        allowed = BELOW_IN_PDE[part] | {part, "tolerance"}  # how a tolerance is divided is for all methods
        upwards[path] = used - allowed
    assert not {path: wrong for path, wrong in upwards.items() if wrong}


def test_inside_domains_imports_point_downwards():
    upwards = {}
    for path in SHAPES:
        part, tree = place(path, 1), without_hints(read(path))
        late = OPERATORS.get(path.relative_to(ROOT / "domains").as_posix(), set())
        for module, allowed in ((at_the_top(tree), BELOW_IN_DOMAINS[part]), (tree, BELOW_IN_DOMAINS[part] | late)):
            names = [name.split(".") for name in imports(module) if name.startswith("rannpde.domains.")]
            upwards[path, module] = {name[2] for name in names} - {part} - allowed
    assert not {path: wrong for (path, _), wrong in upwards.items() if wrong}


@pytest.mark.parametrize(
    ("package", "paths", "below"), [("cells", CELLS, BELOW_IN_CELLS), ("lines", LINES, BELOW_IN_LINES)]
)
def test_inside_a_method_imports_point_downwards(package, paths, below):
    upwards = {}
    for path in paths:
        part = place(path, 2)
        upwards[path] = parts_used(path, f"rannpde.pde.{package}.") - {part} - below[part]
    assert paths
    assert not {path: wrong for path, wrong in upwards.items() if wrong}


@pytest.mark.parametrize(
    "table",
    [BELOW, BELOW_IN_DOMAINS, BELOW_IN_PDE, BELOW_IN_CELLS, BELOW_IN_LINES],
    ids=["rannpde", "domains", "pde", "cells", "lines"],
)
def test_the_layers_have_an_order(table):
    """Each table is topologically sorted: what a part may import stands above it, so that no two import each other."""
    TopologicalSorter(table).prepare()
    parts = list(table)
    for number, part in enumerate(parts):
        assert table[part] <= set(parts[:number]), f"{part} may import {table[part] - set(parts[:number])} below it"


def test_no_modules_inside_pde_import_each_other_in_a_circle():
    names = {".".join(path.relative_to(ROOT.parent).with_suffix("").parts): path for path in INNER}
    graph = {name: imports(without_hints(read(path))) & set(names) for name, path in names.items()}
    for home, packages in ANSWERS.items():
        name = f"rannpde.pde.{home.removesuffix('.py')}"
        graph[name] = {used for used in graph[name] if used.split(".")[2] not in packages}
    TopologicalSorter(graph).prepare()  # raises CycleError, which names the circle


def test_no_name_of_a_package_shadows_a_module_of_it():
    """``import rannpde.pde.solve`` and ``rannpde.pde.solve`` must be the same thing, whatever was imported before."""
    shadowed = []
    for folder in PACKAGES:
        package = import_module(".".join(folder.relative_to(ROOT.parent).parts))
        inside = {p.stem for p in folder.glob("*.py")} | {p.parent.name for p in folder.glob("*/__init__.py")}
        for name in inside - {"__init__", "__main__"}:
            hidden = not isinstance(getattr(package, name, package), ModuleType)
            if hidden or name in getattr(package, "__all__", ()):
                shadowed.append(f"{package.__name__}.{name}")
    assert not shadowed


def named(tree: ast.Module) -> set[str]:
    """Classes of a module, and other names for types: ``Name = …``, neither a constant nor private."""
    classes = {node.name for node in tree.body if isinstance(node, ast.ClassDef)}
    targets = [node.targets[0] for node in tree.body if isinstance(node, ast.Assign)]
    targets += [node.target for node in tree.body if isinstance(node, ast.AnnAssign)]
    names = {target.id for target in targets if isinstance(target, ast.Name)}
    return classes | {name for name in names if name[0].isupper() and not name.isupper()}


def test_no_type_has_the_name_of_another():
    homes: dict[str, list[str]] = {}
    for path in MODULES:
        for name in named(read(path)):
            homes.setdefault(name, []).append(str(path.relative_to(ROOT)))
    assert not {name: found for name, found in homes.items() if len(found) > 1}


PROTOCOLS = {"DEVIATIONS", "chapter", "problem", "register", "study"}
"""What every module of a kind has: chapters of the report, problems of the zoo, groups of commands; type variables."""
WRAPPED = {"load", "reproduce"}
"""The public function, and what it stands on."""
WAITING = {
    "BLOCK",
    "CHECK_POINTS",
    "EVALUATIONS",
    "NEWTON_STEPS",
    "SIDE_SAMPLES",
    "build",
    "evaluate",
    "first_scales",
    "locate",
    "panels",
    "read",
    "table_of",
    "triangular_factor",
}
"""Names that parts of ``pde`` and ``theory`` still share with others. The list only shrinks: a name that is unique
again must leave it."""


def defined(tree: ast.Module) -> set[str]:
    """Public constants and functions of a module."""
    functions = {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
    assigned = [node for node in tree.body if isinstance(node, ast.Assign | ast.AnnAssign)]
    targets = [t for node in assigned for t in (node.targets if isinstance(node, ast.Assign) else [node.target])]
    constants = {one.id for target in targets for one in ast.walk(target) if isinstance(one, ast.Name)}
    return {name for name in functions | {c for c in constants if c.isupper()} if not name.startswith("_")} - {"T"}


def test_no_constant_or_function_has_the_name_of_another():
    homes: dict[str, list[str]] = {}
    for path in MODULES:
        for name in defined(read(path)) - PROTOCOLS - WRAPPED:
            homes.setdefault(name, []).append(path.relative_to(ROOT).as_posix())
    shared = {name: modules for name, modules in homes.items() if len(modules) > 1}
    assert not {name: modules for name, modules in shared.items() if name not in WAITING}
    assert not WAITING - set(shared), "these are unique now: take them off the list"


PRIVATE_WORDS = {"found", "place", "places"}
"""Names of variables that say nothing of what they hold: a result, roots, points, positions, regions, …"""


def test_variables_are_named_for_what_they_hold():
    names = {
        (path.relative_to(ROOT).as_posix(), node.lineno)
        for path in MODULES
        for node in ast.walk(read(path))
        if (isinstance(node, ast.Name) and node.id in PRIVATE_WORDS)
        or (isinstance(node, ast.arg) and node.arg in PRIVATE_WORDS)
    }
    assert not names
