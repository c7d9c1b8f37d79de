import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from curricula import CurriculaValueError, Curriculum, GroupOutcome, PromptPool
from curricula.windows import Windows

NAMES = ["b", "a", "c", "a", "b", "a"]


def columns():
    codes, names = np.array([1, 0, 2, 0, 1, 0]), ["a", "b", "c"]
    yield NAMES
    yield tuple(NAMES)
    yield np.array(NAMES)
    yield np.array(NAMES, dtype=object)
    yield pa.array(NAMES)
    yield pa.chunked_array([NAMES[:2], NAMES[2:]])
    yield pa.DictionaryArray.from_arrays(pa.array(codes), names)
    yield pa.DictionaryArray.from_arrays(pa.array(codes.astype(np.uint8)), [*names, "unused"])
    yield pa.chunked_array([pa.array(NAMES[:3]).dictionary_encode(), pa.array(NAMES[3:]).dictionary_encode()])


@pytest.mark.parametrize("column", list(columns()), ids=lambda column: type(column).__name__)
def test_every_kind_of_column_gives_the_same_pool(column):
    pool = PromptPool(column)
    assert pool.environments == ("a", "b", "c")
    assert pool.codes.dtype in (np.int16, np.int32)
    assert pool.codes.tolist() == [1, 0, 2, 0, 1, 0]
    assert pool.sizes == {"a": 3, "b": 2, "c": 1}
    assert pool.fingerprint == PromptPool(NAMES).fingerprint


@pytest.mark.parametrize(
    ("column", "message"),
    [
        ([], "at least one prompt"),
        (["a", None], "in row 1; got None"),
        (["a", ""], "in row 1; got ''"),
        (["a", 3], "in row 1; got 3"),
        (["a", []], r"names \(str\); got \[\]"),
        ("abc", "one name per prompt"),
        (7, "one name per prompt"),
        (np.array([1, 2]), "in row 0"),
        (pa.array(["a", None]), "in row 1; got None"),
        (pa.array([None, "a"]).dictionary_encode(), "in row 0; got None"),
    ],
)
def test_columns_that_are_no_names_are_refused(column, message):
    with pytest.raises(CurriculaValueError, match=message):
        PromptPool(column)


@pytest.mark.parametrize("name", ["keys", "texts", "features", "levels"])
def test_columns_of_another_length_are_refused(name):
    with pytest.raises(CurriculaValueError, match=f"{name}: expected 6 entries"):
        PromptPool(NAMES, **{name: [1, 2]})


def test_keys_come_from_keys_then_texts_then_rows():
    assert [PromptPool(NAMES, keys=list("uvwxyu")).key(i) for i in range(6)] == ["u", "v", "w", "x", "y", "u#2"]
    assert PromptPool(NAMES, keys=np.arange(6)).key(4) == "4"
    assert PromptPool(NAMES, keys=np.array([7] * 6)).key(2) == "7#3"
    assert PromptPool(NAMES, keys=pa.array(list("uvwxyz"))).key(5) == "z"
    assert PromptPool(NAMES).key(3) == "a:3"
    by_text = PromptPool(NAMES, texts=["same"] * 6)
    assert by_text.key(0) != by_text.key(1)
    assert by_text.key(3) == by_text.key(1) + "#2"
    with pytest.raises(CurriculaValueError, match=r"row in \[0, 6\); got 6"):
        by_text.key(6)


def test_the_fingerprint_follows_keys_environments_and_order():
    prints = {
        PromptPool(NAMES).fingerprint,
        PromptPool(NAMES[::-1]).fingerprint,
        PromptPool(NAMES, keys=list("uvwxyz")).fingerprint,
        PromptPool(NAMES, keys=list("uvwxzy")).fingerprint,
        PromptPool(["ab"] * 6, keys=["a", "bc", *"defg"]).fingerprint,
        PromptPool(["ab"] * 6, keys=["ab", "c", *"defg"]).fingerprint,
    }
    assert len(prints) == 6
    assert (
        PromptPool(NAMES, keys=list("uvwxyz")).fingerprint
        == PromptPool(NAMES, keys=pa.array(list("uvwxyz"))).fingerprint
    )


