"""The code of the pages on PyTorch and Hugging Face runs, if these packages are installed."""

import doctest
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

GUIDE = Path(__file__).parents[1] / "docs" / "user_guide"

pytestmark = pytest.mark.skipif(not GUIDE.exists(), reason="docs are not in this copy")


def run_examples(page: str) -> dict[str, Any]:
    """Run the examples with a prompt, and return the names that they define."""
    names: dict[str, Any] = {}
    for example in doctest.DocTestParser().get_examples((GUIDE / page).read_text("utf-8")):
        exec(compile(example.source, page, "exec"), names)  # noqa: S102
    return names


def run_blocks(page: str, names: dict[str, Any], *, without: str = "") -> None:
    """Run the blocks without a prompt, except those that contain a word."""
    for block in re.findall(r"```python\n(.*?)```", (GUIDE / page).read_text("utf-8"), re.DOTALL):
        if not block.startswith(">>>") and not (without and without in block):
            exec(compile(block, page, "exec"), names)  # noqa: S102


def test_the_losses_of_the_page_train_a_network_better_than_noisy_labels() -> None:
    torch = pytest.importorskip("torch")
    names = run_examples("pytorch.md")
    run_blocks("pytorch.md", names)

    def noisy_loss(logits: Any, rows: Any) -> Any:
        return torch.nn.functional.cross_entropy(logits, names["observed"][rows])

    model = names["train"](noisy_loss)
    with torch.no_grad():
        logits = model(torch.tensor(names["X_test"]).float())
    noisy = float((logits.argmax(dim=1).numpy() == names["y_test"]).mean())
    assert set(names["scores"]) == {"weighted_loss", "corrected_loss", "soft_loss"}
    scores = names["scores"]
    assert min(scores["weighted_loss"], scores["corrected_loss"]) > noisy
    assert scores["soft_loss"] > noisy - 0.02  # no better than the model behind the soft labels


def test_held_out_probabilities_of_the_page_find_the_wrong_labels() -> None:
    torch = pytest.importorskip("torch")
    names = run_examples("pytorch.md")
    run_blocks("pytorch.md", names)

    def train_model(X: Any, labels: Any) -> Any:
        torch.manual_seed(0)
        model = torch.nn.Linear(64, 10)
        optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
        for _ in range(100):
            optimizer.zero_grad()
            logits = model(torch.tensor(X).float())
            torch.nn.functional.cross_entropy(logits, torch.tensor(labels)).backward()
            optimizer.step()
        return model

    proba = names["held_out"](train_model, names["X"], names["labels"], 10)
    assert np.allclose(proba.sum(axis=1), 1)
    first = names["LabelAudit"]().fit_posterior(proba, names["labels"]).issues(n=100)
    assert np.mean(names["labels"][first] != names["y"][first]) > 0.9


@pytest.mark.filterwarnings("ignore::FutureWarning")  # of pyarrow, called by datasets
def test_a_hugging_face_dataset_gets_columns(tmp_path: Path, monkeypatch: Any) -> None:
    pytest.importorskip("datasets")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HF_DATASETS_CACHE", str(tmp_path / "cache"))
    names = run_examples("hugging_face.md")
    names["frame"].to_csv("tickets.csv", index=False)
    names["pred_probs"] = np.column_stack([1 - names["truth"], names["truth"]]) * 0.8 + 0.1
    run_blocks("hugging_face.md", names, without="sentence_transformers")
    assert {"p_wrong", "suggested", "weight", "soft_label"} <= set(names["dataset"].column_names)
    suspects = names["suspects"]
    assert suspects["label"] != suspects["suggested"]
