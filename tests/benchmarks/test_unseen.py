"""The benchmark of unseen difficulty, on made-up prompts."""

import json
import sys

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import unseen

from curricula.testing.predictor import planted_pool


def test_it_finds_what_is_planted(tmp_path, monkeypatch, capsys):
    pool, difficulty = planted_pool()
    rates = np.random.default_rng(0).binomial(8, 1.0 / (1.0 + np.exp(difficulty))) / 8.0
    pq.write_table(pa.table({"text": list(pool.texts), "rate": rates}), tmp_path / "rates.parquet")
    np.save(tmp_path / "vectors.npy", pool.features)
    arguments = ["--target", "rate", "--rollouts", "8", "--splits", "3"]
    arguments += ["--embeddings", str(tmp_path / "vectors.npy"), "--json", str(tmp_path / "out.json")]
    monkeypatch.setattr(sys, "argv", ["unseen.py", str(tmp_path / "rates.parquet"), *arguments])
    unseen.main()
    assert "hashed_text + encoder" in capsys.readouterr().out
    result = json.loads((tmp_path / "out.json").read_text())
    for name, splits in result["figures"].items():
        for figures in splits:
            assert figures["spearman"] > 0.6, name
            assert figures["auc"] > 0.7, name
            if "error" in figures:
                assert figures["error_measured_by_itself"] == pytest.approx(figures["error"], rel=0.35)
