"""Mixed precision: products in bfloat16 or float16, everything that must be exact in float32.

Matrix products and convolutions take 16-bit operands and run several times as fast on matrix units;
activations between them take half the memory. Variables, their updates, sums, losses and every
operation not named here stay in float32. So a step has

* one cast of each variable that products use,
* a cast where a 16-bit value meets an operation that wants float32, and back,
* no cast between operations that can pass 16-bit values on to each other.

The rewrite works on programs in any form. Where loops and conditionals are nodes, it goes into
their programs. Where they are primitives, a cast is in the iteration and in the branch of the value
that it casts. Values that a loop takes from outside are cast before it. Values that go around a
loop stay in float32.

float16 has a small range: gradients underflow unless the loss is scaled up
(`runnel.train.loss_scale_optimizer`). bfloat16 has the range of float32.
"""

from __future__ import annotations

from runnel.graph import dtypes
from runnel.graph.dtypes import DType
from runnel.passes.program.program import Node, Program, made
from runnel.passes.program.variable_reads import is_variable_read
from runnel.passes.structure.structured import Loop, add_invariants, map_programs, structure_of

PRODUCTS = frozenset(
    {
        "MatMul", "BatchMatMul", "BatchMatMulV2", "BatchMatMulV3",
        "Conv2D", "Conv2DBackpropInput", "Conv2DBackpropFilter",
        "Conv3D", "Conv3DBackpropInputV2", "Conv3DBackpropFilterV2",
        "DepthwiseConv2dNative", "DepthwiseConv2dNativeBackpropInput",
        "DepthwiseConv2dNativeBackpropFilter",
    }
)  # fmt: skip
"""Always in 16 bits; XLA adds up in float32."""

MOVEMENTS = frozenset(
    {
        "Relu", "ReluGrad", "Relu6", "Relu6Grad", "MaxPool", "MaxPool3D", "MaxPoolV2",
        "Reshape", "Transpose", "Concat", "ConcatV2", "Split", "SplitV", "Slice", "StridedSlice",
        "StridedSliceGrad", "Pad", "PadV2", "MirrorPad", "Identity", "Snapshot", "StopGradient",
        "ExpandDims", "Squeeze", "Pack", "Unpack", "Tile", "Select", "SelectV2", "ZerosLike",
        "OnesLike", "SpaceToDepth", "DepthToSpace",
        "SpaceToBatchND", "BatchToSpaceND", "Reverse", "ReverseV2", "ReverseSequence",
        "BroadcastTo", "Neg", "Abs",
    }
)  # fmt: skip
"""Move or choose elements: rounding them before or after is the same."""

TOLERANT = frozenset(
    {
        "BiasAdd", "BiasAddV1", "Add", "AddV2", "AddN", "Sub", "Mul", "Maximum", "Minimum",
        "LeakyRelu", "LeakyReluGrad", "Elu", "EluGrad", "Selu", "SeluGrad", "Sigmoid",
        "SigmoidGrad", "Tanh", "TanhGrad", "Softplus", "SoftplusGrad", "Softsign", "SoftsignGrad",
        "AvgPool", "AvgPoolGrad", "AvgPool3D", "AvgPool3DGrad", "MaxPoolGrad", "MaxPoolGradV2",
        "MaxPool3DGrad", "MaxPoolGradGrad", "LRN", "LRNGrad", "FusedBatchNormV2",
        "FusedBatchNormV3", "FusedBatchNormGradV2", "FusedBatchNormGradV3",
    }
)  # fmt: skip
"""Follow their inputs. Kernels of 16-bit types compute in float32 inside, batch normalisation its
statistics too (which it also takes and gives in float32)."""

INDIFFERENT = frozenset({"BiasAddGrad", "Sum", "Mean"})
"""Add up in float32 and do not mind if what they add was rounded."""

# The type attribute that changes: of all these operations the same.
_ATTRIBUTE = "T"


