"""A stack of layers: the distinct parts that it owns, and the order in which it applies them."""

from typing import ClassVar, Literal, cast

import torch
from pydantic import Field
from torch import Tensor, nn

from bakeoff.config import Config
from bakeoff.errors import UserError
from bakeoff.models.attention_needs import AttentionNeeds
from bakeoff.models.blocks import BlockConfig
from bakeoff.models.context import BuildContext, Context
from bakeoff.models.distances import DistanceTable, RelativeBias, distance_table, relative_bias
from bakeoff.models.layer import apply_layer, apply_layer_at, applying
from bakeoff.models.layer_weighting import LayerWeighting
from bakeoff.models.packing import at_positions, packing_of, worth_packing
from bakeoff.models.part import Part, State, require_same_shapes
from bakeoff.models.value_residual import ValueResidual, value_residual
from bakeoff.ops.cpu.bfloat16 import autocast_to_bfloat16
from bakeoff.ops.dropout import dropout
from bakeoff.ops.norm import norm_alone

MOST_LAYERS = 1024
"""Largest number of layers; the deepest published transformer has 1,000 (Wang et al. 2022, arXiv:2203.00555)."""
SHARED_PARTS = {"none": (), "attention": ("mixer",), "ffn": ("ffn",), "all": ("mixer", "cross", "ffn")}


class StackConfig(Config):
    """Layers of blocks, some of whose parts may be shared (ALBERT: Lan et al. 2020, arXiv:1909.11942, section 3.1)."""

    scales_with_width: ClassVar = frozenset({"width"})

    width: int = Field(gt=0)
    """D, the width of the hidden states; blocks with a width of their own change it from layer to layer."""
    layers: int = Field(gt=0, le=MOST_LAYERS)
    """Number of layers."""
    share: Literal["none", "attention", "ffn", "all"] = "none"
    """The parts of a layer that layers have in common: none, the mixer (attention, whatever the mixer's kind), the
    feed-forward network (ffn), or all."""
    groups: int = Field(default=1, gt=0)
    """Number of runs of neighbouring layers within which parts are shared."""
    layer_weights: bool = False
    """The input of whatever follows a part of a layer is a learned linear mix of the stack's input and the outputs of
    all parts so far, which begins as the part's output alone (DenseFormer: Pagliardini et al. 2024, arXiv:2402.02622;
    GPT-BERT: arXiv:2410.24159)."""
    block: BlockConfig | list[BlockConfig]
    """The block of all layers, or a list of blocks: one with `at` is the block of that layer, and one with `every` is
    the block of the first layer and of each N-th layer after it. The others make up the remaining layers in their
    order, each as many as its `repeat` says; a single one makes up all of them."""

    def distinct(self) -> list[BlockConfig]:
        """The block configs as the recipe lists them, without repetition."""
        return self.block if isinstance(self.block, list) else [self.block]

    def layer_blocks(self) -> list[BlockConfig]:
        """The block config of each layer.

        Raises:
            UserError: the list of blocks does not make up `layers` layers.
        """
        if not isinstance(self.block, list):
            return [self.block] * self.layers
        placed: dict[int, BlockConfig] = {}
        for block in self.block:
            if block.at is not None:
                layer = self.layers if block.at == "last" else block.at
                if not 1 <= layer <= self.layers or layer in placed:
                    wrong = "has a block already" if layer in placed else f"is not one of the {self.layers} layers"
                    raise UserError(f"block: at: {block.at}: this {wrong}")
                placed[layer] = block
        regular = [(block, block.every) for block in self.block if block.every is not None]
        if len(regular) > 1:
            raise UserError(
                "block: several blocks have 'every', and each claims the first layer; give it to one of them"
            )
        for block, every in regular:
            placed = dict.fromkeys(range(1, self.layers + 1, every), block) | placed
        others = [block for block in self.block if block.at is None and block.every is None]
        rest = self.layers - len(placed)
        if len(others) == 1 and others[0].repeat is None:
            others = others * rest
        else:
            others = [block for block in others for _ in range(block.repeat or 1)]
        if len(others) != rest:
            raise UserError(f"block: the list makes {len(others) + len(placed)} layers, but layers is {self.layers}")
        following = iter(others)
        return [placed[layer] if layer in placed else next(following) for layer in range(1, self.layers + 1)]

    @property
    def output_width(self) -> int:
        """The width of the hidden states after the last layer."""
        width = self.width
        for layer, block in enumerate(self.layer_blocks()):
            width = block.output_width(width, layer)
        return width

    def shares(self, part: str) -> bool:
        """Whether layers of one group have this part in common."""
        return part in SHARED_PARTS[self.share]

    def group_of(self, layer: int) -> int:
        """The number of the group that a layer belongs to."""
        return layer * self.groups // self.layers

    def build(self, context: BuildContext) -> "Stack":
        """Build the layers, shared parts once.

        Raises:
            UserError: layers that are to share a part differ in its shapes.
        """
        if self.groups > self.layers:
            raise UserError(f"groups: {self.groups} groups are more than the {self.layers} layers")
        return Stack(self, context)


