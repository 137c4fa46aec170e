"""Weight laws: samples against their distribution functions, densities against numerical normalisation.

Every Kolmogorov–Smirnov test has a fixed seed and level 1e-4; about 25 are made, so a false alarm after a change of the
random stream has probability 0.0025.
"""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from scipy.integrate import quad

from helpers import EPS
from rannpde.errors import InputError
from rannpde.network import Gaussian, HeavyTailed, Uniform, WeightLaw
from rannpde.network.laws import BoxUniform, FewCoordinates, IntegerFrequencies

LEVEL = 1e-4
LAWS = [HeavyTailed(1.0, 2.0), HeavyTailed(None, 2.0), Gaussian(3.0), Gaussian(3.0, bias_scale=0.5), Uniform(2.0)]


def follows(sample, distribution) -> bool:
    return stats.kstest(sample, distribution.cdf).pvalue > LEVEL


@pytest.mark.parametrize("law", LAWS, ids=repr)
def test_shapes_protocol_and_reproducibility(law):
    weights, biases = law.sample(width=11, dim=3, rng=7)
    assert weights.shape == (3, 11)
    assert biases.shape == (11,)
    again = law.sample(width=11, dim=3, rng=np.random.default_rng(7))
    assert np.array_equal(weights, again[0])
    assert np.array_equal(biases, again[1])
    assert law.log_density(weights, biases).shape == (11,)
    assert isinstance(law, WeightLaw)


@pytest.mark.parametrize(("time_decay", "space_decay", "dim"), [(0.6, 0.7, 2), (1.0, 1.5, 3), (3.0, 4.0, 6)])
def test_heavy_tailed_margins(time_decay, space_decay, dim):
    d = dim - 1
    weights, biases = HeavyTailed(time_decay, space_decay).sample(width=20_000, dim=dim, rng=1)
    freedom = 2 * time_decay - 1
    assert follows(weights[0] * np.sqrt(freedom), stats.t(freedom))
    assert follows(biases, stats.cauchy())
    # |a|²/(1+|a|²) is Beta(d/2, λ - d/2), and each coordinate is a t with 2λ - d degrees of freedom
    squared = np.square(weights[1:]).sum(axis=0)
    assert follows(squared / (1 + squared), stats.beta(d / 2, space_decay - d / 2))
    freedom = 2 * space_decay - d
    assert follows(weights[-1] * np.sqrt(freedom), stats.t(freedom))


def test_gaussian_and_uniform_margins():
    weights, biases = Gaussian(10.0, bias_scale=2.0).sample(width=20_000, dim=2, rng=2)
    assert follows(weights[1], stats.norm(scale=10.0))
    assert follows(biases, stats.norm(scale=2.0))
    weights, biases = Uniform(3.0).sample(width=20_000, dim=2, rng=3)
    assert follows(weights[0], stats.uniform(-3, 6))
    assert follows(biases / np.abs(weights).sum(axis=0), stats.uniform(-1, 2))


def test_uniform_ridges_cross_the_box():
    weights, biases = Uniform(5.0).sample(width=5_000, dim=4, rng=4)
    # w·z + b changes its sign between the two corners at which it is extreme
    reach = np.abs(weights).sum(axis=0)
    assert ((biases - reach) * (biases + reach) <= 0).all()


@pytest.mark.parametrize("space_decay", [0.9, 1.5, 3.0])
def test_normalising_constant_against_quadrature(space_decay):
    """C_π for d = 1, each factor by numerical integration."""
    time = quad(lambda s: (1 + s * s) ** -0.8, -np.inf, np.inf, epsrel=1e-12, limit=200)[0]
    space = quad(lambda a: (1 + a * a) ** -space_decay, -np.inf, np.inf, epsrel=1e-12, limit=200)[0]
    constant = np.exp(HeavyTailed(0.8, space_decay).log_normaliser(2))
    assert constant == pytest.approx(time * space * np.pi, rel=2e-12, abs=0)  # what quad was asked for, twice


@pytest.mark.parametrize("law", LAWS, ids=repr)
def test_density_is_normalised(law):
    """∫ density = 1 on R² × R, by importance sampling with a wide Student law; five standard errors (odds 6e-7)."""
    proposal = HeavyTailed(0.75, 0.75) if law != LAWS[1] else HeavyTailed(None, 1.5)
    weights, biases = proposal.sample(width=400_000, dim=2, rng=5)
    ratio = np.exp(law.log_density(weights, biases) - proposal.log_density(weights, biases))
    assert abs(ratio.mean() - 1) < 5 * ratio.std() / np.sqrt(ratio.size)


