"""What a random network is: activations, laws of the hidden weights, features, and the function they make."""

from rannpde.network.activations import ACTIVATIONS, Activation, as_activation
from rannpde.network.adapted import Adapted
from rannpde.network.features import Features, FourierFeatures, RandomFeatures
from rannpde.network.laws import Gaussian, HeavyTailed, Uniform, WeightLaw
from rannpde.network.network import Network, load

__all__ = [
    "ACTIVATIONS",
    "Activation",
    "Adapted",
    "Features",
    "FourierFeatures",
    "Gaussian",
    "HeavyTailed",
    "Network",
    "RandomFeatures",
    "Uniform",
    "WeightLaw",
    "as_activation",
    "load",
]
