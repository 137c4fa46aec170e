"""The public names: one list, found where the lazy table says, light to import."""

import ast
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

import rannpde as rp

TABLE = {name: home for home, names in rp._HOMES.items() for name in names}


def test_the_table_and_the_list_agree():
    assert sorted(TABLE) == sorted(rp.__all__)
    assert set(rp.__all__) <= set(dir(rp))


def test_every_name_is_what_its_home_defines():
    homes = {name: import_module(f"rannpde.{home}") for name, home in TABLE.items()}
    assert not [name for name, home in homes.items() if getattr(rp, name) is not getattr(home, name)]


def test_type_checkers_see_the_same_homes():
    tree = ast.parse(Path(rp.__file__).read_text(encoding="utf-8"))
    seen = {
        alias.name: str(node.module).removeprefix("rannpde.")
        for block in tree.body
        if isinstance(block, ast.If)
        for node in block.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    assert seen == TABLE


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'sovle'"):
        rp.sovle


def test_heavy_libraries_load_when_needed():
    code = (
        "import sys, rannpde; print(*sorted({'sympy', 'scipy', 'sklearn', 'matplotlib', 'numba'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == ""
