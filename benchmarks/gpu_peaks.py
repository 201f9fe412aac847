"""Peak rates of GPUs for products of bfloat16 with float32 sums, without sparsity, from their makers' data sheets."""

PEAKS = (
    ("h100 nvl", 835),
    ("h100 pcie", 756),
    ("h200", 989),
    ("h100", 989),  # SXM, whose name has the memory alone: "NVIDIA H100 80GB HBM3"
    ("gh200", 989),
    ("b200", 2250),
    ("a100", 312),
    ("l40s", 362),
    ("l4", 121),
    ("rtx 5090", 209.5),
    ("rtx 4090", 165.2),
    ("rtx 3090", 71),
    ("mi300x", 1307),
)
"""Words of a device's name, and TFLOP/s; the first entry whose words are all in the name counts."""


def peak_of(name: str) -> float | None:
    """The peak of a GPU in FLOP/s by its name; None: it is not in the table."""
    words = name.lower().replace("-", " ").split()
    for entry, rate in PEAKS:
        if all(word in words for word in entry.split()):
            return rate * 1e12
    return None


FORMULA = "share of the peak = tokens/s * FLOPs a token / peak"


def share_of_peak(tokens_per_second: float, flops_per_token: float, peak: float) -> float:
    """By `FORMULA`; the FLOPs are executed multiply-adds times two, forward and backward, of gathered targets alone."""
    return tokens_per_second * flops_per_token / peak
