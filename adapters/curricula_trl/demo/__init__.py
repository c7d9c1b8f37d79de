"""The demo: a tiny model that really learns, on a skewed mix, uniformly or by a curriculum.

`curricula demo` runs `python -m curricula_trl.demo` once per arm and seed, and compares what they report.
"""
