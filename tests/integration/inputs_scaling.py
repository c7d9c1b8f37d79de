"""Cases of tests/INPUTS.md: `curricula scaling`. A refusal is one line on standard error, and exit code 2."""

import io
import json
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from inputs_cli import call

from curricula import Curriculum, GroupOutcome, PromptPool, open_log

GOOD = "compute,score\n" + "".join(f"{100 * n},{0.2 + 0.03 * n}\n" for n in range(1, 13))

TWO_CURVES = "compute,score,recipe\n" + "".join(
    f"{100 * n},{0.2 + 0.03 * n},{name}\n" for name in "ab" for n in range(1, 13)
)


def read(
    content: str | bytes | None, *options: str, name: str = "c.csv", command: str = "fit"
) -> Callable[[Path], str]:
    """Runs a command on a file with this content."""

    def run(folder: Path) -> str:
        path = folder / name
        if content is not None:
            path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return call("scaling", command, str(path), *options)

    return run


def design(*options: str) -> Callable[[Path], str]:
    return lambda folder: call("scaling", "design", *options)


def with_json(folder: Path) -> None:
    rows = [{"compute": 100 * n, "score": 0.2 + 0.03 * n, "recipe": "a"} for n in range(1, 13)]
    assert "a" in json.loads(read(json.dumps({"points": rows}), "--json", name="c.json")(folder))["fits"]


def doubled(folder: Path) -> None:
    assert "counted once" in read(GOOD + "100,0.23\n")(folder)


def unsorted(folder: Path) -> None:
    head, *lines = GOOD.splitlines()
    first = read(GOOD, "--json")(folder)
    assert json.loads(read("\n".join([head, *reversed(lines)]), "--json")(folder)) == json.loads(first)


def empty_cells(folder: Path) -> None:
    assert "1 of 13 rows have no score" in read(GOOD + "1300,\n")(folder)


def percentages(folder: Path) -> None:
    assert "ceiling A" in read("compute,score\n100,20\n200,30%\n300,38\n400,41\n500,43\n", "--percent")(folder)


def zero_compute(folder: Path) -> None:
    assert "R0" in read("compute,score\n0,0.2\n" + GOOD.split("\n", 1)[1])(folder)


def log_of(reward: float, told: bool = True) -> Callable[[Path], str]:
    def run(folder: Path) -> str:
        made = Curriculum(PromptPool(["sums"] * 20))
        log = open_log(made, folder / "log")
        draws = made.ask(8, group_size=4)
        if told:
            made.tell([GroupOutcome(draw.ticket, [reward, 0, 0, 0]) for draw in draws])
        log.close()
        return call("scaling", "fit", str(folder / "log"))

    return run


def a_folder(folder: Path) -> str:
    return call("scaling", "fit", str(folder))


def store(uri: str) -> Callable[[Path], str]:
    def run(folder: Path) -> str:
        (folder / "runs").mkdir()
        (folder / "runs.csv").write_text(GOOD)
        return call("scaling", "fit", "mlflow:0123", "--metric", "x", "--tracking-uri", uri.format(folder))

    return run


def with_mark(folder: Path) -> None:
    rows = json.dumps([{"compute": 100 * n, "score": 0.2 + 0.03 * n} for n in range(1, 13)])
    assert "c" in json.loads(read(b"\xef\xbb\xbf" + rows.encode(), "--json", name="c.json")(folder))["fits"]


def odd_names(folder: Path) -> None:
    name = "gain of $5 at $x^$ [/red]\x1b[31m"
    content = GOOD.replace("score\n", "score,recipe\n").replace("\n", f",{name}\n").replace(f"recipe,{name}", "recipe")
    said = read(content, "--plot", str(folder / "p.png"))(folder)
    assert "\x1b" not in said
    assert "[/red]" in said.replace("\n", "")


def rates_as_percentages(folder: Path) -> None:
    assert "note: no score is above 0.56%: leave out --percent if they are rates" in read(GOOD, "--percent")(folder)


def parquet(*columns: tuple[str, pa.Array]) -> bytes:
    sink = io.BytesIO()
    pq.write_table(pa.table([values for _, values in columns], names=[name for name, _ in columns]), sink)
    return sink.getvalue()


LATE = parquet(
    ("compute", pa.array([1, 2])), ("score", pa.array([0.1, 0.2])), ("when", pa.array([2**62] * 2, "timestamp[us]"))
)
ZONE = parquet(
    ("compute", pa.array([1, 2])),
    ("score", pa.array([0.1, 0.2])),
    ("when", pa.array([1, 2], pa.timestamp("s", "Mars/Phobos"))),
)
TWICE = parquet(("compute", pa.array([1])), ("compute", pa.array([1])), ("score", pa.array([0.1])))

HUGE = "1" + "0" * 400

