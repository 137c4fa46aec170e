"""Functions with kinks and jumps: abs, sign, max, min, where; what their derivatives are, and when there is none.

SymPy's own Max and Abs compare and simplify their arguments, at a cost that grows like the square of their number, and
answer with complex conjugates where they do not know a sign. Ours are real, take two arguments, and are only
differentiated and evaluated:

    |g|' = sign(g) g',    max(a, b)' = step(a - b) a' + step(b - a) b',    sign(g)' = 2 δ(g) g' .

δ(g) is a distribution. No function has it as its value, so that ``settle`` leaves it out where its factor vanishes on
g = 0, as in (max(u, 0)²)'', and refuses the statement otherwise.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from math import log
from typing import Any

import sympy
from sympy.core.function import AppliedUndef

from rannpde.grammar import StatementError


class Real(sympy.Function):  # type: ignore[misc, unused-ignore]  # SymPy has no types
    """Abstract: a real function that prints as the word of the language that makes it."""

    is_real = True
    word = ""

    def _sympystr(self, printer: Any) -> str:
        return f"{self.word}({', '.join(printer.doprint(argument) for argument in self.args)})"


class Kinked(Real):
    """Abstract: a function that is not smooth where its level is zero."""

    @property
    def level(self) -> sympy.Expr:
        """The expression on whose zeros it jumps or has a kink."""
        return self.args[0]

    @property
    def sides(self) -> tuple[sympy.Expr, sympy.Expr]:
        """The expressions that it equals where the level is positive, and where it is negative."""
        raise NotImplementedError


class Absolute(Kinked):
    """|g|."""

    word = "abs"
    is_nonnegative = True

    @property
    def sides(self) -> tuple[sympy.Expr, sympy.Expr]:
        return self.args[0], -self.args[0]

    @classmethod
    def eval(cls, g: sympy.Expr) -> sympy.Expr | None:
        return abs(g) if g.is_Number else None

    def fdiff(self, argindex: int = 1) -> sympy.Expr:
        return Sign(self.args[0])


MOST_EXPONENT = log(sys.float_info.max)
"""Number beyond which e to its power is no floating-point number; SymPy would compute with as many bits as it has."""


class Exponential(Real):
    """e^g, left alone: SymPy's own takes exp(1e4 x - 1e4) for exp(-1e4) exp(1e4 x), zero times infinity in floats."""

    word = "exp"
    is_positive = True

    @classmethod
    def eval(cls, g: sympy.Expr) -> sympy.Expr | None:
        if not g.is_Number:
            return None
        if g.is_finite and abs(g) > MOST_EXPONENT:
            return sympy.oo if g > 0 else sympy.Integer(0)
        return sympy.exp(g)

    def fdiff(self, argindex: int = 1) -> sympy.Expr:
        return self


class Sign(Kinked):
    """-1, 0 or 1."""

    word = "sign"
    sides = sympy.Integer(1), sympy.Integer(-1)

    @classmethod
    def eval(cls, g: sympy.Expr) -> sympy.Expr | None:
        return sympy.sign(g) if g.is_Number else None

    def fdiff(self, argindex: int = 1) -> sympy.Expr:
        return 2 * Delta(self.args[0], sympy.Integer(0))


class Step(Kinked):
    """1 where g > 0, 0 where g < 0, and ½ between, so that the two slopes of a kink are shared."""

    word = "step"
    sides = sympy.Integer(1), sympy.Integer(0)
    is_nonnegative = True

    @classmethod
    def eval(cls, g: sympy.Expr) -> sympy.Expr | None:
        return (sympy.sign(g) + 1) / 2 if g.is_Number else None

    def fdiff(self, argindex: int = 1) -> sympy.Expr:
        return Delta(self.args[0], sympy.Integer(0))


class Delta(Kinked):
    """The derivative of that order of δ(g): zero wherever a function can be evaluated."""

    word = "δ"
    sides = sympy.Integer(0), sympy.Integer(0)

    @classmethod
    def eval(cls, g: sympy.Expr, order: sympy.Expr) -> sympy.Expr | None:
        if g.is_Number and g.is_nonzero:
            return sympy.Integer(0)
        return Delta(-g, order) if order == 0 and g.could_extract_minus_sign() else None  # it is even

    def fdiff(self, argindex: int = 1) -> sympy.Expr:
        return Delta(self.args[0], self.args[1] + 1)


