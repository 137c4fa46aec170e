"""Write the picture of the layers in docs/architecture.md from the imports: python docs/_ext/layers.py."""

from __future__ import annotations

import ast
from graphlib import TopologicalSorter
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "architecture.md"
BEGIN, END = "<!-- layers: written by docs/_ext/layers.py -->\n", "<!-- end of layers -->"


LATE = "cli"
"""Its commands import what they need when they are called, so that the command starts at once."""


def imported(path: Path, package: str, late: bool) -> set[str]:
    """Parts of a package that a module imports when it is loaded; with ``late`` also inside functions."""
    found = set()
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for node in ast.walk(tree) if late else tree.body:
        if isinstance(node, ast.ImportFrom) and node.module is not None:
            names = [node.module] if node.module != package else [f"{package}.{one.name}" for one in node.names]
            found |= {name.split(".")[package.count(".") + 1] for name in names if name.startswith(package + ".")}
    return found


def parts(package: str) -> dict[str, set[str]]:
    """Part of a package → parts of it that it imports."""
    folder = ROOT / "src" / Path(*package.split("."))
    graph: dict[str, set[str]] = {}
    for path in sorted(folder.rglob("*.py")):
        part = path.relative_to(folder).parts[0].removesuffix(".py")
        if part not in ("__init__", "__main__"):
            graph.setdefault(part, set()).update(imported(path, package, part == LATE) - {part, "__version__"})
    known = set(graph)
    return {part: used & known for part, used in graph.items()}


def table(package: str) -> str:
    """The parts from the lowest to the highest, each with all that it imports."""
    graph = parts(package)
    depth: dict[str, int] = {}
    for part in TopologicalSorter(graph).static_order():  # a cycle raises
        depth[part] = 1 + max((depth[one] for one in graph[part]), default=0)
    order = {part: number for number, part in enumerate(sorted(graph, key=lambda one: (depth[one], one)))}
    lines = [f"| `{package}` | imports |", "|---|---|"]
    for part in sorted(graph, key=order.__getitem__):
        used = ", ".join(f"`{one}`" for one in sorted(graph[part], key=order.__getitem__))
        lines.append(f"| `{part}` | {used or '–'} |")
    return "\n".join(lines) + "\n"


def picture() -> str:
    """What stands between the marks."""
    return f"{table('rannpde')}\n{table('rannpde.domains')}"


def main() -> None:
    text = PAGE.read_text(encoding="utf-8")
    before, rest = text.split(BEGIN)
    PAGE.write_text(before + BEGIN + picture() + END + rest.split(END)[1], encoding="utf-8")


if __name__ == "__main__":
    main()
