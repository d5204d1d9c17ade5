"""How torch functions treat relevance, by name. Data only.

A function that is in none of the lists is not supported: a model that passes relevance through it is rejected.
"""

from __future__ import annotations

# Rearrangements of numbers: relevance goes back to where the numbers came from, for every rule.
REARRANGING = (
    "__getitem__", "bfloat16", "cat", "chunk", "clone", "contiguous", "double", "dropout", "expand", "expand_as",
    "flatten", "float", "gather", "half", "index_select", "masked_fill", "movedim", "narrow", "permute", "repeat",
    "repeat_interleave", "reshape", "select", "split", "squeeze", "stack", "swapaxes", "t", "to", "transpose", "type",
    "type_as", "unbind", "unflatten", "unsqueeze", "view", "view_as", "where",
)  # fmt: skip

# Element-wise functions: "non-linear activation functions are ignored" (Voita et al. 2019, appendix A).
ACTIVATIONS = (
    "celu", "clamp", "elu", "gelu", "hardswish", "hardtanh", "leaky_relu", "mish", "relu", "relu6", "selu", "sigmoid",
    "silu", "softplus", "softsign", "tanh",
)  # fmt: skip

# Parts of norms and scales: held constant at the values of this run.
FACTORS = ("exp", "pow", "reciprocal", "rsqrt", "sqrt", "square", "std", "var")

SUMS = ("add", "radd", "iadd")
DIFFERENCES = ("sub", "isub", "subtract")
PRODUCTS = ("mul", "rmul", "imul", "multiply")
QUOTIENTS = ("div", "true_divide", "truediv", "itruediv", "divide")
MATRIX_PRODUCTS = ("matmul", "bmm", "rmatmul")
REDUCTIONS = ("mean", "sum")

KINDS: dict[str, str] = {
    "linear": "linear",
    "addmm": "addmm",
    "neg": "negation",
    "softmax": "softmax",
    "layer_norm": "norm",
    "scaled_dot_product_attention": "attention",
    **dict.fromkeys(REARRANGING, "rearranging"),
    **dict.fromkeys(ACTIVATIONS, "activation"),
    **dict.fromkeys(FACTORS, "factor"),
    **dict.fromkeys(SUMS, "sum"),
    **dict.fromkeys(DIFFERENCES, "difference"),
    **dict.fromkeys(PRODUCTS, "product"),
    **dict.fromkeys(QUOTIENTS, "quotient"),
    **dict.fromkeys(MATRIX_PRODUCTS, "matrix_product"),
    **dict.fromkeys(REDUCTIONS, "reduction"),
}


def plain_name(function: object) -> str:
    """`add` for `torch.add`, `Tensor.add` and `+`; names of functions that change their input end in `_`."""
    name = str(getattr(function, "__name__", function))
    bare = name.strip("_")
    return bare if bare in KINDS and not (name.endswith("_") and not name.startswith("_")) else name
