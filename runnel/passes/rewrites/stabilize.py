"""Numerically stabilising rewrites: safe forms of expressions that overflow or cancel.

Theano's lesson: the notation of a paper often does not say how to compute a formula. Each rule
removes an overflow, an underflow or a cancellation.
"""

from __future__ import annotations

from runnel.passes.program.program import Node, Program
from runnel.passes.rewrites.substitution import Rewriter, RuleSet

_rules = RuleSet()


def stabilize(program: Program) -> Program:
    """The program with unstable expressions replaced by stable ones of the same value."""
    return _rules.apply(program)


@_rules.rule("Log")
def _log_softmax(rewriter: Rewriter, node: Node) -> int | None:
    """log(softmax(x)): the probability underflows to 0 long before its logarithm does."""
    softmax = rewriter.producer(node.inputs[0], "Softmax")
    if softmax is None:
        return None
    return rewriter.emit("LogSoftmax", softmax.inputs[0], dims=rewriter.dims(node.outputs[0]))


@_rules.rule("Log")
def _log_sigmoid(rewriter: Rewriter, node: Node) -> int | None:
    """log(sigmoid(x)) = -softplus(-x): finite where the sigmoid underflows."""
    sigmoid = rewriter.producer(node.inputs[0], "Sigmoid")
    if sigmoid is None:
        return None
    dims = rewriter.dims(node.outputs[0])
    negated = rewriter.emit("Neg", sigmoid.inputs[0], dims=dims)
    return rewriter.emit("Neg", rewriter.emit("Softplus", negated, dims=dims), dims=dims)


@_rules.rule("Log")
def _log_one_minus_sigmoid(rewriter: Rewriter, node: Node) -> int | None:
    """log(1 - sigmoid(x)) = -softplus(x): finite where the sigmoid rounds to 1."""
    difference = rewriter.producer(node.inputs[0], "Sub")
    if difference is None or not rewriter.is_scalar_constant(difference.inputs[0], 1):
        return None
    sigmoid = rewriter.producer(difference.inputs[1], "Sigmoid")
    if sigmoid is None:
        return None
    dims = rewriter.dims(node.outputs[0])
    return rewriter.emit("Neg", rewriter.emit("Softplus", sigmoid.inputs[0], dims=dims), dims=dims)


@_rules.rule("Log")
def _log_one_plus(rewriter: Rewriter, node: Node) -> int | None:
    """log(1 + x) = log1p(x): a small x is not rounded away.

    log(1 + exp(x)) = softplus(x): no overflow in between.
    """
    total = rewriter.producer(node.inputs[0], "AddV2", "Add")
    if total is None:
        return None
    dims = rewriter.dims(node.outputs[0])
    for one, x in (total.inputs, total.inputs[::-1]):
        if not rewriter.is_scalar_constant(one, 1):
            continue
        exponential = rewriter.producer(x, "Exp")
        if exponential is not None and rewriter.infos[x].dtype.is_floating:
            return rewriter.emit("Softplus", exponential.inputs[0], dims=dims)
        return rewriter.emit("Log1p", x, dims=dims)
    return None


@_rules.rule("Log")
def _log_exp(rewriter: Rewriter, node: Node) -> int | None:
    """log(exp(x)) = x: no overflow in between."""
    exponential = rewriter.producer(node.inputs[0], "Exp")
    if exponential is None or rewriter.infos[exponential.inputs[0]].dtype.is_complex:
        return None
    return exponential.inputs[0]


@_rules.rule("Log")
def _log_sum_exp(rewriter: Rewriter, node: Node) -> int | None:
    """log(sum(exp(x))) = m + log(sum(exp(x - m))), m the largest x: no overflow."""
    total = rewriter.producer(node.inputs[0], "Sum")
    exponential = rewriter.producer(total.inputs[0], "Exp") if total is not None else None
    if total is None or exponential is None:
        return None
    x, axes = exponential.inputs[0], total.inputs[1]
    if not rewriter.infos[x].dtype.is_floating or rewriter.constant(axes) is None:
        return None
    if rewriter.producer(x, "Sub") is not None:
        return None  # the user has shifted it already (as reduce_logsumexp does)
    keep = total.attrs["keep_dims"]
    index_type = rewriter.infos[axes].dtype
    dims = rewriter.dims(node.outputs[0])
    largest = rewriter.emit("Max", x, axes, keep_dims=True, Tidx=index_type)
    # An infinite maximum would make inf - inf below.
    finite = rewriter.emit("IsFinite", largest)
    zero = rewriter.emit("ZerosLike", largest)
    shift = rewriter.emit("SelectV2", finite, largest, zero)
    shifted = rewriter.emit("Sub", x, shift, dims=rewriter.dims(x))
    powers = rewriter.emit("Exp", shifted, dims=rewriter.dims(x))
    summed = rewriter.emit("Sum", powers, axes, keep_dims=keep, Tidx=index_type, dims=dims)
    logarithm = rewriter.emit("Log", summed, dims=dims)
    if not keep:
        shift = rewriter.emit("Sum", shift, axes, keep_dims=False, Tidx=index_type, dims=dims)
    return rewriter.emit("AddV2", logarithm, shift, dims=dims)