def mixed_precision(program: Program, dtype: DType) -> Program:
    """The program with float32 products, and what can follow them, in ``dtype``."""
    map_programs(program, lambda inner: mixed_precision(inner, dtype))
    program = _cast_before_loops(program)
    lowered = _Choice(program, dtype).lowered
    return _Rewriting(program, dtype, lowered).run() if lowered else program


def _cast_before_loops(program: Program) -> Program:
    """The program with what loops directly inside it take from outside and cast, cast before.

    An iteration would read the weights in float32 to make the same 16 bits of them each time.
    """
    nodes: list[Node] = []
    for node in program.nodes:
        loop = structure_of(node)
        if isinstance(loop, Loop):
            inside = dict(zip(loop.invariants, node.inputs[len(loop.variables) :], strict=True))
            casts = [
                n
                for n in loop.body.nodes
                if n.op_def.name == "Cast" and n.inputs[0] in inside and not n.control
            ]
            if casts:
                nodes += [
                    Node(n.op, n.op_def, (inside[n.inputs[0]],), n.outputs, (), n.attrs)
                    for n in casts
                ]
                body = [n for n in loop.body.nodes if n not in casts]
                add_invariants(program, node, [n.outputs[0] for n in casts], body)
        nodes.append(node)
    return Program(nodes, program.feeds, program.fetches, program.infos)


def _positions(node: Node, *, outputs: bool = False) -> list[int]:
    """The inputs (or outputs) whose type is the attribute that changes."""
    found: list[int] = []
    start = 0
    for argument in node.op_def.outputs if outputs else node.op_def.inputs:
        count = argument.count(node.attrs)
        if argument.type_attr == _ATTRIBUTE:
            found += range(start, start + count)
        start += count
    return found


class _Choice:
    """Which nodes are computed in 16 bits."""

    def __init__(self, program: Program, dtype: DType) -> None:
        self._program = program
        self._dtype = dtype
        self.lowered: set[Node] = set()
        self._low: set[int] = set()
        self._fetched = frozenset(v for v in program.fetches if v is not None)
        # Values that can be cast where they are needed without losing what a sum has gained.
        self._sources = set(program.feeds.values())
        # Only what leads to a product may change, not what is made of a gradient to update with it.
        self._leading = self._leading_to_products()
        if not self._leading:
            return
        self._users: dict[int, list[tuple[Node, int]]] = {}
        for node in program.nodes:
            for position, value in enumerate(node.inputs):
                self._users.setdefault(value, []).append((node, position))
        before = -1
        while len(self.lowered) > before:
            before = len(self.lowered)
            for node in program.nodes:
                self._look_at_inputs(node)
            for node in reversed(program.nodes):
                self._look_at_users(node)

    def _leading_to_products(self) -> set[Node]:
        leading: set[Node] = set()
        wanted: set[int] = set()
        for node in reversed(self._program.nodes):
            product = node.op_def.name in PRODUCTS and self._can_change(node)
            if product or not wanted.isdisjoint(node.outputs):
                leading.add(node)
                wanted.update(node.inputs)
        return leading

    def _can_change(self, node: Node) -> bool:
        if node.attrs.get(_ATTRIBUTE) is not dtypes.float32:
            return False
        allowed = node.op_def.attributes[_ATTRIBUTE].allowed
        if allowed is not None and self._dtype not in allowed:
            return False
        infos = self._program.infos
        return not any(
            infos[v].dtype.is_ref_dtype or infos[v].dtype.name == "resource" for v in node.inputs
        )

    def _look_at_inputs(self, node: Node) -> None:
        name = node.op_def.name
        if node in self.lowered:
            return
        if name in PRODUCTS:
            if self._can_change(node):
                self._lower(node)
        elif name in MOVEMENTS or name in TOLERANT:
            if not self._can_change(node):
                if name == "Identity":  # reads a variable
                    self._sources.update(node.outputs)
                return
            if node not in self._leading:
                return
            values = [node.inputs[i] for i in _positions(node)]
            low = [v in self._low for v in values]
            if any(low) and all(
                is_low or v in self._sources for v, is_low in zip(values, low, strict=True)
            ):
                self._lower(node)
        elif name in ("Const", "Cast"):
            self._sources.update(node.outputs)

    def _look_at_users(self, node: Node) -> None:
        """Rounds before moving elements, where every user takes them rounded: half the memory."""
        if node in self.lowered or node.op_def.name not in MOVEMENTS or not self._can_change(node):
            return
        values = [node.outputs[i] for i in _positions(node, outputs=True)]
        users = [user for value in values for user in self._users.get(value, ())]
        if (
            users
            and self._fetched.isdisjoint(values)
            and any(user in self.lowered for user, _ in users)
            and all(
                user.op_def.name in INDIFFERENT
                or (user in self.lowered and position in _positions(user))
                for user, position in users
            )
        ):
            self._lower(node)

    def _lower(self, node: Node) -> None:
        self.lowered.add(node)
        self._low.update(node.outputs[i] for i in _positions(node, outputs=True))


