import datetime

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from curricula import CurriculaValueError, row_key, stable_keys
from curricula.keys import row_digests


def key(value):
    return row_key({"q": value}, "e", ["q"])


def test_a_key_does_not_change_between_releases():
    row = {"question": "2+2", "answer": 4, "extra": "unused"}
    assert row_key(row, "sums", ["question", "answer"]) == "e3f8b47d03ce6908b0143416f78e263b"


def test_values_that_differ_in_kind_have_different_keys():
    values = [1, 1.0, True, "1", b"1", None, [1], {"a": 1}, {"float": "1.0"}, datetime.date(2024, 1, 1), "2024-01-01"]
    assert len({key(value) for value in values}) == len(values)


def test_arrays_and_numpy_scalars_are_their_values():
    assert key(np.array([1, 2])) == key([1, 2])
    assert key(np.float64(0.1)) == key(0.1)
    assert key((1, 2)) == key([1, 2])
    assert key({"a": 1, "b": [2]}) == key({"b": [2], "a": 1})


def test_text_of_any_kind_is_taken():
    assert key("\ud800") != key("\ud801")
    assert key(float("nan")) == key(float("nan"))


def test_images_are_their_pixels():
    class Image:
        mode, size = "L", (1, 1)

        def __init__(self, pixels):
            self._pixels = pixels

        def tobytes(self):
            return self._pixels

    assert key(Image(b"\0")) == key(Image(b"\0")) != key(Image(b"\1"))


@pytest.mark.parametrize("value", [object(), {1: 2}, {"a": {3}}, lambda: None])
def test_values_without_stable_content_are_refused_by_column(value):
    with pytest.raises(CurriculaValueError, match="column 'q'"):
        key(value)


def test_a_missing_column_is_named():
    with pytest.raises(CurriculaValueError, match="expected column 'a' in the row; got columns b, c"):
        row_key({"c": 1, "b": 2}, "e", ["a"])


@given(st.lists(st.sampled_from(["a", "b", "a#2", "a#3", "a#2#2", ""])))
def test_stable_keys_are_distinct_and_keep_the_first(base):
    keys = stable_keys(base)
    assert len(set(keys)) == len(keys) == len(base)
    for position, name in enumerate(base):
        if name not in base[:position]:
            assert keys[position] == name
        else:
            assert keys[position].startswith(name + "#")


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.binary() | st.dates(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=6,
)


@given(st.lists(st.tuples(st.sampled_from(["a", 'b"%s', "ü"]), VALUES, st.text()), min_size=1, max_size=5))
def test_keys_of_many_rows_are_those_of_each(rows):
    environments, values, texts = zip(*rows, strict=True)
    columns = {"v%d": list(values), 'a "quoted" name': list(texts)}
    digests = row_digests(columns, environments)
    for place, environment in enumerate(environments):
        row = {name: column[place] for name, column in columns.items()}
        assert digests[16 * place : 16 * place + 16].hex() == row_key(row, environment, list(columns))


def test_many_rows_of_no_stable_content_are_refused():
    with pytest.raises(CurriculaValueError, match="in column 'q'; got object"):
        row_digests({"q": [object()]}, ["e"])
