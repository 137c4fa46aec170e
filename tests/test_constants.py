"""Empirical numbers of the solvers: each has its reason beside it, and there are not more of them than today."""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1] / "src" / "rannpde" / "pde"
MODULES = sorted(ROOT.rglob("*.py"))
MOST = 590
"""Numbers in all of ``pde``, limits of the language and tables of digits included; the aim is 80 empirical ones."""


def is_number(node: ast.expr | None) -> bool:
    """Whether an expression is made of numbers alone."""
    match node:
        case ast.Constant(value=value):
            return isinstance(value, int | float) and not isinstance(value, bool)
        case ast.UnaryOp(operand=operand):
            return is_number(operand)
        case ast.BinOp(left=left, right=right):
            return is_number(left) and is_number(right)
        case ast.Tuple(elts=parts) | ast.List(elts=parts) | ast.Dict(values=parts) | ast.Call(args=parts):
            return bool(parts) and all(map(is_number, parts))
    return False


def assigned(node: ast.stmt) -> tuple[str, ast.expr | None]:
    """The name that a statement binds, and to what; an empty name for other statements."""
    match node:
        case (
            ast.Assign(targets=[ast.Name(id=name)], value=value) | ast.AnnAssign(target=ast.Name(id=name), value=value)
        ):
            return name, value
    return "", None


def is_text(node: ast.stmt | None) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)


def numbers(tree: ast.Module) -> dict[str, bool]:
    """Name of a number → whether its reason stands beside it: module constants, and fields of settings."""
    found = {}
    for node, after in zip(tree.body, [*tree.body[1:], None], strict=True):
        name, value = assigned(node)
        if name.isupper() and is_number(value):
            found[name] = is_text(after) or bool(assigned(after)[0] if after is not None else "")
        if isinstance(node, ast.ClassDef) and node.name.endswith(("Tuning", "Settings")):
            told = ast.get_docstring(node) or ""
            for part in node.body:
                name, value = assigned(part)
                if name and is_number(value):
                    found[f"{node.name}.{name}"] = name in told
    return found


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_every_number_has_its_reason(path):
    """A constant is followed by a sentence about it (of several in a row, the last); a setting is in its docstring."""
    found = numbers(ast.parse(path.read_text("utf-8")))
    assert not [name for name, told in found.items() if not told]


def test_there_are_not_more_numbers_than_today():
    counts: dict[str, int] = {}
    for path in MODULES:
        package = path.relative_to(ROOT).parts[0].removesuffix(".py")
        counts[package] = counts.get(package, 0) + len(numbers(ast.parse(path.read_text("utf-8"))))
    print({name: count for name, count in sorted(counts.items(), key=lambda one: -one[1]) if count})
    assert sum(counts.values()) <= MOST
