import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from mlflow.utils.validation import _validate_metric_name

from curricula.errors import ConfigError
from curricula.tracking import load_trackers, metric_name, metric_names
from curricula_mlflow import MLflowTracker

HARD = st.text(st.sampled_from("aA/. :-_é漢\N{SNOWMAN}\t\n\\%"), max_size=320)


@given(st.one_of(st.text(max_size=320), HARD))
@example("..:")
def test_any_name_is_a_metric_name_of_mlflow(text: str) -> None:
    name = metric_name(text)
    assert 1 <= len(name) <= 200
    _validate_metric_name(name)
    _validate_metric_name(f"curriculum/{name}/success_corrected")
    assert metric_name(name) == name


@given(st.text(min_size=251, max_size=400), st.sampled_from(["success_drawn", "share_trained", "zero_variance"]))
def test_a_cut_keeps_the_last_segment_and_tells_names_apart(text: str, last: str) -> None:
    name = metric_name(f"{text}x/{last}", longest=250)
    assert len(name) <= 250
    assert name.endswith(f"/{last}")
    assert metric_name(f"{text}y/{last}", longest=250) != name


@given(st.lists(HARD, unique=True, max_size=12))
def test_names_stay_apart_in_the_narrowest_tracker(texts: list[str]) -> None:
    names = metric_names(texts)
    assert list(names) == texts
    # The first is what transformers' MLflowCallback does to a name; databases may fold case.
    seen = {re.sub(r"[^0-9A-Za-z_\-\.\ :/]", "_", name).lower() for name in names.values()}
    assert len(seen) == len(texts)
    for name in names.values():
        _validate_metric_name(name)
        assert len(name) <= 200


def test_plain_names_stay_as_they_are() -> None:
    plain = ["sums", "maths/level 2", "gsm8k-main", "a.b:c"]
    assert list(metric_names(plain).values()) == plain


def test_trackers_are_found_by_entry_point() -> None:
    (tracker,) = load_trackers(["mlflow"])
    assert isinstance(tracker, MLflowTracker)
    assert tracker.name == "mlflow"
    assert isinstance(load_trackers("auto")[0], MLflowTracker)
    assert load_trackers([]) == []


def test_auto_takes_only_hosts_that_are_imported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(__import__("sys").modules, "mlflow")
    assert load_trackers("auto") == []


def test_an_unknown_tracker_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"expected one of mlflow; got 'wandb'"):
        load_trackers(["mlflow", "wandb"])
