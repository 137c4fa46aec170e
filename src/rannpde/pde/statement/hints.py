"""Hints for words that an equation cannot use: the word of this language for them, or where to declare them.

People write equations as in a textbook, in NumPy or in another tool. What they mean is mostly clear.
"""

from __future__ import annotations

import re

from rannpde.errors import suggestion
from rannpde.pde.statement.vocabulary import CONSTANTS, FUNCTIONS, INTEGRALS, OPERATORS, Vocabulary

SYNONYMS = {
    "ln": "log",
    "laplacian": "laplace",
    "gradient": "grad",
    "nabla": "grad",
    "divergence": "div",
    "diff": "d",
    "arcsin": "asin",
    "arccos": "acos",
    "arctan": "atan",
    "arcsinh": "asinh",
    "π": "pi",
    "Pi": "pi",
    "PI": "pi",
}
_WORDS = {*FUNCTIONS, *OPERATORS, *INTEGRALS}


def unknown_name(word: str, words: Vocabulary, more: tuple[str, ...] = ()) -> str:
    """The reason why a name is refused, with what to write instead; ``more`` names are known.

    >>> unknown_name("uxx", Vocabulary(("x",), None, ("u",)))
    "the name 'uxx' is unknown; a derivative is written u_xx, or d(u, x, x)"
    >>> unknown_name("k", Vocabulary(("x",), None, ("u",)))
    "the name 'k' is unknown; give its value by parameters={'k': …}; known: pi, u, x, and functions"
    """
    start = f"the name {word!r} is unknown"
    if word in SYNONYMS:
        return f"{start}; did you mean {SYNONYMS[word]!r}?"
    derivative = _derivative(word, words)
    if derivative:
        return f"{start}; {derivative}"
    known = {*words.known(), *more}
    near = suggestion(word, known).partition("known: ")[0]
    hint = f"{near}or " if near else ""
    listed = ", ".join(sorted(known - _WORDS))
    return f"{start}; {hint}give its value by parameters={{{word!r}: …}}; known: {listed}, and functions"


def unknown_function(word: str, words: Vocabulary, more: tuple[str, ...] = ()) -> str:
    """The reason why a name that is called is refused, with what to write instead.

    >>> unknown_function("ln", Vocabulary(("x",), None, ("u",)))
    "the function 'ln' is unknown; did you mean 'log'?"
    """
    start = f"the function {word!r} is unknown"
    if word in SYNONYMS:
        return f"{start}; did you mean {SYNONYMS[word]!r}?"
    known = {*words.known(), *more} - set(words.parameters) - set(CONSTANTS)
    return f"{start}; {suggestion(word, known)}; a function of your own is given by functions={{{word!r}: …}}"


def no_derivative(statements: list[str]) -> str:
    """The reason why equations without a derivative of an unknown function are refused."""
    return (
        f"the equations {statements} have no derivative of an unknown function; derivatives are written u_x, u_xx, "
        "d(u, x), grad(u), laplace(u); of an equation without any, name the unknown by fields=('u',)"
    )


def _derivative(word: str, words: Vocabulary) -> str:
    """A hint for du, d2u, ∂u, uxx and Δu; empty where the word is none of these."""
    for field in words.fields:
        if re.fullmatch(rf"[d∂]\d?{re.escape(field)}", word):
            known = ", ".join(f"{field}_{name}" for name in words.coordinates)
            return f"derivatives are written {known}, and in the direction of the normal dn({field})"
        if word == f"Δ{field}":
            return f"write laplace({field})"
        letters = word.removeprefix(field)
        if letters != word and set(letters) <= set(words.coordinates):
            return f"a derivative is written {field}_{letters}, or d({field}, {', '.join(letters)})"
    return ""
