r"""Statements as mathematics: the text of an equation → TeX for matplotlib's mathtext → an SVG for a page.

The tree of our own grammar is written out, so that nothing is reordered or simplified: the reader sees what was stated.
Not sympy.latex: it writes ``b*u + a - u/2*2`` as a + bu - u.
SymPy statements are written from their expanded residual. What mathtext cannot set stays plain text.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterable
from html import escape
from typing import Any

import matplotlib as mpl
import sympy
from matplotlib.font_manager import FontProperties
from matplotlib.mathtext import MathTextParser, math_to_image

from rannpde.grammar import (
    Binary,
    Call,
    Comparison,
    Index,
    List,
    Name,
    Negative,
    Node,
    Number,
    parse,
)
from rannpde.pde.problem.problem import Problem
from rannpde.pde.statement.vocabulary import Vocabulary
from rannpde.plotting.style import STYLE

_SMALL = re.findall(
    r"\w+",
    """alpha beta gamma delta zeta eta theta iota kappa lambda mu nu xi pi rho sigma tau upsilon
    chi psi omega""",
)
_LARGE = re.findall(r"\w+", "Gamma Delta Theta Lambda Xi Pi Sigma Upsilon Phi Psi Omega")
_LETTERS = {name: f"\\{name}" for name in (*_SMALL, *_LARGE)}
_LETTERS |= {"lam": r"\lambda", "eps": r"\varepsilon", "epsilon": r"\varepsilon", "phi": r"\varphi"}
_FUNCTIONS = {name: f"\\{name}" for name in ("sin", "cos", "tan", "sinh", "cosh", "tanh", "exp", "log", "max", "min")}
_FUNCTIONS |= {"asin": r"\arcsin", "acos": r"\arccos", "atan": r"\arctan"}
_COMPARISONS = {"<": "<", ">": ">", "<=": r"\leq", ">=": r"\geq"}
_SUM, _PRODUCT, _POWER, _ATOM = 1, 2, 3, 4
"""Precedence of operators: brackets go around an expression whose operator has a lower one than its context."""
_MATH = MathTextParser("path")


def symbol(name: str) -> str:
    r"""A name as TeX: Greek letters by their names, digits at the end and what follows an underscore as subscripts.

    >>> symbol("nu"), symbol("x1"), symbol("speed"), symbol("u")
    ('\\nu', 'x_{1}', '\\mathrm{speed}', 'u')
    """
    parts = re.fullmatch(r"([^\W\d_]+)(\d*)_?(\w*)", name)
    if parts is None:
        return r"\mathrm{" + name.replace("_", r"\_") + "}"
    stem, digits, rest = parts.groups()
    letter = _LETTERS.get(stem) or (stem if len(stem) == 1 else r"\mathrm{" + stem + "}")
    word = rest if len(rest) < 2 else r"\mathrm{" + rest.replace("_", r"\_") + "}"
    below = ",".join(part for part in (digits, word) if part)
    return f"{letter}_{{{below}}}" if below else letter


def inline_equation(name: str) -> str:
    """A name as matplotlib sets it within a label.

    >>> inline_equation("rho")
    '$\\\\rho$'
    """
    return f"${symbol(name)}$"


def tex(statement: str, words: Vocabulary) -> str:
    r"""The TeX of a text of our grammar, without the dollar signs.

    >>> tex("u_t + u*u_x = nu*u_xx", Vocabulary(("t", "x"), "t", ("u",), {"nu": 0.1}))
    'u_{t} + u\\, u_{x} = \\nu\\, u_{xx}'
    >>> tex("-laplace(u) + u**2 = sin(pi*x)/2", Vocabulary(("x",), None, ("u",)))
    '-\\Delta u + u^{2} = \\frac{\\sin(\\pi\\, x)}{2}'
    """
    sides = [_write(side, words)[0] for side in parse(statement) if side is not None]
    return " = ".join(sides) if len(sides) == 2 else sides[0]


def typeset_equations(problem: Problem) -> dict[str, str]:
    """Equation name → TeX; a bare expression is set to zero."""
    equations = {}
    for name, statement in problem.equations.items():
        written = tex(statement, problem.vocabulary) if isinstance(statement, str) else _expanded(problem, name)
        equations[name] = written if "=" in written else f"{written} = 0"
    return equations


def _expanded(problem: Problem, name: str) -> str:
    """A SymPy statement by its expanded residual, with the jets u_xx as symbols."""
    expression, words = problem.expressions[name], problem.vocabulary
    names = {}
    for jet_symbol, jet in expression.symbols.items():
        letters = "".join(symbol(axis) * order for axis, order in zip(words.coordinates, jet.index, strict=True))
        names[jet_symbol] = sympy.Symbol(symbol(jet.field) + (f"_{{{letters}}}" if letters else ""))
    return str(sympy.latex(expression.formula.xreplace(names), fold_short_frac=False)) + " = 0"


# --------------------------------------------------------------------------------------------- the tree, written


def _write(node: Node, words: Vocabulary) -> tuple[str, int]:
    """TeX, and the precedence of its outermost operator."""
    match node:
        case Number(text=text):
            written = _number(text)
            return written, _PRODUCT if "cdot" in written else _POWER if "^" in written else _ATOM
        case Name(text=text):
            return _name(text, words), _ATOM
        case Negative(operand=operand):
            return f"-{_within(operand, words, _PRODUCT)}", _SUM
        case List(items=items):
            return "(" + ",\\, ".join(_write(item, words)[0] for item in items) + ")", _ATOM
        case Binary():
            return _binary(node, words)
        case Comparison(operator=operator, left=left, right=right):
            return f"{_write(left, words)[0]} {_COMPARISONS[operator]} {_write(right, words)[0]}", _SUM
        case Call():
            return _call(node, words)
        case Index(operand=operand, number=number):
            return f"{_within(operand, words, _ATOM)}_{{{number}}}", _ATOM


def _within(node: Node, words: Vocabulary, least: int) -> str:
    """An operand, in brackets where its precedence is below ``least``."""
    text, precedence = _write(node, words)
    return text if precedence >= least else rf"\left({text}\right)"


def _number(text: str) -> str:
    mantissa, marked, exponent = text.lower().partition("e")
    if not marked:
        return text
    power = f"10^{{{int(exponent)}}}"
    return power if float(mantissa) == 1 else rf"{mantissa} \cdot {power}"


def _name(text: str, words: Vocabulary) -> str:
    split = words.subscript(text)
    if split is not None and split[0] in words.fields:
        return f"{symbol(split[0])}_{{{''.join(map(symbol, split[1]))}}}"
    return symbol(text)


def _binary(node: Binary, words: Vocabulary) -> tuple[str, int]:
    left, right = node.left, node.right
    if node.operator == "+":
        return f"{_within(left, words, _SUM)} + {_within(right, words, _SUM)}", _SUM
    if node.operator == "-":
        return f"{_within(left, words, _SUM)} - {_within(right, words, _PRODUCT)}", _SUM
    if node.operator == "/":
        return rf"\frac{{{_write(left, words)[0]}}}{{{_write(right, words)[0]}}}", _POWER
    if node.operator == "**":
        return f"{_within(left, words, _ATOM)}^{{{_exponent(right, words)}}}", _POWER
    last = _within(right, words, _PRODUCT)
    sign = r"\cdot " if last[0].isdigit() else r"\, "
    if isinstance(left, Negative):  # -a*b is read as (-a)*b, and written without the brackets
        return f"-{_within(left.operand, words, _PRODUCT)}{sign}{last}", _SUM
    return f"{_within(left, words, _PRODUCT)}{sign}{last}", _PRODUCT


def _exponent(node: Node, words: Vocabulary) -> str:
    """Quotients with a slash: a fraction in an exponent is too small to read."""
    if isinstance(node, Negative):
        return f"-{_exponent(node.operand, words)}"
    if isinstance(node, Binary) and node.operator == "/":
        above = node.left.operand if isinstance(node.left, Negative) else node.left
        sign = "-" if isinstance(node.left, Negative) else ""
        return f"{sign}{_within(above, words, _PRODUCT)}/{_within(node.right, words, _POWER)}"
    return _write(node, words)[0]


def _call(node: Call, words: Vocabulary) -> tuple[str, int]:
    arguments = node.arguments
    match node.name, arguments:
        case "sqrt", (argument,):
            return rf"\sqrt{{{_write(argument, words)[0]}}}", _ATOM
        case "abs", (argument,):
            return rf"\left|{_write(argument, words)[0]}\right|", _ATOM
        case "laplace", (argument,):
            return rf"\Delta {_within(argument, words, _ATOM)}", _PRODUCT
        case "grad", (argument,):
            return rf"\nabla {_within(argument, words, _ATOM)}", _PRODUCT
        case "div", (argument,):
            return rf"\nabla \cdot {_within(argument, words, _ATOM)}", _PRODUCT
        case "dn", (argument,):
            return rf"\partial_{{n}} {_within(argument, words, _ATOM)}", _PRODUCT
        case "dot", (argument, other):
            return rf"{_within(argument, words, _POWER)} \cdot {_within(other, words, _POWER)}", _PRODUCT
        case "d", (argument, *axes):
            return rf"\partial_{{{_directions(axes)}}} {_within(argument, words, _ATOM)}", _PRODUCT
        case "integral", (argument, Name(text=variable), lower, upper):
            ends = rf"_{{{_write(lower, words)[0]}}}^{{{_write(upper, words)[0]}}}"
            return rf"\int{ends} {_within(argument, words, _PRODUCT)}\, d{symbol(variable)}", _PRODUCT
        case "where", (condition, then, other):
            known = [_write(part, words)[0] for part in (then, condition, other)]
            return rf"\left[{known[0]}\ \mathrm{{if}}\ {known[1]},\ \mathrm{{else}}\ {known[2]}\right]", _ATOM
        case _:
            inside = ",\\, ".join(_write(part, words)[0] for part in arguments)
            name = _FUNCTIONS.get(node.name) or (r"\nabla \cdot " if node.name == "div" else _name(node.name, words))
            return (rf"{name}\left({inside}\right)" if "frac" in inside else f"{name}({inside})"), _ATOM


def _directions(axes: Iterable[Node]) -> str:
    """``xx`` for the arguments x, 2 of ``d``."""
    letters: list[str] = []
    for axis in axes:
        if isinstance(axis, Number) and letters:
            letters += [letters[-1]] * (int(float(axis.text)) - 1)
        elif isinstance(axis, Name):
            letters.append(symbol(axis.text))
    return "".join(letters)


# ------------------------------------------------------------------------------------------------ in figures, on pages


def length(written: str, size: float = 11.0) -> float | None:
    """Inches that TeX takes in a line of a figure at that size of letters; None where mathtext cannot set it."""
    with mpl.rc_context({"mathtext.fontset": STYLE["mathtext.fontset"]}):
        try:
            return float(_MATH.parse(f"${written}$", dpi=72, prop=FontProperties(size=size))[0]) / 72
        except (ValueError, RuntimeError):
            return None


def as_svg(written: str, words: str, size: float = 13.0) -> str:
    """An ``<svg>`` of TeX with the words for those who cannot see it; the words alone where it cannot be set."""
    if length(written) is None:
        return f"<code>{escape(words)}</code>"
    buffer = io.BytesIO()
    look: dict[Any, Any] = {
        "mathtext.fontset": STYLE["mathtext.fontset"],
        "svg.fonttype": "path",
        "svg.hashsalt": words,
    }
    look |= {"figure.facecolor": "none", "savefig.facecolor": "none"}
    with mpl.rc_context(look):
        math_to_image(f"${written}$", buffer, FontProperties(size=size), dpi=72, format="svg")
    text = buffer.getvalue().decode()
    text = text[text.index("<svg") :]
    text = re.sub(r"<metadata>.*?</metadata>|<style[^>]*>.*?</style>", "", text, flags=re.DOTALL)
    # every formula brings outlines of its letters under names that the others use too
    prefix = f"m{abs(hash_of(words)):x}-"
    text = re.sub(r'\bid="', f'id="{prefix}', text)
    text = re.sub(r'(?:xlink:)?href="#', f'href="#{prefix}', text)
    opening, body = text.split(">", 1)
    box = re.search(r'viewBox="([^"]*)"', opening)
    width, height = (float(part) for part in (box[1] if box else "0 0 100 20").split()[2:])
    width, height = width + 2, height + 2  # the box is rounded to whole points, and letters touch it
    # one em of the page is the size of the letters: formulas grow with the reader's letters
    return (
        f'<svg class="math" role="img" aria-label="{escape(words)}" viewBox="-1 -1 {width:g} {height:g}" '
        f'style="width: {width / size:.3f}em; height: {height / size:.3f}em">{body}'
    )


def hash_of(words: str) -> int:
    """A number that is the same in every run, unlike Python's own hash of text."""
    number = 0
    for letter in words:
        number = (number * 131 + ord(letter)) % (1 << 61)
    return number
