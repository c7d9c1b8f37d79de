import pyarrow as pa
from datasets import Dataset

from curricula import PromptPool


def test_columns_of_a_data_set_are_taken_where_they_are(tmp_path):
    count = 20_000
    made = {
        "environment": [("maths", "sums")[i % 2] for i in range(count)],
        "uid": [f"prompt {i}" for i in range(count)],
        "level": [i % 5 for i in range(count)],
    }
    Dataset.from_dict(made).save_to_disk(tmp_path / "data")
    dataset = Dataset.load_from_disk(tmp_path / "data")
    before = pa.total_allocated_bytes()
    pool = PromptPool(dataset["environment"], keys=dataset["uid"], levels=dataset["level"])
    # What is allocated are the codes of environments; keys stay in the mapped file.
    assert pa.total_allocated_bytes() - before < 8 * count
    other = PromptPool(made["environment"], keys=made["uid"], levels=made["level"])
    assert pool.fingerprint == other.fingerprint
    assert pool.keys_of([7, 19_999]) == ["prompt 7", "prompt 19999"]
    assert pool.block_levels.tolist() == other.block_levels.tolist()
    shuffled = dataset.shuffle(seed=3)
    turned = PromptPool(shuffled["environment"], keys=shuffled["uid"])
    assert turned.keys_of(range(9)) == list(shuffled[:9]["uid"])
