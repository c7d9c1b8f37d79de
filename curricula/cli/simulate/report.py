"""A preview in words: the table, and what was assumed."""

from collections.abc import Mapping
from typing import Any

from rich import box
from rich.table import Table

from curricula.simulation import Law

DISCLAIMER = (
    "A simulation of an assumed learner, not a forecast: it shows what the mix does to a learner that follows "
    "this law, and says nothing about your model."
)


def law_text(world: str, law: Law) -> str:
    """The law in one paragraph.

    >>> from curricula.simulation import EnvironmentLaw
    >>> print(law_text("one", Law((EnvironmentLaw("sums", unlearnable=0.1, rate=0.2),), drift=0.01)))
    The law (one): success at the start sums 0.45; unlearnable for ever sums 10%; difficulty is correlated with the
    feature of a prompt at 0.50; ability grows by 0.20 logits per unit of signal; drift 0.01 logits a step.
    """
    start = law.expect("success", 0.0 * law.base_E)
    names = law.names
    parts = [
        "success at the start " + _each(names, [f"{value:.2f}" for value in start]),
        "unlearnable for ever " + _each(names, [f"{e.unlearnable:.0%}" for e in law.environments]),
        "difficulty is correlated with the feature of a prompt at "
        + _each(names, [f"{e.correlation:.2f}" for e in law.environments], merge=True),
        "ability grows by "
        + _each(names, [f"{e.rate:.2f}" for e in law.environments], merge=True)
        + " logits per unit of signal",
    ]
    if law.transfer:
        parts.append(f"{law.transfer:.0%} of it in the other environments too")
    if law.onward:
        parts.append(f"{law.onward:.0%} of it in the next environment")
    if law.prerequisites:
        pairs = [f"{names[rule.environment]} needs {names[rule.needs]}" for rule in law.prerequisites]
        parts.append("prerequisites: " + ", ".join(pairs))
    if law.forgetting:
        parts.append(f"{law.forgetting:.1%} of it is forgotten in a step without a group")
    for fall in law.regressions:
        parts.append(f"{names[fall.environment]} falls by {fall.amount:.1f} logits before step {fall.step}")
    if law.drift:
        parts.append(f"drift {law.drift:g} logits a step")
    if law.prompt_drift:
        parts.append(f"single prompts {law.prompt_drift:g}")
    if law.memorisation:
        parts.append(f"prompts trained on become easier, by up to {law.memorisation:g} logits")
    return f"The law ({world}): " + "; ".join(parts) + "."


def tables(summary: Mapping[str, Any]) -> tuple[Table, Table]:
    """Success per environment and of the base mix; then shares and informative groups."""
    seeds = summary["seeds"]
    success = _table(
        f"Held-out success after {summary['rollouts']:,} simulated rollouts, mean of "
        f"{seeds} {'seed' if seeds == 1 else 'seeds (range)'}",
        ("prompts", "start", "uniform", "mix", "gain"),
    )
    groups = _table(
        "Groups: share of those drawn and of those trained on, and fraction that is informative",
        ("drawn", "by mix", "trained", "by mix", "informative", "by mix"),
    )
    for name, figures in summary["environments"].items():
        success.add_row(name, f"{figures['prompts']:,}", *_success(figures))
        shares = [figures[which][arm] for which in ("share_drawn", "share_trained") for arm in ("uniform", "mix")]
        informative = [figures["informative"][arm] for arm in ("uniform", "mix")]
        groups.add_row(name, *(f"{value:.2f}" for value in (*shares, *informative)))
    for table in (success, groups):
        table.add_section()
    whole = summary["base_mix"]
    prompts = sum(figures["prompts"] for figures in summary["environments"].values())
    success.add_row("base mix", f"{prompts:,}", *_success(whole))
    groups.add_row("all", *("1.00",) * 4, *(f"{whole['informative'][arm]:.2f}" for arm in ("uniform", "mix")))
    return success, groups


def _table(title: str, headings: tuple[str, ...]) -> Table:
    table = Table(title=title, box=box.SIMPLE_HEAD, title_justify="left", padding=(0, 1, 0, 0), pad_edge=False)
    table.add_column("environment", overflow="fold")
    for heading in headings:
        table.add_column(heading, justify="right", no_wrap=True)
    return table


def _success(figures: Mapping[str, Any]) -> tuple[str, ...]:
    gain = round(figures["mix"]["mean"] - figures["uniform"]["mean"], 3) + 0.0
    return f"{figures['start']['mean']:.2f}", _text(figures["uniform"]), _text(figures["mix"]), f"{gain:+.3f}"


def verdict(summary: Mapping[str, Any]) -> list[str]:
    """What both needed for uniform's final success, in rollouts and in tokens."""
    lines: list[str] = []
    for budget, needed in summary["to_uniforms_final"].items():
        late = needed["not_reached"]
        lines.append(
            f"{budget} to uniform's final success: uniform {needed['uniform']:,}, mix {needed['mix']:,}, "
            + times(**needed["gain"])
            + (f" ({late} of {summary['seeds']} seeds did not get there in twice as many)" if late else "")
            + (" (one seed: how sure that is, it cannot tell; give --seeds 2 or more)" if summary["seeds"] == 1 else "")
        )
    return lines


def times(value: float, low: float | None, high: float | None) -> str:
    """A gain in words, with its limits.

    >>> times(2.0, 1.6, 2.5), times(0.5, None, None)
    ('2.00 [1.60, 2.50] times fewer', '2.00 times more')
    """
    word = "fewer" if value >= 1.0 else "more"
    figures = [figure for figure in (value, low, high) if figure is not None]
    if value < 1.0:
        figures = [1.0 / figure for figure in (figures[0], *reversed(figures[1:]))]
    limits = f" [{figures[1]:.2f}, {figures[2]:.2f}]" if len(figures) == 3 else ""
    return f"{figures[0]:.2f}{limits} times {word}"


def _each(names: tuple[str, ...], values: list[str], merge: bool = False) -> str:
    if merge and len(set(values)) == 1:
        return values[0]
    return ", ".join(f"{name} {value}" for name, value in zip(names, values, strict=True))


def _text(figure: Mapping[str, Any]) -> str:
    seeds: list[float] = figure["seeds"]
    return f"{figure['mean']:.2f}" + (f" ({min(seeds):.2f}–{max(seeds):.2f})" if len(seeds) > 1 else "")
