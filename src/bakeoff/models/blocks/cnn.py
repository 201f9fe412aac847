"""Pham's convolutional language model: a window of fixed size, convolved, and reduced without pooling."""

from typing import ClassVar, Literal, cast

import torch
import torch.nn.functional as F
from pydantic import Field
from torch import Tensor, nn
from typing_extensions import override

from bakeoff.errors import UserError
from bakeoff.models.blocks.batch_norm import BatchNorm
from bakeoff.models.blocks.block import BlockBaseConfig
from bakeoff.models.context import BuildContext, Context
from bakeoff.models.part import Part, State, last_inputs
from bakeoff.ops.dropout import dropout
from bakeoff.ops.windows import document_ages, last_tokens

WORD_SHARE = 0.9
"""Factor of the word's vector in a slot; the vector of the position in the window has the rest, 0.1."""

MOST_CONVOLUTIONS = 64
"""Largest number of convolutions side by side, and of those one after the other; the paper's have a handful."""


class CnnBlockConfig(BlockBaseConfig):
    """The whole network of Pham et al. 2016 (EMNLP, Convolutional Neural Network Language Models) as one block.

    A convolution for each kernel size side by side (COM), each of several layers (ML-CNN), each layer followed by
    another of kernel size 1 (MLPConv), and a highway layer.
    """

    kind: Literal["cnn"] = "cnn"
    """The block's name."""
    window: int = Field(default=16, gt=0)
    """Number of tokens on which an output depends, its own and those before it."""
    kernels: list[int] = Field(default=[3], min_length=1, max_length=MOST_CONVOLUTIONS)
    """Kernel sizes of parallel convolutions; odd, because they are centred within the window."""
    convolutions: int = Field(default=1, gt=0, le=MOST_CONVOLUTIONS)
    """Number of convolutions of each kernel size, one after the other."""
    mlp: bool = False
    """Each convolution is followed by one of kernel size 1."""
    reduce: Literal["dense", "max_pool"] = "dense"
    """The reduction of a window to one vector: a linear layer over the whole window, or each channel's largest values
    in their order.
    """
    keep: int = Field(default=2, gt=0)
    """Width after the reduction, as a multiple of the model's; for max_pool the number of largest values."""
    window_dropout: float = Field(default=0.1, ge=0, lt=1)
    """Dropout of the input of each convolution."""

    def output_width(self, width: int, layer: int) -> int:
        """The sum of the reduced widths of all convolutions, which stand side by side."""
        return len(self.kernels) * self.keep * width

    def build(self, context: BuildContext) -> dict[str, Part]:
        """The convolutions, and the highway layer.

        Raises:
            UserError: an even kernel, more values to keep than there are, or a model that is not causal.
        """
        even = [kernel for kernel in self.kernels if kernel < 1 or kernel % 2 == 0]
        if even:
            raise UserError(f"block.kernels: {even[0]} is not an odd number; the kernels are centred, such as 3 or 5")
        if self.reduce == "max_pool" and self.keep > self.window:
            raise UserError(f"block.keep: {self.keep} values are more than the {self.window} slots of the window")
        if not context.causal or context.source is not None:
            raise UserError("block: cnn predicts the next token from a window alone; use 'decoder' without 'encoder'")
        return {"mixer": WindowConvolution(self, context), "ffn": Highway(self.output_width(context.width, 0), context)}


class WindowConvolution(Part):
    """The window of every position, its convolutions, and their reduction to one vector.

    Slot s of a window of S holds 0.9 x[t - S + 1 + s] + 0.1 p[s], with x = 0 before the document's beginning and p a
    learned table, which makes the convolution depend on the position. All positions' windows are convolved at once:
    B * T windows of S * D values. (The first convolution is linear in the tokens, so that their products with the taps
    could be shared by the windows that they are in; but masking and adding those takes as long as the products do.)

    Shapes: B batch, T length, D width, S slots of a window, N = B * T windows.
    """

    skips_padding = True
    independent_rows = False

    def __init__(self, config: CnnBlockConfig, context: BuildContext) -> None:
        super().__init__()
        self.window = config.window
        self.places = nn.Embedding(config.window, context.width)
        self.columns = nn.ModuleList(Column(config, kernel, context) for kernel in config.kernels)

    def forward(self, x: Tensor, context: Context, state: State = None) -> tuple[Tensor, State]:
        """(B, T, D) to (B, T, D'); the state is the last S - 1 inputs."""
        left = cast(Tensor | None, state)
        if left is not None and context.row.padding_mask is not None:
            x = (
                x * context.row.padding_mask[..., None]
            )  # what is remembered of padding is what stands before the first token
        documents = context.row.owners
        ages = None if documents is None else document_ages(documents)
        words = last_tokens(x, self.window, ages, left).flatten(1, 2)  # (S, N, D)
        image = torch.lerp(self.places.weight[:, None].to(words.dtype), words, WORD_SHARE)
        padding_mask = None if documents is None else (documents > 0).flatten()
        y = torch.cat([column(image, padding_mask) for column in self.columns], dim=-1)
        return y.unflatten(0, x.shape[:2]), last_inputs(left, x)

    def start(self, rows: int, like: Tensor) -> State:
        """Zeros to the left of the first token."""
        return like.new_zeros(rows, self.window - 1, self.places.embedding_dim)

    def flops_per_token(self, length: int) -> int:
        """Floating-point operations of one token's forward pass; the row's length does not matter."""
        return sum(cast(Column, column).flops_per_window() for column in self.columns)

    def kernels(self, x: Tensor, context: Context) -> Tensor | None:
        """(D', S) the weight of each slot in every output: the length of its vector of weights in the reduction.

        None for max_pool, which has no weights.
        """
        kernels = [weights for column in self.columns if (weights := cast(Column, column).slot_weights()) is not None]
        return torch.cat(kernels) if kernels else None

    def offsets(self) -> list[int]:
        """Distance of each token of the window from the output, in tokens; negative before it."""
        return list(range(1 - self.window, 1))

    def reach(self) -> tuple[float, float]:
        """The number of tokens of the window before the output, and 0 after it."""
        return self.window - 1, 0