@given(
    st.lists(st.tuples(st.sampled_from("abc"), st.integers(-3, 3)), min_size=1), st.integers(-3, 3), st.integers(0, 6)
)
@settings(max_examples=200)
def test_a_window_holds_exactly_the_rows_of_its_levels(entries, low, width):
    names, levels = zip(*entries, strict=True)
    pool = PromptPool(names, levels=levels)
    windows = Windows(pool)
    for code, name in enumerate(pool.environments):
        wanted = [row for row, entry in enumerate(entries) if entry[0] == name]
        start, stop = windows.spans[code]
        rows = pool.rows(np.arange(start, stop))
        assert sorted(rows.tolist()) == wanted
        assert [pool.position(row) for row in rows.tolist()] == list(range(start, stop))
        assert pool.positions(rows[::-1]).tolist() == list(range(start, stop))[::-1]
        inside = [row for row in wanted if low <= entries[row][1] <= low + width]
        if not inside:
            with pytest.raises(CurriculaValueError, match=f"environments.{name}.levels: expected a window"):
                windows.set(name, low, low + width)
            continue
        windows.set(name, low, low + width)
        start, stop = windows.spans[code]
        assert sorted(pool.rows(np.arange(start, stop)).tolist()) == inside
        eligible = [entries[row][1] for row in inside]
        assert windows.get(name) == (min(eligible), max(eligible))


def test_only_eligible_levels_are_drawn_and_the_mix_sets_them():
    levels = np.arange(100) % 10
    pool = PromptPool(["a"] * 100, levels=levels)
    curriculum = Curriculum(pool, {"environments": {"a": {"levels": [2, 3]}}})
    assert {int(levels[draw.index]) for draw in curriculum.ask(20, group_size=2)} == {2, 3}
    curriculum.set_window("a", 7, 7)
    assert curriculum.window("a") == (7, 7)
    assert {int(levels[draw.index]) for draw in curriculum.ask(10, group_size=2)} == {7}


def test_two_curricula_on_one_pool_have_their_own_levels():
    levels = np.arange(40) % 4
    pool = PromptPool(["a"] * 40, levels=levels)
    low, high = (Curriculum(pool, {"environments": {"a": {"levels": window}}}) for window in ([0, 1], [3, 3]))
    free = Curriculum(pool)
    assert {int(levels[draw.index]) for draw in low.ask(20, group_size=2)} == {0, 1}
    assert {int(levels[draw.index]) for draw in high.ask(10, group_size=2)} == {3}
    assert {int(levels[draw.index]) for draw in free.ask(40, group_size=2)} == {0, 1, 2, 3}
    assert [run.window("a") for run in (low, high, free)] == [(0, 1), (3, 3), (0, 3)]
    again = Curriculum(pool)
    again.load_state_dict(low.state_dict())
    assert [run.window("a") for run in (again, high, free)] == [(0, 1), (3, 3), (0, 3)]


def test_levels_of_prompts_that_have_none_are_refused():
    pool = PromptPool(NAMES)
    message = "environments.a.levels: expected prompts that have levels.* no `level` column"
    with pytest.raises(CurriculaValueError, match=message):
        Curriculum(pool, {"environments": {"a": {"levels": [0, 0]}}})
    with pytest.raises(CurriculaValueError, match=message):
        Curriculum(pool).set_window("a", 0, 3)
    assert Curriculum(pool).window("a") == (0, 0)


@pytest.mark.parametrize("window", [(0.5, 1), (None, 1), (0, "1"), (True, 1)])
def test_levels_that_are_no_integers_are_refused(window):
    with pytest.raises(CurriculaValueError, match=r"environments.a.levels: expected (low|high) to be an integer"):
        Curriculum(PromptPool(NAMES, levels=[0] * 6)).set_window("a", *window)


@pytest.mark.parametrize("levels", [["x"] * 6, [1.5] * 6, [[1]] * 6, [None] * 6, [0, 1 << 40, 0, 0, 0, 0]])
def test_levels_that_are_no_small_integers_are_refused(levels):
    with pytest.raises(CurriculaValueError, match="levels: expected"):
        PromptPool(NAMES, levels=levels)


def test_an_unknown_environment_is_refused_with_the_known_ones():
    with pytest.raises(CurriculaValueError, match=r"\(a, b, c\); got 'd'"):
        Curriculum(PromptPool(NAMES)).window("d")


@pytest.mark.slow
def test_a_pool_of_twenty_million_draws_from_all_of_itself():
    # More than 2^24 categories, and rows that are not grouped: the pool must find them through its order.
    size, names = 20_000_000, ["a", "b", "c"]
    codes = (np.arange(size, dtype=np.int64) % 3).astype(np.int8)
    pool = PromptPool(pa.DictionaryArray.from_arrays(pa.array(codes), names))
    curriculum = Curriculum(pool, seed=3)
    highest, seen = 0, set()
    for _ in range(10):
        draws = curriculum.ask(64, group_size=4)
        highest = max(highest, *(draw.index for draw in draws))
        explored = {draw.index for draw in draws if draw.reason == "explore"}
        assert not explored & seen
        seen |= explored
        assert all(draw.environment == names[draw.index % 3] for draw in draws)
        assert all(draw.key == f"{draw.environment}:{draw.index}" for draw in draws)
        assert all(0 < draw.propensity < 1e-4 for draw in draws if draw.reason == "explore")
        curriculum.tell([GroupOutcome(draw.ticket, rewards=[1, 1, 1, 1]) for draw in draws])
    assert highest > 1 << 24
    assert len(seen) >= 200
    saved = curriculum.state_dict()
    assert _bytes(saved) < 1e6


