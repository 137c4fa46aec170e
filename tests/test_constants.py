"""Empirical numbers of the solvers: each has its reason beside it, and there are not more of them than today.

What is empirical is decided by the number alone, so that nobody can argue: whole numbers are sizes (points, steps,
cells, limits), of which more cost time and lose little; numbers below 1e-8 or above 1e8 guard against rounding and
overflow; parameters of the problems of the zoo belong to these problems. All other numbers, thresholds, shares and
ratios, are empirical. Where one stands in the body of a function, without a name, it is a literal: 0, 1/2, 1 and 2 are
none, which most formulas need, nor are ranges of random numbers, nor whole numbers and their quotients with a
denominator of at most 8, of which quadrature, interpolation and orders are made.
"""

import ast
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[1] / "src" / "rannpde" / "pde"
MODULES = sorted(ROOT.rglob("*.py"))
MOST = {"empirical": 80, "size": 344, "guard": 61, "literal": 12}
"""Numbers in all of ``pde``, by kind; the aim is fewer empirical ones than these, and no literals."""
PLAIN = (0.0, 0.5, 1.0, 2.0)
"""Numbers that belong to formulas."""
LARGEST_DENOMINATOR = 8
"""Of the quotients of whole numbers that belong to formulas: a third, three quarters."""


def is_number(node: ast.expr | None) -> bool:
    """Whether an expression is made of numbers alone."""
    match node:
        case ast.Constant(value=value):
            return isinstance(value, int | float) and not isinstance(value, bool)
        case ast.UnaryOp(operand=operand):
            return is_number(operand)
        case ast.BinOp(left=left, right=right):
            return is_number(left) and is_number(right)
        case ast.Call(func=ast.Name()):  # an object of ours; np.logspace(…) is numbers
            return False
        case ast.Tuple(elts=parts) | ast.List(elts=parts) | ast.Dict(values=parts) | ast.Call(args=parts):
            return bool(parts) and all(map(is_number, parts))
    return False


def kind_of(node: ast.expr | None) -> str:
    """What a number is: a size, a guard or empirical."""
    every = [one.value for one in ast.walk(node or ast.Tuple([])) if isinstance(one, ast.Constant)]
    values = [one for one in every if isinstance(one, int | float)]  # not the keys of a table
    if all(isinstance(one, int) for one in values):
        return "size"
    return "guard" if all(one == 0 or not 1e-8 < abs(one) < 1e8 for one in values) else "empirical"


def assigned(node: ast.stmt) -> tuple[str, ast.expr | None]:
    """The name that a statement binds, and to what; an empty name for other statements."""
    match node:
        case (
            ast.Assign(targets=[ast.Name(id=name)], value=value) | ast.AnnAssign(target=ast.Name(id=name), value=value)
        ):
            return name, value
    return "", None


def pairs(node: ast.stmt) -> list[tuple[str, ast.expr | None]]:
    """The same for statements that bind several names at once, ``A, B = 1, 0.5``."""
    match node:
        case ast.Assign(targets=[ast.Tuple(elts=names)], value=ast.Tuple(elts=values)) if len(names) == len(values):
            return [(name.id, one) for name, one in zip(names, values, strict=True) if isinstance(name, ast.Name)]
    return [assigned(node)]


def is_text(node: ast.stmt | None) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)


@cache
def read(path: Path) -> ast.Module:
    return ast.parse(path.read_text("utf-8"))


@cache
def numbers(tree: ast.Module) -> dict[str, tuple[bool, str]]:
    """Name of a number → whether its reason stands beside it, and its kind: module constants, fields of settings."""
    found = {}
    for node, after in zip(tree.body, [*tree.body[1:], None], strict=True):
        for name, value in pairs(node):
            if name.isupper() and is_number(value):
                told = is_text(after) or bool(pairs(after)[0][0] if after is not None else "")
                found[name] = told, kind_of(value)
        if isinstance(node, ast.ClassDef) and node.name.endswith(("Tuning", "Settings", "Control")):
            told = ast.get_docstring(node) or ""
            for part in node.body:
                name, value = assigned(part)
                if name and is_number(value):
                    found[f"{node.name}.{name}"] = name in told, kind_of(value)
    return found


