"""The grammar of equations and of shapes: text → a small syntax tree, with the column of every node, and with limits.

    equation   = sum [ "=" sum ]
    sum        = product { ("+" | "-") product }
    product    = unary { ("*" | "/") unary }
    unary      = ("+" | "-") unary | power
    power      = atom [ ("**" | "^") unary ]
    atom       = number | name | name "(" list ")" | "[" list "]" | "(" sum ")" | choice | component
    component  = ( name | name "(" list ")" ) "[" whole number "]"
    choice     = "where" "(" inequality "," sum "," sum ")"
    inequality = sum ("<" | ">" | "<=" | ">=") sum

Text comes from strangers. Nothing here is executed, nothing is looked up: the tree holds numbers, names and
operators only, and text that is too long, too deep or has absurd numbers is refused before a tree exists.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import NoReturn

from rannpde.errors import InputError

LENGTH_LIMIT = 5000
"""Characters of an equation: two pages of formula; the longest of our own (a manufactured force) has 400."""
NESTING_LIMIT = 40
"""Levels of nesting: far from Python's limit of 1000 calls, of which SymPy needs a dozen per level."""
DIGITS_LIMIT = 25
"""Characters of a number: float64 has 17 digits, and room for a sign, a point and an exponent."""
DECIMAL_LIMIT = 300
"""Decimal exponent of a literal: float64 ends at 1e308, and SymPy computes 1e99999999 digit by digit."""

_TOKEN = re.compile(
    r"(?P<number>(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)"
    r"|(?P<type>np\.(?:float|int|uint)\d+(?=\())"  # NumPy's repr of a number, as f"u = {a!r}" writes it
    r"|(?P<name>[^\W\d]\w*)"
    r"|(?P<operator>\*\*|<=|>=|[-+*/^(),=<>\[\]])"
    r"|(?P<space>\s+)"
)
COMPARISONS = ("<", ">", "<=", ">=")


class StatementError(InputError):
    """An equation cannot be read. The message shows the text with a mark under the offending column."""


def fail(text: str, column: int, reason: str) -> NoReturn:
    """Raise a StatementError that points at the column (counted from 0 here, from 1 in the message)."""
    start = max(0, column - 50)
    excerpt = text[start : column + 50].replace("\n", " ")
    mark = " " * (column - start) + "^"
    raise StatementError(f"{reason} (column {column + 1})\n    {excerpt}\n    {mark}")


@dataclass(frozen=True)
class Number:
    column: int
    text: str


@dataclass(frozen=True)
class Name:
    column: int
    text: str


@dataclass(frozen=True)
class Call:
    column: int
    name: str
    arguments: tuple[Node, ...]


@dataclass(frozen=True)
class List:
    column: int
    items: tuple[Node, ...]


@dataclass(frozen=True)
class Negative:
    column: int
    operand: Node


@dataclass(frozen=True)
class Binary:
    column: int
    operator: str
    left: Node
    right: Node


@dataclass(frozen=True)
class Comparison:
    """The condition of ``where``, or a whole inequality; it stands nowhere else."""

    column: int
    operator: str
    left: Node
    right: Node


@dataclass(frozen=True)
class Index:
    """A component of a vector: ``x[1]`` is the first."""

    column: int
    operand: Node
    number: int


Node = Number | Name | Call | List | Negative | Binary | Comparison | Index


def parse(text: str) -> tuple[Node, Node | None]:
    """The two sides of an equation; the right one is None for a bare expression.

    >>> left, right = parse("u_t = nu*u_xx")
    >>> left, right.operator
    (Name(column=0, text='u_t'), '*')
    """
    if not isinstance(text, str):
        raise InputError(f"an equation is {type(text).__name__}, but must be text or a SymPy expression")
    parser = _Parser(text)
    left = parser.sum()
    right = parser.sum() if parser.accept("=") else None
    parser.finish("the equation")
    return left, right


def parse_inequality(text: str) -> Comparison:
    """An inequality between two expressions, as those of shapes.

    >>> parse_inequality("x**2 + y**2 < 1").operator
    '<'
    """
    if not isinstance(text, str):
        raise InputError(f"an inequality is {type(text).__name__}, but must be text, e.g. 'x**2 + y**2 < 1'")
    parser = _Parser(text)
    comparison = parser.comparison("an inequality is needed, as x**2 + y**2 < 1")
    parser.finish("the inequality")
    return comparison


def names(node: Node) -> list[Name]:
    """Every name in the tree that is not called, in order of appearance."""
    in_tree: list[Name] = []
    stack: list[Node] = [node]
    while stack:
        node = stack.pop()
        if isinstance(node, Name):
            in_tree.append(node)
        stack.extend(children(node))
    return sorted(in_tree, key=lambda name: name.column)


def children(node: Node) -> tuple[Node, ...]:
    """The nodes directly below, left to right."""
    match node:
        case Call(arguments=below) | List(items=below):
            return below
        case Negative(operand=operand) | Index(operand=operand):
            return (operand,)
        case Binary(left=left, right=right) | Comparison(left=left, right=right):
            return (left, right)
    return ()


def _tokens(text: str) -> list[tuple[str, str, int]]:
    tokens, position = [], 0
    while position < len(text):
        match = _TOKEN.match(text, position)
        if match is None:
            fail(
                text,
                position,
                f"the character {text[position]!r} has no meaning in an equation{_remedy(text[position])}",
            )
        kind = str(match.lastgroup)
        if kind == "number":
            _check_number(text, match.group(), position)
        if kind not in ("space", "type"):
            tokens.append((kind, match.group(), position))
        position = match.end()
    return [*tokens, ("end", "end of text", len(text))]


