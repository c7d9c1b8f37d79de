"""What was measured, in a table, in words and as JSON."""

from typing import TYPE_CHECKING, Any

from rich import box
from rich.table import Table

if TYPE_CHECKING:
    from curricula.cli.precision.measure import Found, Measured
    from curricula_vllm.precision.plan import Plan


def table(found: "Measured") -> Table:
    """A row for each generator and trainer."""
    shown = Table(
        title="Log-probabilities of the sampled tokens, trainer against generator (nats)",
        box=box.SIMPLE_HEAD,
        title_justify="left",
        padding=(0, 1, 0, 0),
        pad_edge=False,
    )
    for heading in ("generator", "trainer"):
        shown.add_column(heading, no_wrap=True)
    for heading in ("mean", "largest", "KL a token", "±", "tokens"):
        shown.add_column(heading, justify="right", no_wrap=True)
    before = ""
    reasons: dict[str, int] = {}
    for row in found.rows:
        if before not in ("", str(row.generator)):
            shown.add_section()
        before = str(row.generator)
        if row.figures is None:
            number = reasons.setdefault(row.why, len(reasons) + 1)
            shown.add_row(before, str(row.trainer), f"cannot: [{number}]".replace("[", r"\["), "", "", "", "")
            continue
        figures = row.figures
        cells = [f"{figures.mean:.2g}", f"{figures.largest:.2g}", f"{figures.kl:.2g}", f"{figures.error:.1g}"]
        shown.add_row(before, str(row.trainer), *cells, f"{figures.tokens:,}")
    return shown


def words(found: "Measured", plan: "Plan") -> list[str]:
    """What the table leaves open: reasons, the step in fp16, updates, the rule and what it advises."""
    from curricula_vllm.precision.rule import RULE, advise, overflow, settings

    reasons = dict.fromkeys(row.why for row in found.rows if row.why)
    lines = [f"[{number}] {why}" for number, why in enumerate(reasons, 1)]
    if found.step is not None:
        problem = overflow(found.step)
        lines.append(f"fp16: {problem}: not to be used." if problem else _scale(found.step))
    lines += ["", *_updates(found.updates, plan), "", RULE]
    best = advise(found.rows, _fp16(found))
    if best is None:
        return [*lines, "Advice: none; nothing that was measured can be trained in."]
    chosen = [("Advice", best)]
    half = advise(found.rows, _fp16(found), half=True)
    if best.has("fp32") and half is not None:
        chosen.append(("With neither side in fp32, which is faster and halves the generator's memory", half))
    for name, row in chosen:
        kl = f", KL {row.figures.kl:.2g} a token" if row.figures is not None else ""
        lines.append(f"{name}: generator in {row.generator}, trainer in {row.trainer}{kl}.")
        lines += [f"    {line}" for line in settings(row, plan.model)]
    return lines


def summary(found: "Measured", plan: "Plan") -> dict[str, Any]:
    """Every figure, as JSON."""
    from curricula_vllm.precision.rule import RULE, advise, overflow, settings

    rows: list[dict[str, Any]] = []
    for row in found.rows:
        sides = {"generator": _side(row.generator), "trainer": _side(row.trainer)}
        rows.append(sides | ({"why": row.why} if row.figures is None else row.figures.summary()))
    advice: dict[str, Any] = {}
    for name, half in (("best", False), ("half", True)):
        chosen = advise(found.rows, _fp16(found), half)
        advice[name] = None
        if chosen is not None:
            sides = {"generator": _side(chosen.generator), "trainer": _side(chosen.trainer)}
            advice[name] = sides | {"settings": settings(chosen, plan.model)}
    step = None if found.step is None else found.step | {"overflow": overflow(found.step)}
    updates = {"learning_rate": plan.learning_rate} | found.updates
    return {
        "model": plan.model,
        "rule": RULE,
        "combinations": rows,
        "fp16_step": step,
        "small_updates": updates,
        "advice": advice,
    }


def _side(side: Any) -> dict[str, str]:
    return {"dtype": side.dtype, "head": side.head}


def _fp16(found: "Measured") -> bool:
    from curricula_vllm.precision.rule import overflow

    return not overflow(found.step)


def _scale(step: "Found") -> str:
    return (
        f"fp16: logits and gradients of a policy-gradient step on {step['tokens']:,} of the tokens were finite, with "
        f"the loss scaled by {step['scale']:g}."
    )


def _updates(updates: "Found", plan: "Plan") -> list[str]:
    from curricula_vllm.precision.rounding import MOST_LOST

    if "error" in updates:
        return [f"Small updates: not measured: {updates['error']}"]
    shares = ", ".join(f"{share:.2%} in {name}" for name, share in updates["survived"].items())
    last = updates["steps"][-1]
    copies = ", ".join(
        f"a copy in {name} by {last['moved'][name]:.2g}, {far:.2g} off from that" for name, far in last["apart"].items()
    )
    steps = f"{plan.steps} {'step' if plan.steps == 1 else 'steps'}"
    lines = [
        f"Small updates: of an Adam-like step at a learning rate of {plan.learning_rate:g} ({updates['updates']:,} "
        f"weights) a generator's copy shows {shares}. After {steps} the trainer has moved by "
        f"{last['moved']['master']:.2g} nats a token, {copies}."
    ]
    if 1 - (share := updates["survived"]["bf16"]) > MOST_LOST:
        lines.append(
            f"Warning: {1 - share:.1%} of the updates vanish in bf16 until they add up, and the others jump by a whole "
            "step of bf16, so a generator in bf16 does not follow the trainer's single steps. recipe.ratio: generator "
            "weighs by what was sampled from; vLLM in fp16 or fp32 loses fewer."
        )
    return lines