class Column(nn.Module):
    """The convolutions of one kernel size, the highway around them, and their reduction.

    As in the paper's code, where e are the window's vectors, c is the last convolution after its batch norm and BN is
    over every slot and channel: g = sigmoid(c - 2), h = BN(relu(g relu(c) + (1 - g) e)), y = relu(W h + b); or the
    largest values of h over the slots.
    """

    def __init__(self, config: CnnBlockConfig, kernel: int, context: BuildContext) -> None:
        super().__init__()
        width, kernels = context.width, [kernel, 1] if config.mlp else [kernel]
        self.window, self.keep = config.window, config.keep
        self.window_dropout, self.dropout = config.window_dropout, context.dropout
        self.convolutions = nn.ModuleList(SlotConvolution(size, width) for size in kernels * config.convolutions)
        self.norm = BatchNorm(config.window, width)
        dense = config.reduce == "dense"
        self.output = nn.Linear(config.window * width, config.keep * width) if dense else None

    def forward(self, image: Tensor, padding_mask: Tensor | None) -> Tensor:
        """(S, N, D) windows to (N, D')."""
        x = convolved = image
        for convolution in self.convolutions:
            convolved = convolution(dropout(x, self.window_dropout, self.training), padding_mask)
            x = F.relu(convolved)
        x = F.relu(torch.lerp(image.to(x.dtype), x, torch.sigmoid(convolved + CARRY_BIAS)))
        x = self.norm(x, padding_mask)
        if self.output is None:
            largest = x.topk(self.keep, dim=0).indices.sort(dim=0).values
            return cast(Tensor, x.gather(0, largest).transpose(0, 1).flatten(1))
        x = dropout(x.transpose(0, 1).flatten(1), self.dropout, self.training)  # (N, S * D)
        return F.relu(self.output(x))

    def slot_weights(self) -> Tensor | None:
        """(O, S) the length of each slot's vector of weights for each output, None without weights."""
        if self.output is None:
            return None
        return cast(Tensor | None, torch.linalg.vector_norm(self.output.weight.unflatten(1, (self.window, -1)), dim=-1))

    def flops_per_window(self) -> int:
        """Floating-point operations of one window's forward pass."""
        weights = sum(cast(SlotConvolution, each).weight.numel() for each in self.convolutions)
        dense = 0 if self.output is None else self.output.in_features * self.output.out_features
        return 2 * (self.window * weights + dense)


class SlotConvolution(nn.Module):
    """A convolution over the slots of a window, with zeros outside of it, and its batch norm, which has the bias."""

    matrices: ClassVar[tuple[str, ...]] = ()

    def __init__(self, kernel: int, width: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(kernel, width, width))  # (K, D in, D out)
        self.norm = BatchNorm(1, width)

    def initialise(self) -> None:
        """Draw normal weights, as in the paper's code; the norm makes their scale matter little."""
        nn.init.normal_(self.weight, std=max((2 / self.weight.numel()) ** 0.5, 0.01))

    def forward(self, x: Tensor, padding_mask: Tensor | None) -> Tensor:
        """(S, N, D) to (S, N, D)."""
        slots, (kernel, width, _) = x.shape[0], self.weight.shape
        padded = F.pad(x, (0, 0, 0, 0, kernel // 2, kernel // 2))
        y = padded[:slots].reshape(-1, width) @ self.weight[0]
        for tap in range(1, kernel):
            y = torch.addmm(y, padded[tap : tap + slots].reshape(-1, width), self.weight[tap])
        return cast(Tensor, self.norm(y.view_as(x), padding_mask))


CARRY_BIAS = -2.0
"""Bias added to the scores of a highway's gate, so that it passes on its input at first."""


class Highway(Part):
    """g relu(W x + b) + (1 - g) x with g = sigmoid(W_g x + b_g - 2) (Srivastava et al. 2015, arXiv:1505.00387).

    Dropout stands before and after the layer.
    """

    skips_padding = True

    def __init__(self, width: int, context: BuildContext) -> None:
        super().__init__()
        self.transform = nn.Linear(width, width)
        self.gate = nn.Linear(width, width)
        self.dropout = context.dropout

    def forward(self, x: Tensor, context: Context, state: State = None) -> tuple[Tensor, State]:
        """(B, T, D) to (B, T, D)."""
        x = dropout(x, self.dropout, self.training)
        gate = torch.sigmoid(self.gate(x) + CARRY_BIAS)
        y = gate * F.relu(self.transform(x)) + (1 - gate) * x
        return dropout(y, self.dropout, self.training), None

    @property
    @override
    def reads_packed(self) -> bool:
        return True

    def flops_per_token(self, length: int) -> int:
        """Floating-point operations of one token's forward pass."""
        return 4 * self.gate.in_features**2
