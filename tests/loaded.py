"""Loads every module of the solvers, so that processes copied from one that has imported this need not."""

import importlib
import pkgutil

import scipy.stats  # noqa: F401  # which solvers import when they first sample

import rannpde.pde

for _module in pkgutil.walk_packages(rannpde.pde.__path__, "rannpde.pde."):
    importlib.import_module(_module.name)