def _bytes(state):
    if isinstance(state, dict):
        return sum(map(_bytes, state.values()))
    return state.nbytes if isinstance(state, np.ndarray) else 0


def digests(count, width=16):
    return np.frombuffer(np.random.default_rng(count).bytes(count * width), np.uint8).reshape(count, width)


@pytest.mark.parametrize("repeated", [False, True])
def test_keys_of_sixteen_bytes_are_the_text_of_their_digits(repeated, tmp_path):
    content = digests(6).copy()
    content[3, 9:] = 0  # numpy's bytes would lose trailing zeros
    if repeated:
        content[[4, 5]] = content[1]
    text = PromptPool(NAMES, keys=[row.tobytes().hex() for row in content])
    np.save(tmp_path / "keys.npy", content.view("V16").reshape(-1))
    packed = pa.array([row.tobytes() for row in content], pa.binary(16))
    columns = (
        content,
        content.view("V16").reshape(-1),
        content.view("S16").reshape(-1),
        np.load(tmp_path / "keys.npy", mmap_mode="r"),
        packed,
        pa.concat_arrays([packed, packed])[6:],
        pa.chunked_array([packed[:2], packed[2:2], packed[2:]]),
    )
    for column in columns:
        pool = PromptPool(NAMES, keys=column)
        assert pool.keys_of(range(6)) == [text.key(row) for row in range(6)]
        assert pool.fingerprint == text.fingerprint
        assert pool.key_digests(np.arange(6)).tolist() == text.key_digests(np.arange(6)).tolist()
    assert text.key(5).endswith("#3") == repeated
    assert len(set(text.key_digests(np.arange(6)).tolist())) == 6


def test_digests_are_of_keys_and_not_of_rows():
    keys = ["z", "0" * 32, "0" * 31 + "A", "ü", "7", "z#2"]
    pool, turned = PromptPool(NAMES, keys=keys), PromptPool(NAMES[::-1], keys=keys[::-1])
    assert pool.key_digests(np.arange(6)).tolist() == turned.key_digests(np.arange(6))[::-1].tolist()
    assert pool.key_digests(np.array([3, 3])).tolist() == [pool.key_digests(np.arange(6))[3]] * 2
    numbers = PromptPool(NAMES, keys=np.array([9, 8, 3, 4, 7, 6]))
    assert numbers.key_digests(np.array([4])) == pool.key_digests(np.array([4]))
    assert PromptPool(NAMES).key_digests(np.arange(6)).size == 6


def test_large_columns_are_taken_where_they_are(tmp_path):
    count = 50_000
    np.save(tmp_path / "keys.npy", digests(count))
    np.save(tmp_path / "codes.npy", np.arange(count, dtype=np.int16) % 3)
    keys, codes = (np.load(tmp_path / f"{name}.npy", mmap_mode="r") for name in ("keys", "codes"))
    names = pa.DictionaryArray.from_arrays(pa.array(codes), ["a", "b", "c"])
    pool = PromptPool(names, keys=keys)
    assert np.shares_memory(pool.codes, codes)
    assert np.shares_memory(pool._keys._digests, keys)
    assert pool.blocks is pool.codes
    text = pa.array([f"k{i}" for i in range(count)])
    assert PromptPool(names, keys=text)._keys._column is text
    levels = np.arange(count, dtype=np.int32) % 7
    assert PromptPool(names, levels=levels).blocks.dtype == np.int16


@given(st.lists(st.tuples(st.sampled_from("abc"), st.integers(-4, 4)), min_size=1), st.sampled_from([1, 1 << 26]))
def test_blocks_are_the_sorted_pairs_of_environment_and_level(entries, spread):
    names, levels = zip(*entries, strict=True)
    pool = PromptPool(names, levels=[level * spread for level in levels])
    pairs = sorted({(name, level * spread) for name, level in entries})
    found = list(zip([pool.environments[c] for c in pool.block_codes], pool.block_levels.tolist(), strict=True))
    assert found == pairs
    assert [pairs[block] for block in pool.blocks] == [(name, level * spread) for name, level in entries]
    assert pool.block_sizes.tolist() == [entries.count((name, level // spread)) for name, level in pairs]
