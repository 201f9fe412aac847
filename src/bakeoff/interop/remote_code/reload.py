"""Program that loads exported models without Bakeoff: `python reload.py FOLDER RESULTS [FOLDER RESULTS ...]`.

FOLDER is an export. RESULTS is a folder with inputs.safetensors and classes.json; the program adds outputs.safetensors
with the outputs of each class, for rows with padding after the tokens and for rows with padding before them.
"""

import json
import sys
from pathlib import Path
from typing import Any


def main(folder: Path, results: Path) -> None:
    """Load the export in `folder`, run it on the inputs in `results`, and write its outputs there.

    Raises:
        SystemExit: tensors are missing.
    """
    sys.modules["bakeoff"] = None  # type: ignore[assignment]  # any import of it fails, even if it is installed
    import torch
    import transformers
    from safetensors.torch import load_file, save_file

    inputs = load_file(results / "inputs.safetensors")
    outputs: dict[str, torch.Tensor] = {}
    for name in json.loads((results / "classes.json").read_text(encoding="utf-8")):
        loader: Any = getattr(transformers, name)
        model, info = loader.from_pretrained(folder, trust_remote_code=True, output_loading_info=True)
        model.eval()
        known = all(key.startswith("output.") or key.startswith("pooler.") for key in info["missing_keys"])
        if not known:
            raise SystemExit(f"{name}: tensors are missing: {', '.join(info['missing_keys'])}")
        for side in ("right", "left"):
            batch = {key.partition(".")[2]: value for key, value in inputs.items() if key.startswith(f"{side}.")}
            if name == "AutoModelForMultipleChoice":
                batch = {key: value[None] for key, value in batch.items()}
            if getattr(model.config, "is_encoder_decoder", False) and name == "AutoModelForSeq2SeqLM":
                batch["decoder_input_ids"] = inputs["right.input_ids"]
                batch.pop("token_type_ids", None)
            with torch.inference_mode():
                output = model(**batch)
            if name == "AutoModelForQuestionAnswering":
                values = torch.stack([output.start_logits, output.end_logits], -1)
            else:
                values = output[0]
            outputs[f"{name}.{side}"] = values.contiguous()
    save_file(outputs, results / "outputs.safetensors")


if __name__ == "__main__":
    for index in range(1, len(sys.argv), 2):
        main(Path(sys.argv[index]), Path(sys.argv[index + 1]))