@_rules.rule("Sub")
def _exp_minus_one(rewriter: Rewriter, node: Node) -> int | None:
    """exp(x) - 1 = expm1(x): no cancellation near 0."""
    exponential = rewriter.producer(node.inputs[0], "Exp")
    if exponential is None or not rewriter.is_scalar_constant(node.inputs[1], 1):
        return None
    return rewriter.emit("Expm1", exponential.inputs[0], dims=rewriter.dims(node.outputs[0]))


@_rules.rule("Sqrt")
def _sqrt_square(rewriter: Rewriter, node: Node) -> int | None:
    """sqrt(x * x) = |x|: the square does not overflow or underflow."""
    square = rewriter.producer(node.inputs[0], "Square", "Mul")
    if square is None or rewriter.infos[square.inputs[0]].dtype.is_complex:
        return None
    if square.op_def.name == "Mul" and square.inputs[0] != square.inputs[1]:
        return None
    return rewriter.emit("Abs", square.inputs[0], dims=rewriter.dims(node.outputs[0]))


def _numerator_over(rewriter: Rewriter, value: int, divisor: int) -> int | None:
    """``a`` when ``value`` is a / divisor or a * (1 / divisor)."""
    dtype = rewriter.infos[divisor].dtype
    if not (dtype.is_floating or dtype.is_complex):
        return None  # the division of integers rounds
    quotient = rewriter.producer(value, "RealDiv", "Div")
    if quotient is not None and quotient.inputs[1] == divisor:
        return quotient.inputs[0]
    product = rewriter.producer(value, "Mul")
    if product is not None:
        for a, b in (product.inputs, product.inputs[::-1]):
            inverse = rewriter.producer(b, "Reciprocal", "Inv")
            if inverse is not None and inverse.inputs[0] == divisor:
                return a
    return None


@_rules.rule("Mul")
def _divide_and_multiply(rewriter: Rewriter, node: Node) -> int | None:
    """(a / y) * y = a: where y underflows to 0 this is a, not NaN."""
    for quotient, y in (node.inputs, node.inputs[::-1]):
        numerator = _numerator_over(rewriter, quotient, y)
        if numerator is None:
            continue
        if rewriter.same_shape(numerator, node.outputs[0]):
            return numerator
        # The division may have broadcast the numerator to the shape of y.
        ones = rewriter.emit("OnesLike", y, dims=rewriter.dims(y))
        return rewriter.emit("Mul", numerator, ones, dims=rewriter.dims(node.outputs[0]))
    return None


@_rules.rule("Mul")
def _softmax_gradient_of_quotient(rewriter: Rewriter, node: Node) -> int | None:
    """(a / y - s) * y = a - s * y.

    This is the gradient of log(softmax(x)) as the chain rule writes it: y is the softmax, which
    may underflow to 0; dividing by it and multiplying again gives NaN.
    """
    for difference, y in (node.inputs, node.inputs[::-1]):
        sub = rewriter.producer(difference, "Sub")
        if sub is None or rewriter.producer(y, "Softmax", "Sigmoid") is None:
            continue
        numerator = _numerator_over(rewriter, sub.inputs[0], y)
        if numerator is None:
            continue
        dims = rewriter.dims(node.outputs[0])
        scaled = rewriter.emit("Mul", sub.inputs[1], y, dims=dims)
        return rewriter.emit("Sub", numerator, scaled, dims=dims)
    return None


@_rules.rule("Reciprocal", "RealDiv")
def _logistic(rewriter: Rewriter, node: Node) -> int | None:
    """1 / (1 + exp(-x)) = sigmoid(x): no overflow for very negative x."""
    if node.op_def.name == "RealDiv" and not rewriter.is_scalar_constant(node.inputs[0], 1):
        return None
    total = rewriter.producer(node.inputs[-1], "AddV2", "Add")
    if total is None:
        return None
    for one, term in (total.inputs, total.inputs[::-1]):
        exponential = rewriter.producer(term, "Exp")
        if exponential is None or not rewriter.is_scalar_constant(one, 1):
            continue
        negated = rewriter.producer(exponential.inputs[0], "Neg")
        if negated is not None and rewriter.infos[negated.inputs[0]].dtype.is_floating:
            return rewriter.emit("Sigmoid", negated.inputs[0], dims=rewriter.dims(node.outputs[0]))
    return None