class Extreme(Kinked):
    """Abstract: one of two expressions, by the order of their values."""

    step = 1

    @classmethod
    def eval(cls, a: sympy.Expr, b: sympy.Expr) -> sympy.Expr | None:
        if a == b:
            return a
        upper, lower = (a, b)[:: cls.step]
        return (a if upper >= lower else b) if a.is_Number and b.is_Number else None

    def fdiff(self, argindex: int = 1) -> sympy.Expr:
        one, other = self.args if argindex == 1 else self.args[::-1]
        return Step(self.step * (one - other))

    @property
    def level(self) -> sympy.Expr:
        return self.args[0] - self.args[1]

    @property
    def sides(self) -> tuple[sympy.Expr, sympy.Expr]:
        return self.args[:: self.step]


class Larger(Extreme):
    """max(a, b)."""

    word = "max"


class Smaller(Extreme):
    """min(a, b)."""

    word, step = "min", -1


class Where(Kinked):
    """a where g > 0, b elsewhere; every comparison is written so."""

    word = "where"

    @classmethod
    def eval(cls, g: sympy.Expr, a: sympy.Expr, b: sympy.Expr) -> sympy.Expr | None:
        if a == b:
            return a
        return (a if g > 0 else b) if g.is_Number else None

    @property
    def sides(self) -> tuple[sympy.Expr, sympy.Expr]:
        return self.args[1], self.args[2]

    def slope(self, slopes: Sequence[sympy.Expr]) -> sympy.Expr:
        """Return the derivative from those of g, a and b: again a choice, so that the branch not taken may be
        undefined."""
        g, a, b = self.args
        jump = Delta(g, sympy.Integer(0)) * (a - b) * slopes[0] if slopes[0] != 0 else sympy.Integer(0)
        return Where(g, slopes[1], slopes[2]) + jump

    def _eval_derivative(self, symbol: sympy.Symbol) -> sympy.Expr:
        return self.slope([sympy.diff(part, symbol) for part in self.args])

    def _sympystr(self, printer: Any) -> str:
        g, a, b = (printer.doprint(argument) for argument in self.args)
        return f"where({g} > 0, {a}, {b})"


JUMPING = (Sign, Step, Delta, Where)
"""The functions that jump; the others have kinks."""


KINKED = (Kinked,)
"""The abstract function of all these, as SymPy's searches take it."""


def largest(*arguments: sympy.Expr) -> sympy.Expr:
    """max of any number of expressions, in pairs of pairs, so that hundreds nest a few levels only."""
    return _paired(Larger, arguments)


def smallest(*arguments: sympy.Expr) -> sympy.Expr:
    """min of any number of expressions."""
    return _paired(Smaller, arguments)


def _paired(function: Callable[..., sympy.Expr], arguments: Sequence[sympy.Expr]) -> sympy.Expr:
    while len(arguments) > 1:
        pairs = [function(*arguments[k : k + 2]) for k in range(0, len(arguments) - 1, 2)]
        arguments = [*pairs, *arguments[2 * len(pairs) :]]
    return arguments[0]


def kink_levels(formula: sympy.Expr) -> Iterator[sympy.Expr]:
    """The expressions whose zeros are kinks or jumps of the formula.

    >>> x, y = sympy.symbols("x y", real=True)
    >>> list(kink_levels(largest(x, y) + Sign(x - 1)))
    [x - 1, x - y]
    """
    for node in sympy.preorder_traversal(own_kinks(formula)):
        if isinstance(node, Kinked):
            yield node.level


def choose_where(operator: str, left: sympy.Expr, right: sympy.Expr, a: sympy.Expr, b: sympy.Expr) -> sympy.Expr:
    """a where the comparison holds, b elsewhere."""
    if operator in ("<=", ">="):  # not (left > right), not (left < right)
        return choose_where({"<=": ">", ">=": "<"}[operator], left, right, b, a)
    return Where(right - left if operator == "<" else left - right, a, b)


# ------------------------------------------------------------------------------------------ from SymPy's own

_OWN: dict[Any, Callable[..., sympy.Expr]] = {
    sympy.exp: Exponential,
    sympy.Abs: Absolute,
    sympy.sign: Sign,
    sympy.Heaviside: lambda g, middle=None: Step(g),
    sympy.DiracDelta: lambda g, order=sympy.S.Zero: Delta(g, order),
    sympy.Max: largest,
    sympy.Min: smallest,
    sympy.Piecewise: lambda *pieces: _from_pieces(pieces),
}


def own_kinks(expression: sympy.Expr) -> sympy.Expr:
    """The expression with SymPy's kinks as ours: a user's SymPy holds them, and √(g²) becomes Abs by itself."""
    if not expression.has(*_OWN):
        return expression
    if isinstance(expression, sympy.Piecewise):
        return _from_pieces([(own_kinks(value), condition) for value, condition in expression.args])
    below = [own_kinks(part) if isinstance(part, sympy.Expr) else part for part in expression.args]
    return _OWN.get(expression.func, expression.func)(*below)


