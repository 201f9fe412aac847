"""Rows that end leave the batch, once and again, and those that stay go on with their own memory."""

import pytest
import torch
from tests.conftest import shrink

from bakeoff.generation.config import GenerationConfig
from bakeoff.generation.generator import Generator
from bakeoff.generation.sampling import PromptSeed
from bakeoff.learner.pretraining_model import PretrainingModel

VOCABULARY, END, ROWS = 9, 3, 16
BANNED = [0, 1, 2, 7, 8]
"""Of four tokens that are left one ends a text, so that few texts are long."""


@pytest.mark.parametrize("name", ["gpt2-tiny", "prefix-lm-tiny", "bart-tiny"])
def test_each_row_is_written_as_if_it_were_alone_however_often_others_leave(name):
    torch.manual_seed(0)
    module = PretrainingModel(shrink(name), VOCABULARY).eval()
    for parameter in module.parameters():
        parameter.data *= 4 if parameter.dim() > 1 else 1
    draw = torch.Generator().manual_seed(1)
    prompts = [torch.randint(4, VOCABULARY, (1 + row % 3,), generator=draw).tolist() for row in range(ROWS)]
    sources = None
    if module.model.config.sequence_to_sequence:
        sources = [torch.randint(4, VOCABULARY, (1 + row % 5,), generator=draw).tolist() for row in range(ROWS)]
    generator, config = Generator(module, END, BANNED), GenerationConfig(tokens=12, temperature=3.0)
    seeds = [PromptSeed(7, row) for row in range(ROWS)]
    rows = []
    module.model.register_forward_pre_hook(lambda _, given: rows.append(len(given[0].ids)))
    together = generator.write(prompts, config, sources, seeds)
    assert len(set(rows)) >= 3, "rows left the batch at least twice"
    for row, prompt in enumerate(prompts):
        source = None if sources is None else [sources[row]]
        assert generator.write([prompt], config, source, [seeds[row]]) == [together[row]]
