"""The numbers of the method of cells that were found by trying, in one place, each with its reason.

"Measured" means: on the problems of benchmarks/solve.py, unless something else is named.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class CellsTuning:
    """Functions of a cell, weights of rows, and when to cut.

    columns : cosines, sines and 1 per polynomial of the degree; fewer lose digits, more cost time
    frequency : largest frequency on [-1, 1] over the degree, by dimension; 0.2 to 0.25 gave most digits on a line and
        in the plane; in space degrees are low, and with 0.2 smooth solutions in a cube ended at 2e-8, with 0.14 at 2e-9
    spread : each iteration multiplies the frequency by a number between these: two iterations share less of their error
    shake : cuts are moved by up to this share of the cells beside them, by dimension, each iteration elsewhere:
        likewise; in the plane 0.12 takes twice the time of 0.06, since the largest cell decides, and makes slivers at
        curved sides
    first_cuts : cuts along each axis that any first mesh has, by dimension; a single box cannot be shaken
    more_nodes : nodes per axis beyond the degree
    cutoff : singular functions below it, relative to 1, are left out, and what they would add to a solution is lost, in
        its second derivatives times the fourth power of the degree; 1e-13 costs a digit or two, 3e-16 is rounding
    face_weight, condition_weight : of rows of joints and conditions over those of equations, by dimension; 10 to 100
        differ little in the plane, 1 and 1000 lose a factor of 3; in space a cell has more joints than functions that
        could satisfy them all: with 10 the error of Poisson 3d-CG is three times that with 1
    corner : power of the distance from a re-entrant corner by which rows weigh less near it, twice that for conditions:
        behind a backward step 0 leaves ten times the error of 0.5, 1 twice as much, 1.5 loses the corner
    fill : points per function in a cell that the boundary cuts
    coarser : by how much the degree of traces on joints is below that of cells, by dimension: in space traces cost
        most, and one degree less changed no error in its second digit
    trace_cutoff : the same as ``cutoff`` for the polynomials on a face that the boundary cuts, and on an interface;
        anything from 1e-13 to 1e-7 will do
    strongest : an equation in a cell of strong diffusion, beside one of weak, weighs by their ratio but this at most
    leaving, loose : exponent of the weight of values prescribed where a flow leaves through a layer thinner than the
        cell, and the misfit above which it is used: layers of 1e-4 are then found cell by cell and not smeared
    degree, alike : polynomial degrees at tol = 1 and what each digit of tol adds; an iteration with fewer than
        ``alike`` times the cells of the one before takes one more or less: of two with the same degree the functions
        differ, but not what both lack, and the estimate is too low (17 times behind a backward step)
    most_degree : largest, by dimension, beyond which rounding says more
    per_cell : change of the data, over half their range, that a half-cell of degree 1 may hold
    mark, worst : cells are cut where the residual is above mark · tol and above ``worst`` of the largest; ``mark``
        falls when nothing is left to cut and iterations still differ, by ``boldest`` of the largest residual at most
    share : estimate over difference of two iterations; two independent errors of a size differ by √2 of it
    cornered : the same for flows and other systems round re-entrant corners, for re-entrant edges of solids, and where
        interfaces cross: behind a step errors were three and four times the difference of the last two iterations, at
        an edge twice, at crossings up to seven times
    trust, least : where the later iteration leaves a smaller residual, the estimate of its error is smaller too, by
        ``trust`` times that ratio but by ``least`` at most, of a march by ``least_march``
    lenient, veto : residual of a cell, and relative residual on fresh points, above which nothing is called solved
    veto_march : the same for a march, whose polynomials have ∂_t to fewer digits than values
    stall, stuck : what four times as many cells must gain where residuals are small; what 16 times as many must gain of
        residuals that are not: these fall with the size of cells even where there is no solution
    tail, direction : a cell is cut across an axis whose coefficients beyond ``tail`` of the degree hold at least
        ``direction`` of the largest such tail; one of space that the boundary cuts, across axes along which the second
        derivative is at least ``bend`` of the largest
    most_cells, most_passes : where it ends, by dimension
    newton_steps : most steps on one mesh
    corrections, correction, slow : in a step of a march at most; they end at this share of its tolerance; one that
        gains less than ``slow`` asks for a new factor, or a shorter step
    vain : a shorter step that leaves more than this of the error of a longer one tells that it is one of space
    worth : steps must be left for longer ones to be worth their new factors, which cost about eight steps
    many_stages : steps of a smaller tolerance have five stages, others three
    first_level : the first step of a first march is 2 to the minus this of the time
    loosest, loose_share, time_share, tighter : tolerance of steps in the first iteration; over the residual of the
        iteration before (at 0.03 iterations round 17 discs differed by their steps in time, and one more was needed);
        over the wanted error; and by how much each iteration is tighter than the one before once space is resolved
    """

    columns: float = 1.3
    frequency: tuple[float, float, float] = (0.2, 0.2, 0.14)
    spread: tuple[float, float] = (0.8, 1.2)
    shake: tuple[float, float, float] = (0.2, 0.06, 0.06)
    first_cuts: tuple[int, int, int] = (1, 1, 0)
    more_nodes: int = 4
    cutoff: float = 1e-15
    face_weight: tuple[float, float, float] = (10.0, 10.0, 1.0)
    condition_weight: tuple[float, float, float] = (10.0, 10.0, 1.0)
    corner: float = 0.5
    fill: float = 2.5
    coarser: tuple[int, int, int] = (0, 0, 1)
    trace_cutoff: float = 1e-9
    strongest: float = 1e6
    leaving: float = 2.0
    loose: float = 0.3
    degree: tuple[float, float] = (7.0, 0.8)
    alike: float = 1.25
    most_degree: tuple[int, int, int] = (20, 16, 9)
    per_cell: float = 0.5
    mark: float = 20.0
    worst: float = 0.02
    boldest: float = 0.06
    share: float = 0.7
    cornered: float = 3.0
    trust: float = 3.0
    least: float = 0.02
    least_march: float = 0.3
    lenient: float = 1e-3
    veto: float = 1e-2
    veto_march: float = 0.1
    stall: float = 0.7
    stuck: float = 0.4
    tail: float = 0.6
    direction: float = 0.1
    bend: float = 0.3
    most_cells: tuple[int, int, int] = (4000, 1500, 300)
    most_passes: int = 30
    newton_steps: int = 25
    corrections: int = 10
    correction: float = 0.05
    slow: float = 0.4
    vain: float = 0.8
    worth: int = 16
    many_stages: float = 1e-6
    first_level: int = 2
    loosest: float = 1e-3
    loose_share: float = 0.003
    time_share: float = 0.3
    tighter: float = 4.0