def _from_pieces(pieces: Sequence[Any]) -> sympy.Expr:
    (value, condition), *others = pieces
    if condition == True or not others:  # noqa: E712, SymPy's true is no bool
        return value
    if not isinstance(condition, (sympy.Gt, sympy.Lt, sympy.Ge, sympy.Le)):
        raise StatementError(f"the condition {condition} of a Piecewise must be one comparison, such as x < 1")
    return choose_where(condition.rel_op, condition.lhs, condition.rhs, value, _from_pieces(others))


# ------------------------------------------------------------------------------------------------ distributions


def settle(
    derivative: sympy.Expr, stated: sympy.Expr, variable: sympy.Symbol, jumps: list[sympy.Expr] | None = None
) -> sympy.Expr:
    """A derivative without its δ(g), which must have factors that vanish on g = 0; StatementError otherwise.

    jumps : where what is differentiated is a flux, a list that takes the g of the coordinates alone across which it
        jumps; the flux is then the same on both sides of g = 0, and the derivative holds beside it
    """
    for delta in sorted(derivative.atoms(Delta), key=str):
        mark = sympy.Dummy(real=True)
        marked = derivative.xreplace({delta: mark})
        factor = sympy.diff(marked, mark)
        simple = delta.args[1] == 0 and not factor.has(mark)
        if simple and jumps is not None and not delta.args[0].has(AppliedUndef) and is_flux(stated):
            jumps += [] if _vanishes(factor, delta.args[0]) else [delta.args[0]]
        elif not simple or not _vanishes(factor, delta.args[0]):
            level = shown(delta.args[0])
            raise StatementError(
                f"the derivative in {variable} of {shown(stated)} is a distribution: it jumps where {level} = 0, and "
                f"an equation at points cannot hold δ({level}); write a flux that jumps where a formula of the "
                f"coordinates vanishes as div(k*grad(u)), a smooth step such as tanh(({level})/width), or cut the "
                "domain there and join two problems by conditions"
            )
        derivative = marked.xreplace({mark: sympy.Integer(0)})
    return derivative


def is_flux(stated: sympy.Expr) -> bool:
    """Whether an expression holds first derivatives of fields, and no higher ones: its normal part is continuous."""
    orders = [len(node.variables) for node in stated.atoms(sympy.Derivative) if isinstance(node.expr, AppliedUndef)]
    return bool(orders) and max(orders) == 1


def _vanishes(factor: sympy.Expr, g: sympy.Expr) -> bool:
    """Return whether the factor is zero on g = 0, as far as substituting the root of a linear g, or 0 for g, can
    show."""
    jets = factor.atoms(AppliedUndef, sympy.Derivative) | g.atoms(AppliedUndef, sympy.Derivative)
    table = {jet: sympy.Dummy(real=True) for jet in jets}
    # derivatives as whole nodes first: xreplace would otherwise reach the function inside them
    whole = {jet: name for jet, name in table.items() if isinstance(jet, sympy.Derivative)}
    factor, g = (part.xreplace(whole).xreplace(table) for part in (factor, g))
    factor = _any_jump(factor)
    if factor.xreplace({g: sympy.Integer(0), -g: sympy.Integer(0)}) == 0:
        return True
    for symbol in sorted(g.free_symbols, key=str):
        slope = sympy.diff(g, symbol)
        if slope.is_number and slope != 0:
            root = -g.xreplace({symbol: sympy.Integer(0)}) / slope
            return bool(factor.xreplace({symbol: root}) == 0)
    return False


def _any_jump(factor: sympy.Expr) -> sympy.Expr:
    """The factor with an unknown for every jump: sign(g) has no value on g = 0 by which δ(g) could be multiplied."""
    if not factor.has(*JUMPING):
        return factor
    if isinstance(factor, (Sign, Step)):
        return sympy.Dummy(real=True)
    below = [_any_jump(part) for part in factor.args]
    if isinstance(factor, Where):
        return below[2] + sympy.Dummy(real=True) * (below[1] - below[2])
    return factor.func(*below)


def shown(expression: sympy.Expr) -> str:
    """The expression with u for u(t, x) and u_x for its derivative, cut to a length that a person reads."""
    table = {node: sympy.Symbol(node.func.__name__) for node in expression.atoms(AppliedUndef)}
    whole = {}
    for node in expression.atoms(sympy.Derivative):
        if node.expr in table:
            whole[node] = sympy.Symbol(f"{table[node.expr]}_{''.join(str(v) for v in node.variables)}")
    text = str(expression.xreplace(whole).xreplace(table))
    return text if len(text) <= 80 else text[:77] + "…"