class Stack(nn.Module):
    """The distinct parts and an index map over them: layer l applies `parts[name][index]` for `index_map[l]`."""

    def __init__(self, config: StackConfig, context: BuildContext) -> None:
        super().__init__()
        self.config = config
        self.compiled = False
        self.replayed = False
        self.recomputed = False
        blocks = config.layer_blocks()
        owned: dict[str, list[Part]] = {}
        shared: dict[tuple[str, int], tuple[int, int]] = {}  # (name, group) -> index of the part, first layer with it
        self.index_map: list[list[tuple[str, int]]] = []
        width, contexts = config.width, []
        for layer, block in enumerate(blocks):
            applied = []
            contexts.append(context.at(layer, width))
            for name, part in block.build(contexts[-1]).items():
                distinct = owned.setdefault(name, [])
                key = (name, config.group_of(layer))
                if config.shares(name) and key in shared:
                    index, first = shared[key]
                    require_same_shapes(name, first, distinct[index], layer, part)
                else:
                    index = len(distinct)
                    distinct.append(part)
                    shared[key] = (index, layer)
                applied.append((name, index))
            self.index_map.append(applied)
            width = block.output_width(width, layer)
            if config.layer_weights and width != config.width:
                raise UserError(
                    f"layer_weights: layer {layer + 1} makes states {width} wide of {config.width}, which cannot be "
                    "mixed; set it to false"
                )
        self.parts = nn.ModuleDict({name: nn.ModuleList(distinct) for name, distinct in owned.items()})
        self.layers = tuple(tuple(owned[name][index] for name, index in applied) for applied in self.index_map)
        self.norm = context.norm(width) if blocks[-1].needs_final_norm else nn.Identity()
        self.dropout = context.output_dropout
        mixers = [block.mixer_config for block in blocks]
        self.attention_needs = AttentionNeeds.of(mixers, contexts, [block.cross_config for block in blocks])
        self.bias: RelativeBias | None = relative_bias(mixers, context.causal)
        self.distances: DistanceTable | None = distance_table(mixers, contexts)
        self.value_residual: ValueResidual | None = value_residual(mixers, contexts)
        self.weighting = LayerWeighting(sum(map(len, self.layers))) if config.layer_weights else None

    def forward(self, x: Tensor, context: Context, state: State = None) -> tuple[Tensor, State]:
        """(B, T, D) to (B, T, D'), and the state after the last token where one is given.

        If the context names (B, M) wanted positions, the output is (B, M, D') at these alone, and nothing else is
        computed after the last mixer. States at padding are meaningless.
        """
        if autocast_to_bfloat16(x):
            x = x.bfloat16()
        context = self._with_bias(x, context)
        wanted, context = context.wanted, context._replace(wanted=None)
        apply = applying(self.compiled, self.replayed and self.training, self.recomputed and self.training)
        eager = apply is apply_layer
        if context.row.padding_mask is not None and eager and not context.queries and worth_packing(x):
            packing = packing_of(context.row.padding_mask)
            x, context = packing.packed(x), context._replace(packing=packing)
        before = (None,) * len(self.layers) if state is None else cast(tuple[State, ...], state)
        states: list[State] = []
        outputs = [x]  # of all parts so far, where they are mixed
        contexts = self._contexts(context)
        for number, (layer, context, remembered) in enumerate(zip(self.layers, contexts, before, strict=True), 1):
            previous = cast(tuple[State, ...] | None, remembered)
            if self.weighting is None:
                if wanted is not None and previous is None and number == len(self.layers) and eager:
                    return self.output(apply_layer_at(layer, x, context, wanted)), None
                x, after = apply(layer, x, context, previous)
            else:
                after = ()
                for part, state_of_part in zip(layer, previous or (None,) * len(layer), strict=True):
                    x, new = apply((part,), x, context, (state_of_part,))
                    after += new
                    outputs.append(x)
                    x = self.weighting(outputs)
            states.append(after)
        if wanted is not None:
            x = at_positions(x, wanted, context.packing)
        elif context.packing is not None:
            x = context.packing.spread(x)
        return self.output(x), None if state is None else tuple(states)

    def output(self, x: Tensor) -> Tensor:
        """(B, T, D) states of a layer after the stack's final norm and dropout, as for the last layer."""
        normed = norm_alone(x, self.norm) if torch.is_grad_enabled() else self.norm(x)
        return dropout(normed, self.dropout, self.training)

    def outputs(self, x: Tensor, context: Context) -> list[Tensor]:
        """(B, T, D) the input of the first layer and the output of each layer, before the final norm."""
        steps, _ = self.steps(x, context)
        return [x, *(states[-1] for states in steps)]

    def steps(self, x: Tensor, context: Context) -> tuple[list[list[Tensor]], Context]:
        """The (B, T, D) inputs of each part of each layer, followed by the output of the layer's last part.

        The norm after the last layer belongs to no part and is left out. The second result is the context of the
        parts.
        """
        context = self._with_bias(x, context)
        steps: list[list[Tensor]] = []
        outputs = [x]
        for layer, of_layer in zip(self.layers, self._contexts(context), strict=True):
            states = [x]
            for part in layer:
                x, _ = part(x, of_layer)
                if self.weighting is not None:
                    outputs.append(x)
                    x = self.weighting(outputs)
                states.append(x)
            steps.append(states)
        return steps, context

    def _with_bias(self, x: Tensor, context: Context) -> Context:
        if self.bias is not None:
            context = context._replace(attention_bias=self.bias(context.start, x.shape[1]))
        return context if self.distances is None else context._replace(distances=self.distances())

    def _contexts(self, context: Context) -> list[Context]:
        """The context of each layer."""
        layers = len(self.layers)
        return [context] * layers if self.value_residual is None else self.value_residual.contexts(context, layers)

    def start(self, rows: int, like: Tensor) -> State:
        """The state before the first token: an entry for each layer, with an entry for each part."""
        return tuple(tuple(part.start(rows, like) for part in layer) for layer in self.layers)

    def flops_per_token(self, length: int, source_length: int = 0) -> int:
        """Floating-point operations of one token's forward pass, every application of a shared part counted.

        Args:
            length: number of tokens of a row.
            source_length: number of tokens in the encoder's output, to which the layers attend.
        """
        return sum(
            self.parts_named(name)[index].flops_per_token(source_length if name == "cross" else length)
            for applied in self.index_map
            for name, index in applied
        )

    def flops_per_query(self, length: int) -> int:
        """Floating-point operations of one row of a second stream, beside a row of `length` tokens."""
        return sum(part.flops_per_query(length) for layer in self.layers for part in layer)

    def flops_per_pair(self) -> int:
        """Floating-point operations for one more token of its row that a token sees."""
        return sum(part.flops_per_pair() for layer in self.layers for part in layer)

    def flops_per_source_token(self) -> int:
        """Floating-point operations for the keys and values that the layers make of one token of the source."""
        cross = self.parts_named("cross")
        indices = [index for applied in self.index_map for name, index in applied if name == "cross"]
        return sum(cross[index].flops_per_source_token() for index in indices)

    def parts_named(self, name: str) -> list[Part]:
        """The distinct parts of that name."""
        return [cast(Part, part) for part in cast(nn.ModuleList, self.parts[name])] if name in self.parts else []

    @property
    def skips_padding(self) -> bool:
        """Prompts of unlike lengths can be read at once, with padding before the shorter ones."""
        return all(part.skips_padding for layer in self.layers for part in layer)

    @property
    def independent_rows(self) -> bool:
        """Whether rows of a batch are independent in training, so that a batch can be cut into micro-batches."""
        return all(part.independent_rows for layer in self.layers for part in layer)

    def reach(self) -> tuple[float, float]:
        """The largest numbers of tokens to the left and to the right on which an output depends."""
        reaches = [part.reach() for layer in self.layers for part in layer]
        return sum(left for left, _ in reaches), sum(right for _, right in reaches)


def parts_in(module: nn.Module) -> list[Part]:
    """The distinct parts of the layers of all stacks in a module."""
    stacks = [each for each in module.modules() if isinstance(each, Stack)]
    return [part for stack in stacks for name in stack.parts for part in stack.parts_named(name)]
