"""The README.md beside a model.gguf: how to run the model with llama.cpp."""

from bakeoff.display import markdown

FILE = "model.gguf"
USES = {
    "bert": f"llama-embedding -m {FILE} -p 'The town lies behind the hill.' --embd-normalize -1",
    "gpt2": f"llama-completion -m {FILE} -p 'The town' -n 20 --temp 0 -no-cnv",
    "t5": f"llama-completion -m {FILE} -p 'The town lies behind the hill.' -n 20 --temp 0 -no-cnv",
}
"""Shell commands that run a model, by architecture."""
SAID = {
    "gpt2": "A text begins after the token that ends documents, which llama.cpp puts there.",
    "t5": "The prompt is what the encoder reads; llama.cpp puts the token after it that ends texts, and begins the "
    "decoder's text. `<extra_id_0>`, `<extra_id_1>`, ... stand for gaps in it, where it has learnt to fill such.",
}


def readme(name: str, architecture: str, pooling: str) -> str:
    """The text of the README.md.

    Args:
        name: the recipe's name.
        architecture: bert, gpt2 or t5.
        pooling: how the states of an encoder become one vector: mean or cls.
    """
    of_vectors = f"Vectors are the {pooling} of the last layer's states, those of `bakeoff embed --pooling {pooling}`."
    return f"""# {markdown.text(name)} as GGUF

Written by Bakeoff in float32 for llama.cpp; `llama-quantize` makes smaller ones. {SAID.get(architecture, of_vectors)} \
Bakeoff reads texts in Unicode's NFC and with one space for any white space; give llama.cpp such texts.

```
{USES[architecture]}
```
"""
