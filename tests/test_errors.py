"""Arguments are refused with their name, or come back as what the mathematics needs."""

from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest

from rannpde.errors import InputError, finite_array, finite_points, positive_integer, positive_number, suggestion


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (np.array([1.0, 2.0 + 1e-300j]), "values is 'complex', but must be real.*two outputs"),
        ([1, 2j], "values is 'complex'"),
        (np.array([1, 2j], dtype=object), "values is 'complex'"),
        (np.ma.masked_array([1.0, 2.0], mask=[False, True]), "values is 'a masked array'.*drop the masked rows"),
        ("1.5", "array of numbers"),
        (["1.5", "2"], "array of numbers"),
        (np.array([b"1.5"]), "array of numbers"),
        (np.array([1.5, "2"], dtype=object), "array of numbers"),
        (np.array(["2020-01-01"], dtype="datetime64[D]"), "array of numbers"),
        ([None, 1.0], "values has a NaN.*row 0"),
        ([[1.0], [1.0, 2.0]], "array of numbers"),
        ({"a": 1}, "array of numbers"),
        ([1.0, np.nan], "values has a NaN.*row 1"),
        ([-np.inf, 1.0], "values has .*row 0"),
        (np.zeros((2, 2, 2)), r"values with shape is \(2, 2, 2\)"),
    ],
)
def test_what_is_not_an_array_of_real_numbers_is_refused(value, message):
    with pytest.raises(InputError, match=message):
        finite_array("values", value, (0, 1, 2))


@pytest.mark.parametrize(
    "value",
    [
        [1, 2],
        (True, 2),
        np.array([1, 2], dtype=np.float32),
        np.array([1, 2], dtype=np.uint8),
        np.array([1, 2], dtype=">f8"),
        [Fraction(1), Decimal(2)],
        np.array([1, 2], dtype=object),
    ],
    ids=repr,
)
def test_every_kind_of_real_number_becomes_float64(value):
    array = finite_array("values", value, 1)
    assert array.dtype == np.float64
    assert array.tolist() == [1.0, 2.0]


def test_float64_is_not_copied():
    array = np.arange(6.0).reshape(3, 2)
    assert finite_array("values", array, 2) is array
    assert finite_points("points", array, 2) is array


@pytest.mark.parametrize("value", [3, np.int64(3), np.uint8(3)])
def test_whole_numbers_of_numpy_are_whole_numbers(value):
    assert positive_integer("width", value) == 3
    assert type(positive_integer("width", value)) is int
    assert positive_number("scale", value) == 3.0


@pytest.mark.parametrize("value", [0.5, np.float32(0.5), np.float64(0.5), np.float16(0.5)])
def test_numbers_of_numpy_are_numbers(value):
    assert positive_number("scale", value) == 0.5
    assert type(positive_number("scale", value)) is float


@pytest.mark.parametrize("value", [0, -1, 0.0, np.nan, np.inf, True, np.True_, "1", None, [1], 1j, np.complex128(1)])
def test_what_is_not_a_positive_number_is_refused(value):
    with pytest.raises(InputError, match="scale is"):
        positive_number("scale", value)
    with pytest.raises(InputError, match="width is"):
        positive_integer("width", value)


def test_a_name_that_is_known_twice_is_listed_once():
    assert suggestion("x=1", ["boundary", "boundary"]) == "known: boundary"