class _Rewriting:
    """Writes the program with the chosen nodes in 16 bits, and one cast where two types meet."""

    def __init__(self, program: Program, dtype: DType, lowered: set[Node]) -> None:
        self._program = program
        self._dtype = dtype
        self._lowered = lowered
        self._low_of: dict[int, int] = {}
        """The number of a value's 16-bit version."""
        self._owed: set[int] = set()
        """Values computed in 16 bits whose float32 version nobody has asked for yet."""
        self._nodes: list[Node] = []
        self._moved: dict[Node, Node] = {}
        # Where reads have not been made explicit, each use of a variable reads it anew.
        self._variables = {v for n in program.nodes if is_variable_read(n) for v in n.outputs}

    def run(self) -> Program:
        program = self._program
        for node in program.nodes:
            self._moved[node] = new = self._rewritten(node)
            self._nodes.append(new)
        for value in program.fetches:
            if value is not None and value in self._owed:
                self._widen(value, self._nodes[-1])
        return Program(self._nodes, program.feeds, program.fetches, program.infos)

    def _rewritten(self, node: Node) -> Node:
        lowered = node in self._lowered
        changing = set(_positions(node)) if lowered else set()
        inputs = tuple(
            [
                self._narrow(value, node) if i in changing else self._plain(value, node)
                for i, value in enumerate(node.inputs)
            ]
        )
        control = tuple([self._moved[c] for c in node.control])
        if not lowered:
            if inputs == node.inputs and control == node.control:
                return node
            return node.taking(inputs, control)
        outputs = list(node.outputs)
        for i in _positions(node, outputs=True):
            value = outputs[i]
            outputs[i] = self._low_of[value] = self._new_value(value, self._dtype)
            self._owed.add(value)
        attrs = {**node.attrs, _ATTRIBUTE: self._dtype}
        return Node(node.op, node.op_def, inputs, tuple(outputs), control, attrs)

    def _plain(self, value: int, user: Node) -> int:
        if value in self._owed:
            self._widen(value, user)
        return value

    def _narrow(self, value: int, user: Node) -> int:
        narrow = self._low_of.get(value)
        if narrow is None:
            narrow = self._new_value(value, self._dtype)
            if value in self._variables:
                self._cast(value, narrow, user, tuple([self._moved[c] for c in user.control]))
            else:
                self._low_of[value] = narrow
                self._cast(value, narrow, user)
        return narrow

    def _widen(self, value: int, user: Node) -> None:
        self._owed.discard(value)
        self._cast(self._low_of[value], value, user)

    def _new_value(self, like: int, dtype: DType) -> int:
        return self._program.new_value(dtype, self._program.infos[like].dims)

    def _cast(self, source: int, target: int, user: Node, control: tuple[Node, ...] = ()) -> None:
        infos = self._program.infos
        attrs = {
            "SrcT": infos[source].dtype.base_dtype,
            "DstT": infos[target].dtype.base_dtype,
        }
        self._nodes.append(made("Cast", user.op, (source,), (target,), attrs, control))
