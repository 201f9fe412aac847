"""Run in a process without Bakeoff: what exported models write and answer. `python remote_program.py JOBS.json`.

JOBS.json: a list of {"folder", "do", ...}; beside it, ANSWERS.json is written, one entry for each.
"""

import json
import sys
import warnings
from pathlib import Path

sys.modules["bakeoff"] = None
import torch  # noqa: E402
import transformers  # noqa: E402

warnings.simplefilter("ignore")
transformers.logging.set_verbosity_error()
torch.set_num_threads(1)


def load(job):
    """The model of a job."""
    loader = getattr(transformers, job["auto"])
    return loader.from_pretrained(job["folder"], trust_remote_code=True).eval()


def write(job):
    """What a model writes for each prompt alone, for all at once with padding before them, and with three beams."""
    model, more = load(job), {"max_new_tokens": job["tokens"], "do_sample": False}
    pad = model.config.pad_token_id
    longest = max(map(len, job["prompts"]))
    behind = model.config.is_encoder_decoder
    rows, masks = [], []
    for prompt in job["prompts"]:
        padding, ones = [pad] * (longest - len(prompt)), [1] * len(prompt)
        rows.append(prompt + padding if behind else padding + prompt)
        masks.append(ones + [0] * len(padding) if behind else [0] * len(padding) + ones)
    batch = {"input_ids": torch.tensor(rows), "attention_mask": torch.tensor(masks)}
    first = 1 if behind else longest
    read = []
    original = model.forward
    name = "decoder_input_ids" if behind else "input_ids"

    def counted(*args, **kwargs):
        read.append(kwargs[name].shape[1])
        return original(*args, **kwargs)

    model.forward = counted
    together = model.generate(**batch, **more)
    model.forward = original
    once = model.generate(**batch, **more, use_cache=False) if not behind else together
    beams = model.generate(**batch, **more, num_beams=3, length_penalty=0.0)
    without = model.generate(**batch, **more, num_beams=3, length_penalty=0.0, use_cache=False) if not behind else beams
    return {
        "together": [row[first:].tolist() for row in together],
        "without_state": once.equal(together) or bool(model.config.reads_prefix),
        "beams_without_state": beams.equal(without) or bool(model.config.reads_prefix),
        "beams": [row[first:].tolist() for row in beams],
        "read": read,
    }


def ask(job):
    """What a pipeline answers."""
    tokenizer = transformers.AutoTokenizer.from_pretrained(job["folder"], trust_remote_code=True)
    pipe = transformers.pipeline(job["pipeline"], model=load(job), tokenizer=tokenizer, device="cpu")
    return [
        pipe(**each, **job.get("more", {})) if isinstance(each, dict) else pipe(each, **job.get("more", {}))
        for each in job["texts"]
    ]


def answer(job):
    """The best stretch of each context, of tokens of the context alone; transformers 5 has no pipeline for it."""
    tokenizer, model = transformers.AutoTokenizer.from_pretrained(job["folder"], trust_remote_code=True), load(job)
    found = []
    for question, context in job["texts"]:
        batch = tokenizer(question, context, return_tensors="pt", return_offsets_mapping=True)
        places = batch.pop("offset_mapping")[0].tolist()
        inside = [place for place, side in enumerate(batch.sequence_ids(0)) if side == 1]
        with torch.inference_mode():
            said = model(**batch)
        start, end = said.start_logits[0], said.end_logits[0]
        spans = [(float(start[a] + end[b]), a, b) for a in inside for b in inside if a <= b < a + job["longest"]]
        _, first, last = max(spans)
        found.append(context[places[first][0] : places[last][1]])
    return found


def choose(job):
    """The number of the best choice of each example."""
    tokenizer, model = transformers.AutoTokenizer.from_pretrained(job["folder"], trust_remote_code=True), load(job)
    found = []
    for context, choices in job["texts"]:
        batch = tokenizer([context] * len(choices), choices, return_tensors="pt", padding=True)
        logits = model(**{name: value[None] for name, value in batch.items()}).logits
        found.append(int(logits.argmax()))
    return found


def tokens(job):
    """The ids of texts."""
    tokenizer = transformers.AutoTokenizer.from_pretrained(job["folder"], trust_remote_code=True)
    return tokenizer(job["texts"])["input_ids"]


def learn(job):
    """Train some steps, save, load again: losses, whether gradients are finite, and whether logits are the same."""
    model = load(job).train()
    ids = torch.randint(5, model.config.vocab_size, (4, 12), generator=torch.Generator().manual_seed(0))
    labels = ids if "LM" in job["auto"] else torch.tensor([0, 1, 0, 1])
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    losses = []
    for _ in range(job["steps"]):
        loss = model(input_ids=ids, attention_mask=torch.ones_like(ids), labels=labels).loss
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        losses.append(float(loss))
    model.eval()
    model.save_pretrained(job["out"])
    again = getattr(transformers, job["auto"]).from_pretrained(job["out"], trust_remote_code=True).eval()
    with torch.inference_mode():
        same = bool(torch.equal(model(input_ids=ids).logits, again(input_ids=ids).logits))
        half = getattr(transformers, job["auto"]).from_pretrained(
            job["out"], trust_remote_code=True, dtype=torch.bfloat16
        )
        finite = bool(half.eval()(input_ids=ids).logits.isfinite().all())
    return {
        "losses": losses,
        "same": same,
        "half": finite,
        "file": (Path(job["out"]) / "modeling_bakeoff.py").is_file(),
    }


def resize(job):
    """The scores' number of tokens after a resizing."""
    model = load(job)
    model.resize_token_embeddings(model.config.vocab_size + 7)
    return list(model(input_ids=torch.tensor([[5, 6, 7]])).logits.shape)


if __name__ == "__main__":
    path = Path(sys.argv[1])
    made = [globals()[job["do"]](job) for job in json.loads(path.read_text())]
    path.with_name("ANSWERS.json").write_text(json.dumps(made, default=float))