def _remedy(character: str) -> str:
    remedies = {".": "; write sin(x), not np.sin(x)", "∇": "; write grad(u), div(…) or laplace(u)"}
    return remedies.get(character, "")


def _check_number(text: str, digits: str, position: int) -> None:
    if len(digits) > DIGITS_LIMIT:
        fail(text, position, f"a number of {len(digits)} digits, more than {DIGITS_LIMIT}; refused")
    exponent = digits.lower().partition("e")[2]
    if exponent and abs(int(exponent)) > DECIMAL_LIMIT:
        fail(text, position, f"a number with the exponent {exponent}, beyond ±{DECIMAL_LIMIT}; refused")


class _Parser:
    """Recursive descent; one method per rule of the grammar."""

    def __init__(self, text: str) -> None:
        if len(text) > LENGTH_LIMIT:
            raise StatementError(f"an equation has {len(text)} characters, more than {LENGTH_LIMIT}; refused")
        self.text, self.tokens, self.position, self.depth = text, _tokens(text), 0, 0

    @property
    def kind(self) -> str:
        return self.tokens[self.position][0]

    @property
    def token(self) -> str:
        return self.tokens[self.position][1]

    @property
    def column(self) -> int:
        return self.tokens[self.position][2]

    def accept(self, *operators: str) -> str | None:
        """The operator at hand, consumed, if it is one of these."""
        if self.kind == "operator" and self.token in operators:
            self.position += 1
            return self.tokens[self.position - 1][1]
        return None

    def expect(self, operator: str) -> None:
        if self.accept(operator) is None:
            self.refuse(repr(operator))

    def finish(self, what: str) -> None:
        if self.kind != "end":
            self.refuse(f"the end of {what}")

    def refuse(self, expected: str) -> NoReturn:
        if self.kind == "operator" and self.token in COMPARISONS:
            fail(self.text, self.column, "a comparison stands as the first argument of where(a < b, then, else) only")
        fail(self.text, self.column, f"expected {expected} but found {self.token!r}{self._product_remedy()}")

    def _product_remedy(self) -> str:
        """A hint to write * where two factors follow each other without it, or for two equality signs; else empty."""
        kind, before, _ = self.tokens[max(self.position - 1, 0)]
        if self.token == "=" == before:
            return "; an equation has one '='"
        if self.position == 0 or not (kind in ("number", "name") or before == ")"):
            return ""
        if kind == "number" and self.token == "j":
            return f"; the imaginary unit is i, so write {before}*i, with complex=True"
        if kind == "name" and self.kind in ("number", "name"):
            return f"; a product is written {before}*{self.token}, a function {before}({self.token})"
        if self.kind in ("number", "name") or self.token == "(":
            return f"; a product is written with *, as {before}*{self.token}"
        return ""

    def sum(self) -> Node:
        node = self.product()
        while (column := self.column) >= 0 and (operator := self.accept("+", "-")):
            node = Binary(column, operator, node, self.product())
        return node

    def product(self) -> Node:
        node = self.unary()
        while (column := self.column) >= 0 and (operator := self.accept("*", "/")):
            node = Binary(column, operator, node, self.unary())
        return node

    def unary(self) -> Node:
        self.depth += 1  # every nesting passes through here: brackets, signs and exponents
        if self.depth > NESTING_LIMIT:
            fail(self.text, self.column, f"nested deeper than {NESTING_LIMIT} levels; refused")
        column = self.column
        if self.accept("-"):
            node: Node = Negative(column, self.unary())
        elif self.accept("+"):
            node = self.unary()
        else:
            node = self.power()
        self.depth -= 1
        return node

    def power(self) -> Node:
        base, column = self.atom(), self.column
        if self.accept("**", "^"):
            return Binary(column, "**", base, self.unary())
        return base

    def atom(self) -> Node:
        kind, token, column = self.tokens[self.position]
        if kind == "number":
            self.position += 1
            return Number(column, token)
        if kind == "name":
            self.position += 1
            if not self.accept("("):
                return self.component(Name(column, token))
            return self.choice(column) if token == "where" else self.component(Call(column, token, self.items(")")))
        if self.accept("["):
            return List(column, self.items("]"))
        if self.accept("("):
            node = self.sum()
            self.expect(")")
            return node
        return self.refuse("a number, a name or a bracket")

    def component(self, node: Node) -> Node:
        """x[1] where a bracket follows, the node itself otherwise."""
        if not self.accept("["):
            return node
        kind, token, _ = self.tokens[self.position]
        if kind != "number" or not token.isdigit():
            self.refuse("the number of a component")
        self.position += 1
        self.expect("]")
        return Index(node.column, node, int(token))

    def choice(self, start: int) -> Call:
        """where(a < b, then, else), after its opening bracket."""
        condition = self.comparison("where begins with a comparison, as in where(x < 1/2, then, else)")
        self.expect(",")
        branches = self.items(")")
        if len(branches) != 2:
            fail(self.text, start, f"where takes a comparison and two values, not {len(branches)}")
        return Call(start, "where", (condition, *branches))

    def comparison(self, otherwise: str) -> Comparison:
        """a < b; what to say where there is none."""
        left, column = self.sum(), self.column
        operator = self.accept(*COMPARISONS)
        if operator is None:
            fail(self.text, column, otherwise)
        return Comparison(column, operator, left, self.sum())

    def items(self, end: str) -> tuple[Node, ...]:
        """The list up to the closing bracket, which is consumed."""
        entries = [self.sum()]
        while self.accept(","):
            entries.append(self.sum())
        self.expect(end)
        return tuple(entries)