def test_density_against_known_formulas():
    weights, biases = np.array([[0.3, 2.0], [-1.0, 0.5]]), np.array([0.7, -4.0])
    expected = stats.norm(scale=3).logpdf(weights).sum(axis=0) + stats.norm(scale=3).logpdf(biases)
    np.testing.assert_allclose(Gaussian(3.0).log_density(weights, biases), expected, rtol=8 * EPS)
    expected = np.log((1 / 4) ** 2 / (2 * 1.3)), -np.inf  # the second bias lies beyond |w|₁ = 2.5
    np.testing.assert_allclose(Uniform(2.0).log_density(weights, biases), expected, rtol=8 * EPS)


@given(st.floats(-10, 0.5), st.integers(1, 6))
def test_decays_that_cannot_be_normalised_are_refused(decay, d):
    with pytest.raises(InputError, match=r"time_decay is .* > 1/2"):
        HeavyTailed(decay, d)
    with pytest.raises(InputError, match=r"space_decay is .*> d/2"):
        HeavyTailed(1.0, max(0.5 * d, 0.1)).sample(width=3, dim=d + 1 if d > 0 else 2, rng=0)


@pytest.mark.parametrize("bad", [0.0, -1.0, np.nan, np.inf])
def test_bad_scales_are_refused(bad):
    for law in (Gaussian, Uniform):
        with pytest.raises(InputError, match=r"scale is .*finite number > 0"):
            law(bad)
    with pytest.raises(InputError, match="bias_scale"):
        Gaussian(1.0, bias_scale=bad)


def test_bad_sizes_are_refused():
    with pytest.raises(InputError, match="width is 0"):
        Gaussian(1.0).sample(width=0, dim=2, rng=0)
    with pytest.raises(InputError, match=r"dim is 1.*time_decay=None"):
        HeavyTailed(1.0, 1.0).sample(width=2, dim=1, rng=0)


# -------------------------------------------------------------------------------------- laws for problems on boxes


def test_ridges_cross_the_box_and_scales_are_kept():
    weights, biases = BoxUniform((2.0, 0.1)).sample(2000, 2, rng=0)
    assert (np.abs(biases) <= np.abs(weights).sum(axis=0)).all()
    # Kolmogorov–Smirnov at level 1e-4, fixed seed
    assert stats.kstest(weights[1] / 0.1, stats.uniform(-1, 2).cdf).pvalue > 1e-4


@pytest.mark.parametrize("law", [BoxUniform((1.5, 0.5)), FewCoordinates((1.5, 0.5))])
def test_densities_integrate_to_one(law):
    """E[1/π] over the support is its volume: for the dense law ∫∫ 2(|w₁|+|w₂|) dw."""
    weights, biases = law.sample(40_000, 2, rng=0)
    inverse = np.exp(-law.log_density(weights, biases))
    assert np.isfinite(inverse).all()
    dense = (weights != 0).all(axis=0)
    volume = np.mean(inverse * dense)  # support of the dense part: 4 s₁ s₂ · 2(s₁/2 + s₂/2)
    wanted = 4 * 1.5 * 0.5 * (1.5 + 0.5)
    spread = np.std(inverse * dense) / np.sqrt(len(inverse))
    assert abs(volume - wanted) < 5 * spread  # false alarm 6e-7
    assert np.isneginf(law.log_density(np.full((2, 1), 9.0), np.zeros(1))).all()


def test_few_coordinates_are_seen():
    weights, _ = FewCoordinates((1.0,) * 5).sample(5000, 5, rng=0)
    counts = np.bincount((weights != 0).sum(axis=0), minlength=6)
    assert counts[0] == 0
    shares = 1 / np.arange(1, 6)
    wanted = 5000 * shares / shares.sum()
    assert stats.chisquare(counts[1:], wanted).pvalue > 1e-4  # ∝ 1/k; false alarm 1e-4, fixed seed


def test_whole_frequencies_have_the_period_of_the_box():
    law = IntegerFrequencies((1.0, 4.0), (1,))
    weights, biases = law.sample(200, 2, rng=0)
    assert np.allclose(weights[1] / np.pi, np.round(weights[1] / np.pi))
    assert np.isfinite(law.log_density(weights, biases)).all()


def test_laws_of_a_box_want_one_scale_per_coordinate():
    for law in (BoxUniform((1.0, 2.0)), FewCoordinates((1.0, 2.0)), IntegerFrequencies((1.0, 2.0), (0,))):
        with pytest.raises(InputError, match=r"dim is 3.*2, the number of scales"):
            law.sample(5, 3, rng=0)
    for build in (BoxUniform, FewCoordinates, lambda scales: IntegerFrequencies(scales, (0,))):
        with pytest.raises(InputError, match=r"scales is \(1.0, 0.0\)"):
            build((1.0, 0.0))
    with pytest.raises(InputError, match="periodic is"):
        IntegerFrequencies((1.0, 2.0), (2,))
