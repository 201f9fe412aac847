"""Program that computes vectors of an export without Bakeoff: `python reload_vectors.py FOLDER RESULTS`.

FOLDER is an export for sentence-transformers. RESULTS is a folder with texts.json; the program adds
vectors.safetensors, from sentence-transformers where that is installed, else from transformers and a pooling by hand.
"""

import json
import sys
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any


def main(folder: Path, results: Path) -> None:
    """Load the export in `folder`, and write the vectors of the texts in `results`."""
    sys.modules["bakeoff"] = None  # type: ignore[assignment]  # any import of it fails, even if it is installed
    import torch
    from safetensors.torch import save_file

    texts = json.loads((results / "texts.json").read_text(encoding="utf-8"))
    if find_spec("sentence_transformers"):
        library: Any = import_module("sentence_transformers").SentenceTransformer(
            str(folder), device="cpu", trust_remote_code=True
        )
        vectors = torch.from_numpy(library.encode(texts, show_progress_bar=False))
    else:
        vectors = by_hand(folder, texts)
    save_file({"vectors": vectors.contiguous()}, results / "vectors.safetensors")


def by_hand(folder: Path, texts: list[str]) -> Any:
    """(N, D) vectors of N texts: the states of transformers' model, pooled as the library's files say."""
    import torch
    from safetensors.torch import load_file
    from transformers import AutoModel, AutoTokenizer

    inner = folder / "0_Transformer"
    tokenizer: Any = AutoTokenizer.from_pretrained(inner, trust_remote_code=True)
    model: Any = AutoModel.from_pretrained(inner, trust_remote_code=True).eval()
    length = json.loads((inner / "sentence_bert_config.json").read_text(encoding="utf-8"))["max_seq_length"]
    pooling = json.loads((folder / "1_Pooling" / "config.json").read_text(encoding="utf-8"))
    batch = tokenizer(texts, padding=True, truncation=True, max_length=length, return_tensors="pt")
    with torch.inference_mode():
        states = model(**batch)[0]  # (N, T, D)
    there, weights = batch["attention_mask"].bool(), None
    if (folder / "1_WordWeights").is_dir():
        said = json.loads((folder / "1_WordWeights" / "wordweights_config.json").read_text(encoding="utf-8"))
        weights = torch.tensor([said["word_weights"][token] for token in said["vocab"]])[batch["input_ids"]] * there
    vectors = pooled(states, there, pooling, weights)
    if (folder / "2_Dense").is_dir():
        layer = load_file(folder / "2_Dense" / "model.safetensors")
        vectors = vectors @ layer["linear.weight"].T + layer["linear.bias"]
    return vectors


def pooled(states: Any, there: Any, pooling: dict[str, Any], weights: Any) -> Any:
    """(N, D) vectors of (N, T, D) states, of which those that are `there` are pooled, in a mean with (N, T) weights."""
    import torch

    rows = torch.arange(len(states))
    if pooling["pooling_mode_cls_token"]:
        return states[rows, there.int().argmax(1)]
    if pooling.get("pooling_mode_lasttoken"):
        return states[rows, there.shape[1] - 1 - there.flip(1).int().argmax(1)]
    if pooling["pooling_mode_max_tokens"]:
        return states.masked_fill(~there[..., None], float("-inf")).amax(1)
    weights = there if weights is None else weights
    return (states.masked_fill(~there[..., None], 0.0) * weights[..., None]).sum(1) / weights.sum(1, keepdim=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
