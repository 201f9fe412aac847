"""XLNet (Yang et al. 2019): relative attention with memory; permutation language modelling."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, ClassVar

import torch
from typing_extensions import override

from bakeoff.interop.config_reader import ACTIVATIONS, THEIR_ACTIVATIONS, ConfigReader
from bakeoff.interop.families.family import Family
from bakeoff.interop.families.task_heads import ANSWERS, HeadForm, NotSaid, TaskHead, require_summary, token_head
from bakeoff.interop.links import Link, Many, linear, same, tied
from bakeoff.models.blocks.transformer import TransformerBlockConfig
from bakeoff.models.mixers.relative_attention import RelativeAttentionConfig
from bakeoff.objectives.permutation import PermutationConfig
from bakeoff.recipe import Recipe
from bakeoff.tasks.task_config import HeadClass

HEAD = "biases of tokens"
SUMMARY = {"summary_type": "last", "summary_use_proj": True, "summary_activation": "tanh"}
"""Keys of config.json that say how its task heads pool a row: W tanh(W_p h) at the last position, that of `<cls>`."""
MEMORY = 384
"""Length of the memory in tokens where the config has none: that of the published pre-training."""


def _heads_first(ours: str, theirs: Sequence[str], heads: int) -> Link:
    """Their weights (D, H, d_k) of several layers, which are one weight (H d_k ..., D) in ours."""

    def to_ours(each: Many) -> Many:
        return [torch.cat([one.flatten(1).T for one in each])]

    def to_theirs(each: Many) -> Many:
        return [part.T.unflatten(1, (heads, -1)) for part in each[0].chunk(len(theirs))]

    return Link((ours,), tuple(theirs), to_ours, to_theirs)


def _output(ours: str, theirs: str, heads: int) -> Link:
    """Their output weight (D, H, d_k), which is (D, H d_k) in ours."""
    return Link((ours,), (theirs,), lambda each: [each[0].flatten(1)], lambda each: [each[0].unflatten(1, (heads, -1))])


def _bias(ours: str, theirs: str) -> Link:
    """Their bias (H, d_k), which is (H, 1, d_k) in ours."""
    return Link((ours,), (theirs,), lambda each: [each[0][:, None]], lambda each: [each[0][:, 0]])


def _segments(ours: str, theirs: str) -> Link:
    """Their segment vectors (2, H, d_k), which are (H, 2, d_k) in ours."""
    return Link((ours,), (theirs,), lambda each: [each[0].transpose(0, 1)], lambda each: [each[0].transpose(0, 1)])


class XLNet(Family):
    """XLNet with both streams; head permutation."""

    model_types: ClassVar[tuple[str, ...]] = ("xlnet",)
    prefix: ClassVar[str] = "transformer."
    kinds: ClassVar[tuple[str, ...]] = ("unigram",)
    logits: ClassVar[Mapping[str, Sequence[str]]] = {"permutation": ("logits",)}

    def recipe(self, config: ConfigReader, tensors: Collection[str]) -> dict[str, Any]:
        """The recipe of an XLNet; its objective is permutation language modelling."""
        config.require("attn_type", "bi")
        config.require("clamp_len", -1)
        config.require("same_length", False)
        config.require("bi_data", False)
        width, heads = config.whole("d_model"), config.whole("n_head")
        config.require("d_head", width // heads)
        dropout = config.number("dropout", 0.1)
        memory = config.values.get("mem_len")
        return {
            "paper": "Yang et al. 2019, XLNet: Generalized Autoregressive Pretraining for Language Understanding, "
            "arXiv:1906.08237",
            "model": {
                "embedding": {"positions": "none", "norm": False},
                "encoder": {
                    "width": width,
                    "layers": config.whole("n_layer"),
                    "block": {
                        "kind": "transformer",
                        "norm": "post",
                        "mixer": {
                            "kind": "relative_attention",
                            "heads": heads,
                            "segments": True,
                            "memory": MEMORY if not memory else config.whole("mem_len"),
                        },
                        "ffn": {
                            "width": config.whole("d_inner"),
                            "activation": config.choice("ff_activation", ACTIVATIONS, "gelu"),
                            "dropout": dropout,
                        },
                    },
                },
                "dropout": dropout,
                "output_dropout": dropout,
                "norm_epsilon": config.number("layer_norm_eps", 1e-12),
            },
            "input": {"format": "continued_pair", "length": 512, "reuse": 256},
            "objective": [{"kind": "permutation", "rate": 1 / 6, "ngram": 5, "bias": True}],
        }

    @override
    def config(self, recipe: Recipe) -> dict[str, Any]:
        encoder = recipe.model.encoder
        if encoder is None or recipe.model.decoder is not None:
            raise NotSaid("it is not an encoder alone")
        if len(encoder.distinct()) != 1 or encoder.share != "none":
            raise NotSaid("its layers differ, or share parts")
        (block,) = encoder.distinct()
        if not isinstance(block, TransformerBlockConfig) or not isinstance(block.mixer, RelativeAttentionConfig):
            raise NotSaid("its layers are not a transformer's with relative attention")
        if [part.kind for part in recipe.objective] != ["permutation"]:
            kinds = " and ".join(part.kind for part in recipe.objective)
            raise NotSaid(f"it has learnt {kinds}, and the family has a head for permutation alone")
        return {
            "d_model": encoder.width,
            "n_layer": encoder.layers,
            "n_head": block.mixer.heads,
            "d_head": encoder.width // block.mixer.heads,
            "d_inner": block.ffn.width,
            "ff_activation": THEIR_ACTIVATIONS[block.ffn.activation],
            "dropout": recipe.model.dropout,
            "layer_norm_eps": recipe.model.norm_epsilon,
            "mem_len": block.mixer.memory,
            "untie_r": True,
            "attn_type": "bi",
            "architectures": ["XLNetLMHeadModel"],
        }

    def task(self, form: HeadForm, recipe: Recipe) -> TaskHead:
        """For rows two linear layers with tanh between them at [CLS], the last position; for tokens a linear layer."""
        if not form.of_rows:
            head = token_head("XLNet", form)
            simple = "Simple" if form.ending == ANSWERS else ""
            return head._replace(architecture=head.architecture + simple)
        if form.pooling != "cls" or not recipe.input.start_last:
            raise NotSaid(f"its rows are pooled by {form.pooling}, and XLNet's by [CLS], their last position")
        if form.pooler != "tanh":
            raise NotSaid(f"its layer over [CLS] ends with {form.pooler}, and XLNet's with tanh")
        links = [*linear("pooler", "sequence_summary.summary"), *linear("output", "logits_proj")]
        return TaskHead(f"XLNetFor{form.ending}", links, SUMMARY, pads_before=True)

    @override
    def form(self, ending: HeadClass, recipe: Recipe, config: ConfigReader) -> HeadForm:
        form = super().form(ending, recipe, config)
        if form.of_rows:
            require_summary(config, SUMMARY)
        return form

    def body(self, recipe: Recipe) -> Iterator[Link]:
        """Links of the table of tokens, the query stream's first vector, and the layers."""
        encoder = recipe.model.encoder
        assert encoder is not None
        (block,) = encoder.distinct()
        assert isinstance(block, TransformerBlockConfig)
        assert isinstance(block.mixer, RelativeAttentionConfig)
        heads = block.mixer.heads
        yield same("model.embedding.tokens.weight", "transformer.word_embedding.weight", vocabulary=True)
        if recipe.model.two_streams:
            yield Link(
                ("model.query",),
                ("transformer.mask_emb",),
                lambda each: [each[0].flatten()],
                lambda each: [each[0][None, None]],
            )
        for number in range(encoder.layers):
            mixer, network = (f"model.encoder.parts.{part}.{number}" for part in ("mixer", "ffn"))
            attention, forward = f"transformer.layer.{number}.rel_attn", f"transformer.layer.{number}.ff"
            ours = f"{mixer}.function"
            yield _heads_first(f"{ours}.query.weight", [f"{attention}.q"], heads)
            yield _heads_first(f"{ours}.key_value.weight", [f"{attention}.k", f"{attention}.v"], heads)
            yield _heads_first(f"{ours}.distance.weight", [f"{attention}.r"], heads)
            yield _output(f"{ours}.output.weight", f"{attention}.o", heads)
            yield _bias(f"{ours}.content_bias", f"{attention}.r_w_bias")
            yield _bias(f"{ours}.distance_bias", f"{attention}.r_r_bias")
            yield _bias(f"{ours}.segment_bias", f"{attention}.r_s_bias")
            yield _segments(f"{ours}.segments", f"{attention}.seg_embed")
            yield from linear(f"{mixer}.norm", f"{attention}.layer_norm")
            yield from linear(f"{network}.function.input", f"{forward}.layer_1")
            yield from linear(f"{network}.function.output", f"{forward}.layer_2")
            yield from linear(f"{network}.norm", f"{forward}.layer_norm")

    def heads(self, recipe: Recipe) -> Iterator[Link]:
        """Links of the tied table of tokens and of the biases of tokens, which are zeros if the recipe has none."""
        (objective,) = recipe.objective
        assert isinstance(objective, PermutationConfig)
        if objective.bias:
            yield same("heads.permutation.bias", "lm_loss.bias", vocabulary=True).may_miss(HEAD)
        else:
            yield Link(
                ("model.embedding.tokens.weight",),
                ("lm_loss.bias",),
                list,
                lambda each: [each[0].new_zeros(len(each[0]))],
                vocabulary=True,
            )
        yield tied("lm_loss.weight", "transformer.word_embedding.weight")
