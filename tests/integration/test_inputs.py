"""Walks the table of tests/INPUTS.md: every row has a case, every case a row, and each says what the row says."""

import re
from pathlib import Path
from typing import NamedTuple

import inputs_allocation
import inputs_attach
import inputs_cli
import inputs_data
import inputs_interruption
import inputs_log
import inputs_mix
import inputs_recipes
import inputs_scaling
import inputs_vllm
import pytest

from curricula import CurriculaError


class Row(NamedTuple):
    id: str
    input: str
    here: str
    said: str


def rows() -> list[Row]:
    text = (Path(__file__).parents[1] / "INPUTS.md").read_text(encoding="utf-8")
    cells = [
        [cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines() if line.startswith("|")
    ]
    return [Row(*line) for line in cells if line[0] != "id" and not line[0].startswith("---")]


TABLE = {row.id: row for row in rows()}
CASES = inputs_mix.CASES | inputs_attach.CASES | inputs_data.CASES | inputs_cli.CASES | inputs_log.CASES
CASES |= inputs_interruption.CASES | inputs_recipes.CASES | inputs_vllm.CASES | inputs_scaling.CASES
CASES |= inputs_allocation.CASES


def test_the_table_and_the_cases_are_the_same() -> None:
    assert sorted(row.id for row in rows()) == sorted(CASES)
    assert {row.here for row in rows()} == {"handled", "refused"}


@pytest.mark.parametrize("name", TABLE)
def test_input(name: str, tmp_path: Path) -> None:
    row, case = TABLE[name], CASES[name]
    if row.here == "handled":
        case(tmp_path)
        return
    with pytest.raises(CurriculaError) as caught:
        case(tmp_path)
    message = str(caught.value)
    pattern = ".*".join(re.escape(part) for part in row.said.strip("`").split("…"))
    assert "\n" not in message
    assert re.fullmatch(pattern, message), message
