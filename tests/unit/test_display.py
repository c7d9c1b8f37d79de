import io
from types import SimpleNamespace
from typing import Any

from rich.console import Console

from curricula_trl.display import LineDisplay, LiveDisplay, display, lines

METRICS = {
    "informative": 0.5,
    "success_corrected": 0.3,
    "sums/success_drawn": 0.25,
    "sums/success_corrected": 0.4,
    "sums/share_drawn": 0.75,
    "sums/informative": 0.6,
    "a/b/mean_reward_drawn": -1.25,
    "a/b/share_drawn": 0.25,
}


class Sampler:
    def metrics(self) -> dict[str, float]:
        return METRICS


def state(step: int = 3) -> Any:
    return SimpleNamespace(global_step=step, max_steps=10)


def test_lines() -> None:
    assert lines(METRICS, 3, 10, {"loss": "0.125", "reward": 0.5, "lr": 1}) == [
        "step 3/10  loss 0.125  reward 0.5  informative 50%",
        "  sums  success 25%  corrected 40%  share 75%  informative 60%",
        "  a/b   mean reward -1.25  share 25%",
    ]
    assert lines({}, 1, 2, {"loss": "n/a"}) == ["step 1/2"]
    many = {f"{number}/share_drawn": 0.01 for number in range(100)}
    assert len(lines(many, 1, 2, {})) == 32
    assert lines(many, 1, 2, {})[-1] == "  … and 70 more"


def test_lines_where_stdout_is_no_terminal(capsys: Any) -> None:
    shown = display(Sampler())
    assert isinstance(shown, LineDisplay)
    args: Any = None
    shown.on_log(args, state(), args, {"loss": 0.5})
    shown.on_log(args, state(), args, {"train_runtime": 2.0})
    shown.close()
    assert capsys.readouterr().out.splitlines()[0] == "step 3/10  loss 0.5  informative 50%"


def test_a_table_on_a_terminal() -> None:
    out = io.StringIO()
    shown = LiveDisplay(Sampler(), Console(file=out, force_terminal=True, width=100))
    args: Any = None
    shown.on_train_begin(args, state(0), args)
    shown.on_step_end(args, state(1), args)
    shown.on_log(args, state(2), args, {"loss": 0.5})
    shown.on_train_end(args, state(2), args)
    shown.close()
    text = out.getvalue()
    for word in ("step 2/10  loss 0.5", "environment", "sums", "25%", "a/b", "-1.25"):
        assert word in text


def test_figures_of_other_parts_are_no_environments() -> None:
    metrics = {
        "sums/success_drawn": 0.25,
        "sums/share_drawn": 1.0,
        "sums/interrupted": 0.5,
        "sums/truncated": 0.0,
        "mismatch/mean": 0.0123,
        "mismatch/stale": 0.0,
        "clipping/decile_0": 0.5,
    }
    text = lines(metrics, 1, 2, {})
    assert text == ["step 1/2  mismatch 0.012", "  sums  success 25%  share 100%  interrupted 50%"]