CASES = {
    "scaling-json-mark": with_mark,
    "scaling-odd-names": odd_names,
    "scaling-rates-percent": rates_as_percentages,
    "scaling-json-huge": read(f'[{{"compute": {HUGE}, "score": 0.5}}]', name="c.json"),
    "scaling-json-deep": read("[" * 100_000 + "]" * 100_000, name="c.json"),
    "scaling-unnamed": read(
        '[{"compute": 1, "score": 0.5, "recipe": "a"}, {"compute": 2, "score": 0.5}]', name="c.json"
    ),
    "scaling-parquet-date": read(LATE, name="c.parquet"),
    "scaling-parquet-zone": read(ZONE, name="c.parquet"),
    "scaling-parquet-twice": read(TWICE, name="c.parquet"),
    "scaling-semicolons": read(GOOD.replace(",", ";")),
    "scaling-many-curves": read(
        "compute,score\n" + "".join(f"{n},0.5\n" for n in range(1, 100_001)), "--by", "compute"
    ),
    "scaling-unit": read("compute,score\n1e150,0.2\n2e150,0.3\n", "--method", "power_law"),
    "scaling-design-unit": design("--spacing", "1e306", "--asymptote", ".6", "--midpoint", "1e307", "--noise", ".01"),
    "scaling-at-huge": read(GOOD, "--at", "1e308x", command="forecast"),
    "scaling-design-steep": design(
        "--spacing", "100", "--asymptote", ".6", "--midpoint", "1000", "--exponent", "1e9", "--prompts", "100"
    ),
    "scaling-design-bins": design("--spacing", "100", "--asymptote", ".6", "--midpoint", "1000", "--bins", "9"),
    "scaling-store-folder": store("{}/runs"),
    "scaling-store-scheme": store("foo://me:secret@bar"),
    "scaling-store-address": store("http://[bad"),
    "scaling-store-csv": store("sqlite:///{}/runs.csv"),
    "scaling-store-driver": store("postgresql+none://me:secret@localhost/runs"),
    "scaling-json": with_json,
    "scaling-doubled": doubled,
    "scaling-unsorted": unsorted,
    "scaling-empty-cells": empty_cells,
    "scaling-percent": percentages,
    "scaling-zero-compute": zero_compute,
    "scaling-missing": read(None),
    "scaling-ending": read(GOOD, name="c.xlsx"),
    "scaling-empty": read(""),
    "scaling-no-rows": read("compute,score\n"),
    "scaling-no-column": read(GOOD, "--score", "acuracy"),
    "scaling-no-by": read(GOOD, "--by", "recipe"),
    "scaling-text": read(GOOD + "1300,n/a\n"),
    "scaling-no-compute": read(GOOD + ",0.5\n"),
    "scaling-percentages": read("compute,score\n100,20\n200,30\n"),
    "scaling-rewards": read("compute,score\n100,200\n200,300\n"),
    "scaling-infinite": read(GOOD + "1300,inf\n"),
    "scaling-negative": read(GOOD + "-5,0.5\n"),
    "scaling-ragged": read(GOOD + "1300\n"),
    "scaling-twice": read("score,score\n1,2\n"),
    "scaling-not-csv": read(b"\xff\xfe\x00compute"),
    "scaling-not-parquet": read(GOOD, name="c.parquet"),
    "scaling-not-json": read("{", name="c.json"),
    "scaling-json-shape": read('{"runs": []}', name="c.json"),
    "scaling-no-log": a_folder,
    "scaling-log-empty": log_of(1.0, told=False),
    "scaling-log-rewards": log_of(7.0),
    "scaling-skip": read(GOOD, "--skip", "early"),
    "scaling-skip-all": read(GOOD, "--skip", "1e9"),
    "scaling-at": read(GOOD, "--at", "later", command="forecast"),
    "scaling-two-noises": read(GOOD, "--noise", "score", "--prompts", "100"),
    "scaling-samples": read(GOOD, "--samples", "16"),
    "scaling-plot": read(GOOD, "--plot", "picture.jpeg"),
    "scaling-plot-folder": read(GOOD, "--plot", "none/picture.png"),
    "scaling-one-recipe": read(GOOD, command="compare"),
    "scaling-run-spread": read(TWO_CURVES, "--run-spread", "-1", command="compare"),
    "scaling-budget": read(GOOD, "--budget", "much", command="allocate"),
    "scaling-weight": read(GOOD, "--budget", "10", "--weight", "maths=2", command="allocate"),
    "scaling-design-nothing": design("--spacing", "100"),
    "scaling-design-percent": design("--spacing", "100", "--asymptote", "60", "--midpoint", "1000"),
    "scaling-design-noise": design("--spacing", "100", "--asymptote", ".6", "--midpoint", "1000"),
    "scaling-design-exponent": read(GOOD, "--spacing", "100", "--exponent", "2", command="design"),
    "scaling-design-unread": design("--spacing", "100", "--asymptote", ".6", "--midpoint", "1000", "--score", "x"),
    "scaling-no-metric": lambda folder: call("scaling", "fit", "mlflow:0123"),
    "scaling-no-store": lambda folder: call(
        "scaling", "fit", "mlflow:0123", "--metric", "x", "--tracking-uri", f"sqlite:///{folder}/none.db"
    ),
}
