"""A problem: fields, equations and conditions on a domain, independent of any method."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from rannpde.arrays import Array
from rannpde.domains.boundary.slits import Lip
from rannpde.domains.domain import Domain, SpaceTime
from rannpde.errors import choose, finite_points, require
from rannpde.pde.functional_values import Exterior, Surroundings
from rannpde.pde.functions import ExactSolution, State
from rannpde.pde.problem.checks import check_problem
from rannpde.pde.problem.components import in_components
from rannpde.pde.problem.conditions import (
    Data,
    Pairing,
    Periodic,
    bound_terms,
    condition_terms,
    equation_terms,
    naming,
    stated_conditions,
)
from rannpde.pde.problem.data import Variation
from rannpde.pde.problem.eigenvalue import GENERIC_EIGENVALUE, check_eigenvalue, split_parameters
from rannpde.pde.problem.evolution import Evolution
from rannpde.pde.problem.exact import exact_fields, exact_values_in_space
from rannpde.pde.problem.exterior import box_extent, exterior_values, with_surroundings
from rannpde.pde.problem.fingerprint import fingerprint_of
from rannpde.pde.problem.forms import in_time
from rannpde.pde.problem.inequalities import Inequality, inequalities, is_inequality
from rannpde.pde.problem.measurements import Measurement, measurement
from rannpde.pde.problem.output import Output, stated_outputs
from rannpde.pde.problem.output_checks import check_outputs
from rannpde.pde.problem.output_expression import OutputExpression, read_output
from rannpde.pde.problem.parabolic import Parabolic, vector_space
from rannpde.pde.problem.parametric_domain import ParametricDomain, domain_of_function
from rannpde.pde.problem.ranges import Range, stated_parameters
from rannpde.pde.problem.stating import (
    check_arguments,
    check_no_exterior,
    check_no_family,
    named_equations,
    state_in_space,
    state_with_functionals,
    stated_fields,
    take_from_guesses,
    take_over,
)
from rannpde.pde.problem.substitution import with_values, without_unknowns
from rannpde.pde.problem.unknown import AnyUnknown, check_unknown
from rannpde.pde.residual import Term, term_residual
from rannpde.pde.statement.divergence import DivergenceSystem, NoDivergenceForm, divergence_system
from rannpde.pde.statement.expansion import DivergenceForm, divergence_form
from rannpde.pde.statement.expression import Expression
from rannpde.pde.statement.quasilinear import QuasilinearSystem, quasilinear_system
from rannpde.pde.statement.reading import read
from rannpde.pde.statement.vocabulary import Vocabulary

Bounds = tuple[float | None, float | None]


@dataclass(frozen=True, eq=False)
class Problem:
    """Equations for fields on a domain, with named conditions.

    equations : one equation, a list, or name → equation; text (grammar in docs/solving.md) or SymPy
    domain : Interval, Box, Ball or SpaceTime; its coordinates are the names that derivatives use. A function of
        parameters, ``lambda r: Box(…) - Ball((0.5, 0.5), r)``, states a domain whose size or form they change
    conditions : name → On, Periodic or Data; in short, region → equation or several, coordinate → "periodic"; an
        obstacle is stated as {"interior": "u >= psi"} (docs/nonlinear.md)
    parameters : name → number, or a Range of them for the solutions at all of its values (docs/families.md)
    functions : name → callable of coordinate arrays
    fields : the unknown functions; read from their derivatives unless given. ``{"u": 2, "p": 1}`` states a vector u
        with the components u1 and u2: equations then use grad, div, sym, tr, I, … (docs/solving.md, vectors)
    definitions : name → expression of other names, such as ``{"eps": "sym(grad(u))"}``
    complex : whether all fields are complex; u is then u_re + i*u_im, with i the imaginary unit
    bounds : field → (lower, upper), None for no bound, which the solvers respect
    exact : field → formula or callable of points (M, n), for errors and pictures only
    incomplete : allow missing initial or boundary conditions
    unknown : name → Unknown (a number) or UnknownFunction, to be identified from Data (docs/inverse.md)
    eigenvalue : name of the number for which the homogeneous problem has solutions other than zero, for ``rp.eigen``
        (docs/spectrum.md); parameters may then be complex, such as ``{"i": 1j}``
    outputs : name → Output, the numbers that are wanted, with their errors (docs/answers.md)

    limits : terms that act where a declared bound is broken
    obstacles : every reason why it cannot be integrated in time, collected when it is stated; none if it can
    forms : the evolution that it is, if it is one, with the divergence form of its statement (True) or without
    parametric_domain : the domain as a function of parameters, where it was stated so; ``domain`` is the one at their
        numbers, or at the middle of their ranges
    groups : name of a vector or complex field → the names of its components, or of its real and imaginary part
    variation : where its data vary, if that can be known
    parabolic : the form that paths need, of a problem whose space is rp.Euclidean(d) (docs/many_dimensions.md)
    elliptic : the system in divergence form that a weak formulation integrates by parts, or why there is none

    >>> from rannpde.domains import Interval
    >>> problem = Problem("u_xx = -u", Interval(0, 1), {"boundary": "u = sin(x)"})
    >>> problem.fields, problem.linear
    (('u',), True)
    """

    equations: Any
    domain: Domain
    conditions: Mapping[str, Any] = field(default_factory=dict)
    parameters: Mapping[str, Any] = field(default_factory=dict)
    functions: Mapping[str, Callable[..., Any]] = field(default_factory=dict)
    fields: tuple[str, ...] = ()
    bounds: Mapping[str, Bounds] = field(default_factory=dict)
    exact: Mapping[str, Any] = field(default_factory=dict)
    name: str = ""
    incomplete: bool = False
    unknown: Mapping[str, AnyUnknown] = field(default_factory=dict)
    eigenvalue: str = ""
    outputs: Mapping[str, Output] = field(default_factory=dict)
    definitions: Mapping[str, str] = field(default_factory=dict, repr=False)
    complex: bool = False
    groups: Mapping[str, tuple[str, ...]] = field(default_factory=dict, repr=False)
    parametric_domain: ParametricDomain | None = field(default=None, repr=False)
    limits: tuple[Term, ...] = field(init=False, repr=False)
    obstacles: tuple[str, ...] = field(init=False, repr=False)
    forms: Mapping[bool, Evolution] = field(init=False, repr=False)
    variation: Variation | None = field(init=False, repr=False)
    elliptic: DivergenceSystem | NoDivergenceForm = field(init=False, repr=False)
    parabolic: Parabolic | None = field(init=False, repr=False, default=None)

    def __post_init__(self) -> None:
        if not isinstance(self.domain, Domain):
            self._make_domain()
        check_arguments(self)
        object.__setattr__(self, "conditions", stated_conditions(self.conditions))
        if self.outputs:
            object.__setattr__(self, "outputs", stated_outputs(self.outputs))
        if self.eigenvalue:
            check_eigenvalue(self)
        if vector_space(self.domain) is not None:
            require(not self.ranges, "parameters", sorted(self.ranges), "numbers in R^d, not ranges")
            state_in_space(self)
            return
        numbers, phasors = split_parameters(self.parameters) if self.eigenvalue else (self.parameters, {})
        object.__setattr__(self, "parameters", {**stated_parameters(numbers), **phasors})
        check_unknown(self.unknown, tuple(self.domain.names))
        check_no_family(self)
        named = named_equations(self.equations)
        if (isinstance(self.fields, Mapping) or self.definitions or self.complex) and not self.groups:
            lowered = in_components(self, named)
            for key, one in lowered.items():
                object.__setattr__(self, key, one)
            named = lowered["equations"]
        object.__setattr__(self, "equations", named)
        fields = stated_fields(self, named)
        object.__setattr__(self, "fields", fields)
        for name, parts in self.groups.items():
            require(set(parts) <= set(fields), f"groups[{name!r}]", parts, "names of fields")
        if self.unknown:
            take_from_guesses(self, self.at({}))
            return
        if self.eigenvalue:  # counted and checked with a number instead of the eigenvalue
            take_over(self, self.at_eigenvalue(GENERIC_EIGENVALUE))
            return
        check_problem(self)
        if self.functionals:
            state_with_functionals(self)
            return
        check_no_exterior(self)
        # statements are compiled here, once
        object.__setattr__(self, "limits", tuple(bound_terms(self.bounds, self.domain, self.vocabulary)))
        for key, one in zip(("obstacles", "forms"), in_time(self), strict=True):
            object.__setattr__(self, key, one)
        object.__setattr__(self, "variation", Variation.of(self))
        object.__setattr__(self, "elliptic", self._in_divergence_form(divergence_system))
        if isinstance(self.elliptic, NoDivergenceForm) and not isinstance(self.domain, SpaceTime):
            _ = self.quasilinear  # derived when the problem is stated, as every form of it
        check_outputs(self)

    def _make_domain(self) -> None:
        """Make the domain of a function of parameters at their numbers."""
        stated: Any = self.domain
        if callable(stated):
            require(isinstance(self.parameters, Mapping), "parameters", self.parameters, "a mapping of names")
            stated = domain_of_function(stated, self.parameters)
        if isinstance(stated, ParametricDomain):
            object.__setattr__(self, "parametric_domain", stated)
            object.__setattr__(self, "domain", stated.at(self.numbers))

    @cached_property
    def output_expressions(self) -> dict[str, OutputExpression]:
        """Output name → compiled expression."""
        return {name: read_output(output.expression, self.vocabulary) for name, output in self.outputs.items()}

    def _repr_latex_(self) -> str:
        """What a notebook shows: equations, domain and conditions as mathematics."""
        from rannpde.plotting.notebook import problem_latex  # loads when a notebook asks for it

        return problem_latex(self)

    def _in_divergence_form(self, make: Callable[..., Any]) -> Any:
        """The system that ``make`` derives from the equations, or why there is none."""
        try:
            return make(self.expressions, self.vocabulary, np.asarray(self.domain.bounds, dtype=float))
        except NoDivergenceForm as reason:
            return reason

    @cached_property
    def quasilinear(self) -> QuasilinearSystem | NoDivergenceForm:
        """The system of a non-linear problem in divergence form, or why there is none."""
        system: QuasilinearSystem | NoDivergenceForm = self._in_divergence_form(quasilinear_system)
        return system

    def at(self, values: Mapping[str, Any]) -> Problem:
        """Return the problem without unknowns and measurements.

        Numbers, and functions of points of their coordinates with derivatives, replace the unknowns; guesses replace
        those that are not given.
        """
        return without_unknowns(self, values)

    def at_eigenvalue(self, value: float) -> Problem:
        """Return the problem with a number instead of the eigenvalue, and 1 in that of complex parameters."""
        numbers = {name: 1.0 if isinstance(one, complex) else one for name, one in self.parameters.items()}
        return replace(self, parameters={**numbers, self.eigenvalue: float(value)}, eigenvalue="")

    @property
    def ranges(self) -> dict[str, Range]:
        """The parameters that have a range: the problem is a family where there are any."""
        return {name: value for name, value in self.parameters.items() if isinstance(value, Range)}

    @property
    def changing_domain(self) -> tuple[str, ...]:
        """The parameters with a range on which the domain depends."""
        names = () if self.parametric_domain is None else self.parametric_domain.names
        return tuple(name for name in self.ranges if name in names)

    @property
    def numbers(self) -> dict[str, float]:
        """Parameter → number, the middle of its range where it has one."""
        return {name: value.middle if isinstance(value, Range) else value for name, value in self.parameters.items()}

    def with_parameters(self, values: Mapping[str, float]) -> Problem:
        """The same problem with these values of some parameters."""
        return with_values(self, values)

    def words(self, fields: tuple[str, ...]) -> Vocabulary:
        """The vocabulary of statements about these fields."""
        time = "t" if isinstance(self.domain, SpaceTime) else None
        depends, numbers = {name: one.of for name, one in self.unknown.items()}, self.numbers
        if self.eigenvalue:  # it stays a symbol, and so do complex numbers
            depends |= {self.eigenvalue: ()} | {name: () for name, one in numbers.items() if isinstance(one, complex)}
            numbers = {name: one for name, one in numbers.items() if not isinstance(one, complex)}
        names = tuple(self.domain.names)
        return Vocabulary(names, time, fields, numbers, self.functions, depends, box_extent(self.domain))

    @cached_property
    def vocabulary(self) -> Vocabulary:
        """The meaning of the names in the statements of this problem."""
        return self.words(self.fields)

    @cached_property
    def expressions(self) -> dict[str, Expression]:
        """Equation name → compiled residual, with its exact linearisation."""
        expressions = {}
        for name, statement in self.equations.items():
            with naming(f"equation {name!r}"):
                expressions[name] = read(statement, self.vocabulary)
        return expressions

    @cached_property
    def interior(self) -> tuple[Term, ...]:
        """The loss terms J_PDE, one per equation."""
        return with_surroundings(equation_terms(self.expressions, self.domain), lambda: self.surroundings)

    @cached_property
    def constraints(self) -> tuple[Term, ...]:
        """The loss terms of the On and Data conditions, one per side."""
        return tuple(term for term in self._stated if set(term.expression.fields) & set(self.fields))

    @cached_property
    def slits(self) -> tuple[Lip, ...]:
        """The lips of slits on which conditions hold, each once."""
        lips = (term.region for term in self.constraints)
        return tuple({lip.name: lip for lip in lips if isinstance(lip, Lip)}.values())

    @cached_property
    def inequalities(self) -> tuple[Inequality, ...]:
        """Bounds of fields inside the domain, where equations hold with a reaction (docs/nonlinear.md)."""
        return inequalities(self.conditions, self.vocabulary) if self.parabolic is None else ()

    @cached_property
    def pins(self) -> tuple[Term, ...]:
        """Conditions on unknown functions alone: prior knowledge about them."""
        return tuple(term for term in self._stated if not set(term.expression.fields) & set(self.fields))

    @cached_property
    def _stated(self) -> tuple[Term, ...]:
        terms: list[Term] = []
        for name, condition in self.conditions.items():
            known = isinstance(condition, Periodic) or (self.unknown and isinstance(condition, Data))
            if not (known or is_inequality(condition)):
                terms += condition_terms(name, condition, self.domain, self.vocabulary)
        return with_surroundings(terms, lambda: self.surroundings)

    @cached_property
    def functionals(self) -> tuple[str, ...]:
        """Integrals and values at other points that equations and conditions contain, as text."""
        if self.parabolic is not None:
            return ()
        return tuple(one.text for term in self.terms for one in term.expression.functionals.values())

    @cached_property
    def exterior(self) -> tuple[Exterior, ...]:
        """The values of fields outside the domain, as conditions like ``{"t <= 0": "u = 1"}`` state them."""
        return exterior_values(self.conditions, self.domain, self.vocabulary)

    @cached_property
    def surroundings(self) -> Surroundings:
        """The values outside the domain that integrals and delays use."""
        names = tuple(self.domain.names)
        periodic = tuple(names.index(name) for name in self.periodic)
        return Surroundings(names, np.asarray(self.domain.bounds, dtype=float), self.exterior, periodic)

    @cached_property
    def measurements(self) -> tuple[Measurement, ...]:
        """The measurements from which the unknowns are identified."""
        data = {name: c for name, c in self.conditions.items() if isinstance(c, Data)} if self.unknown else {}
        return tuple(measurement(name, condition, self) for name, condition in data.items())

    @cached_property
    def terms(self) -> tuple[Term, ...]:
        """All sums of the loss."""
        return self.interior + self.constraints

    @cached_property
    def periodic(self) -> tuple[str, ...]:
        """The coordinates in which all fields are periodic: the features are then periodic too, exactly."""
        whole = [c for c in self.conditions.values() if isinstance(c, Periodic) and self._whole(c)]
        return tuple(c.coordinate for c in whole)

    @cached_property
    def pairings(self) -> tuple[Pairing, ...]:
        """Periodic conditions of some fields only."""
        some = {name: c for name, c in self.conditions.items() if isinstance(c, Periodic) and not self._whole(c)}
        axes = {name: self.domain.names.index(c.coordinate) for name, c in some.items()}
        orders = {name: {f: max(1, self.order(f, axes[name])) for f in c.fields or ()} for name, c in some.items()}
        return tuple(Pairing(name, c.coordinate, orders[name], c.weight) for name, c in some.items())

    def _whole(self, condition: Periodic) -> bool:
        return condition.fields is None or set(condition.fields) == set(self.fields)

    @cached_property
    def linear(self) -> bool:
        """Whether every term is affine in the fields."""
        return all(term.expression.linear for term in self.terms)

    def order(self, name: str, axis: int | None = None) -> int:
        """The highest derivative of a field in the equations, in all coordinates or along one axis."""
        return max(expression.order(name, axis) for expression in self.expressions.values())

    @property
    def jumping(self) -> tuple[str, ...]:
        """Equations with a flux that jumps: they hold beside the jump, and imply that the flux is continuous there."""
        return tuple(name for name, expression in self.expressions.items() if expression.jumps)

    @property
    def kinked(self) -> bool:
        """Whether an equation has jumps or kinks anywhere."""
        return any(expression.kinked for expression in self.expressions.values())

    @property
    def free_constants(self) -> tuple[str, ...]:
        """Fields that enter all equations and conditions by their derivatives only, so that a constant is left free."""
        plain = {jet.field for term in self.terms for jet in term.expression.jets if jet.order == 0}
        return tuple(name for name in self.fields if name not in plain)

    def divergence(self, equation: str) -> DivergenceForm:
        """An equation as source + Σ ∂_x flux, where it was stated so."""
        return divergence_form(choose("equation", equation, self.expressions), self.vocabulary)

    @cached_property
    def exact_solution(self) -> ExactSolution | None:
        """The exact solution, if one was given for every field."""
        return exact_fields(self)

    def exact_values(self, points: Array) -> Array:
        """The exact solution (M,) of a problem in R^d at rows (t, x_1, …, x_d)."""
        return exact_values_in_space(self, points)

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256 of what the equations and conditions say; functions of the user's count by their names."""
        return fingerprint_of(self)

    def residual(self, state: State, points: Array) -> dict[str, Array]:
        """Equation name → residual (M,) of these functions at points (M, n)."""
        points = finite_points("points", points, self.domain.dim)
        return {term.name: term_residual(term, state, self.vocabulary, points) for term in self.interior}