def is_disguised(node: ast.AST) -> bool:
    """Whether an expression is a decimal written by whole numbers, ``7 / 10`` or ``10**-3``."""
    match node:
        case ast.BinOp(left=ast.Constant(value=int()), op=ast.Div(), right=ast.Constant(value=int() as below)):
            return below > LARGEST_DENOMINATOR
        case ast.BinOp(left=ast.Constant(value=int()), op=ast.Pow(), right=ast.UnaryOp(op=ast.USub())):
            return isinstance(node.right.operand, ast.Constant)
    return False


@cache
def literals(tree: ast.Module) -> tuple[tuple[int, float], ...]:
    """Line and value of the empirical numbers in bodies of functions, decimals and quotients of whole numbers."""
    bodies = [
        part
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.Lambda)
        for part in (node.body if isinstance(node.body, list) else [node.body])
    ]
    inside = {id(node): node for part in bodies for node in ast.walk(part)}  # once, also in nested functions
    random = {
        id(below)
        for node in inside.values()
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "uniform"
        for below in ast.walk(node)
    }
    values = {
        key: node for key, node in inside.items() if isinstance(node, ast.Constant) and isinstance(node.value, float)
    }
    quotients = [(node.lineno, eval(ast.unparse(node))) for node in inside.values() if is_disguised(node)]
    return tuple(
        (node.lineno, node.value)
        for key, node in values.items()
        if key not in random and node.value not in PLAIN and kind_of(node) == "empirical"
    ) + tuple(quotients)


def test_every_number_has_its_reason():
    """A constant is followed by a sentence about it (of several in a row, the last); a setting is in its docstring."""
    found = {(path, name): told for path in MODULES for name, (told, _) in numbers(read(path)).items()}
    assert not [where for where, told in found.items() if not told]


def test_there_are_not_more_numbers_than_today():
    counts: dict[str, dict[str, int]] = {}
    for path in MODULES:
        package = path.relative_to(ROOT).parts[0].removesuffix(".py")
        if package == "zoo":
            continue
        own = counts.setdefault(package, dict.fromkeys(MOST, 0))
        own["literal"] += len(literals(read(path)))
        for _, kind in numbers(read(path)).values():
            own[kind] += 1
    for name, own in sorted(counts.items(), key=lambda one: (-one[1]["empirical"], -one[1]["literal"])):
        if any(own.values()):
            print(f"{name:<20}" + "".join(f"{kind:>12} {count:3}" for kind, count in own.items()))
    totals = {kind: sum(own[kind] for own in counts.values()) for kind in MOST}
    print(totals)
    assert all(totals[kind] <= most for kind, most in MOST.items())


def test_numbers_are_told_apart():
    kinds = {
        "12": "size",
        "(4, 8)": "size",
        "1e-9": "guard",
        "1e300": "guard",
        "0.5": "empirical",
        "(1e-9, 0.1)": "empirical",
    }
    assert {text: kind_of(ast.parse(text, mode="eval").body) for text in kinds} == kinds


def test_literals_are_numbers_of_bodies_that_belong_to_no_formula():
    """Not in signatures, at the top of a module, in ranges of random numbers or in texts; those of a lambda once."""
    text = """
SIZE = 0.3
def one(x, share=0.3):
    "0.3"
    y = x > 0.3 * 0.5 + rng.uniform(0.1, 0.4) or x > 1e-12
    return lambda z: z < -1e-3 * 2.0
def two(x):
    y = x > 3 * x ** (2 / 3) / 4
    return x > 7 / 10 or (
        y < 10**-3
    )
"""
    assert sorted(literals(ast.parse(text))) == [(5, 0.3), (6, 1e-3), (9, 0.7), (10, 1e-3)]
