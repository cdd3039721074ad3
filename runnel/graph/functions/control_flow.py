"""Builds the conditionals and loops of functions from the five primitives.

They get the shape that ``tf.cond`` and ``tf.while_loop`` give theirs, so the same code finds,
compiles and differentiates them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from runnel.graph.functions.body import BOOL, HANDLES, INT32, Body
from runnel.graph.functions.expansion import Expansion
from runnel.graph.functions.use import Region, Results, Use, check_types
from runnel.graph.imported_node import Endpoint

_MOST_BRANCHES = 1024

# A branch: its nodes, under a prefix, given its arguments.
_Branch = Callable[[str, list[Endpoint], Region], Results]


def _shape_of(use: Use, position: int, count: int) -> Any:
    """The static shape of an output that the writer recorded, if it recorded all."""
    if "output_shapes" not in use.node.attr:
        return None
    shapes = use.node.attr["output_shapes"].list.shape
    return shapes[position] if len(shapes) == count else None


def _record(node: Any, shape: Any, scalars: int = 0) -> None:
    """Says that the first output of ``node`` has ``shape``; the others are scalars."""
    if shape is not None:
        shapes = node.attr["_output_shapes"].list.shape
        shapes.add().CopyFrom(shape)
        for _ in range(scalars):
            shapes.add()


def _as_bool(expansion: Expansion, use: Use, value: Endpoint, kind: int, name: str) -> Endpoint:
    if kind == BOOL:
        return value
    node = expansion.add("ToBool", name, [value], (), use.region, use.device, {"T": kind})
    return node.name, 0


# Conditionals -------------------------------------------------------------------------------------


def _if(expansion: Expansion, use: Use) -> Results:
    then_body = expansion.function_of(use, "then_branch")
    else_body = expansion.function_of(use, "else_branch")
    for body in (then_body, else_body):
        check_types(use, "Tin", body.argument_types)
        check_types(use, "Tout", body.result_types)
    if not use.inputs:
        raise use.error("it takes a condition, but has no inputs")
    kind = use.node.attr["Tcond"].type if "Tcond" in use.node.attr else BOOL
    pred = _as_bool(expansion, use, use.inputs[0], kind, f"{use.name}/ToBool")

    def branch(body: Body) -> _Branch:
        return lambda prefix, args, region: expansion.call(use, body, prefix, args, region)

    conditional = _Conditional(expansion, use, then_body, else_body)
    made = conditional.build(
        f"{use.name}/", pred, use.inputs[1:], branch(then_body), branch(else_body), use.region
    )
    return Results(made.endpoints, made.types, made.effects)


def _case(expansion: Expansion, use: Use) -> Results:
    branches = use.node.attr["branches"].list.func if "branches" in use.node.attr else []
    bodies = [expansion.named(use, function) for function in branches]
    if not bodies or len(bodies) > _MOST_BRANCHES:
        raise use.error(f"it has {len(bodies)} branches; from 1 to {_MOST_BRANCHES} are supported")
    for body in bodies:
        check_types(use, "Tin", body.argument_types)
        check_types(use, "Tout", body.result_types)
    if not use.inputs:
        raise use.error("it takes a number, but has no inputs")
    return _Case(expansion, use, bodies).build()


@dataclass(slots=True)
class _Conditional:
    expansion: Expansion
    use: Use
    then_body: Body
    else_body: Body

    def build(
        self,
        prefix: str,
        pred: Endpoint,
        args: list[Endpoint],
        then_branch: _Branch,
        else_branch: _Branch,
        region: Region | None,
        extra: tuple[int, ...] = (),
    ) -> Results:
        """The results of one of two branches; ``extra`` types are those of further arguments."""
        expansion, use, device = self.expansion, self.use, self.use.device
        types = [*self.then_body.argument_types, *extra]
        if (
            len(args) != len(types)
            or self.else_body.argument_types
            != types[: len(types)][: len(self.else_body.argument_types)]
        ):
            raise use.error(
                f"the functions of its branches take {len(self.then_body.argument_types)} and "
                f"{len(self.else_body.argument_types)} arguments, but {len(args)} are given"
            )
        if self.then_body.result_types != self.else_body.result_types:
            raise use.error("the functions of its branches return different types")

        def add(op: str, name: str, inputs: list[Endpoint], kind: int) -> Any:
            return expansion.add(op, prefix + name, inputs, (), region, device, {"T": kind})

        chosen = (add("Identity", "pred_id", [pred], BOOL).name, 0)
        switch = add("Switch", "Switch", [chosen, chosen], BOOL).name
        pivots = [
            (add("Identity", name, [(switch, side)], BOOL).name, 0)
            for side, name in enumerate(("switch_f", "switch_t"))
        ]
        switched = [
            add("Switch", f"cond/Switch_{i}", [arg, chosen], kind).name
            for i, (arg, kind) in enumerate(zip(args, types, strict=True))
        ]
        sides: list[Results] = []
        for side, (label, branch) in enumerate((("else", else_branch), ("then", then_branch))):
            inside = Region([pivots[side][0]])
            given = [(name, side) for name in switched]
            sides.append(branch(f"{prefix}{label}/", given, inside))
        has_effects = any(side.effects for side in sides)
        ends: list[list[Endpoint]] = []
        for side, made in enumerate(sides):
            inside, label = Region([pivots[side][0]]), ("else", "then")[side]
            ends.append(
                [
                    expansion.identity(
                        f"{prefix}{label}/result_{i}", end, kind, made.effects, inside
                    )
                    for i, (end, kind) in enumerate(zip(made.endpoints, made.types, strict=True))
                ]
            )
        results: list[Endpoint] = []
        kinds = sides[0].types
        for i, kind in enumerate(kinds):
            merge = expansion.add(
                "Merge", f"{prefix}Merge_{i}", [ends[0][i], ends[1][i]], (), region, device
            )
            merge.attr["T"].type = kind
            merge.attr["N"].i = 2
            _record(merge, _shape_of(use, i, len(kinds)), 1)
            results.append((merge.name, 0))
        if not has_effects and results:
            return Results(results, kinds, [])
        # It has run when the branch that was taken has.
        done = [
            expansion.identity(
                f"{prefix}{('else', 'then')[side]}/done", pivots[side], BOOL, made.effects, None
            )
            for side, made in enumerate(sides)
        ]
        merge = expansion.add("Merge", f"{prefix}done", done, (), region, device, {"T": BOOL})
        merge.attr["N"].i = 2
        return Results(results, kinds, [merge.name])


class _Case:
    """One of several branches by number: conditionals that halve the range, one in the other."""

    def __init__(self, expansion: Expansion, use: Use, bodies: list[Body]) -> None:
        self._expansion, self._use, self._bodies = expansion, use, bodies

    def build(self) -> Results:
        use, expansion, last = self._use, self._expansion, len(self._bodies) - 1
        given = use.inputs[0]
        zero = self._number(0, "zero", use.region)
        end = self._number(last, "last", use.region)
        below = expansion.add(
            "Less", f"{use.name}/Less", [given, zero], (), use.region, use.device, {"T": INT32}
        )
        inputs = [(below.name, 0), end, given]  # a number that names none is that of the last
        index = expansion.add(
            "Select", f"{use.name}/Select", inputs, (), use.region, use.device, {"T": INT32}
        )
        args = [*use.inputs[1:], (index.name, 0)]
        return self._among(0, last, f"{use.name}/", args, use.region)

    def _among(
        self, first: int, last: int, prefix: str, args: list[Endpoint], region: Region | None
    ) -> Results:
        """The result of one of the branches from ``first`` to ``last``."""
        use, expansion = self._use, self._expansion
        if first == last:
            return expansion.call(use, self._bodies[first], prefix, args[:-1], region)
        middle = (first + last) // 2
        limit = self._number(middle, f"{first}_{last}/limit", region)
        low = expansion.add(
            "LessEqual",
            f"{use.name}/{first}_{last}/LessEqual",
            [args[-1], limit],
            (),
            region,
            use.device,
            {"T": INT32},
        )

        def branch(first: int, last: int) -> _Branch:
            return lambda prefix, args, region: self._among(first, last, prefix, args, region)

        halves = _Conditional(expansion, use, self._bodies[first], self._bodies[last])
        return halves.build(
            prefix,
            (low.name, 0),
            args,
            branch(first, middle),
            branch(middle + 1, last),
            region,
            extra=(INT32,),
        )

    def _number(self, value: int, name: str, region: Region | None) -> Endpoint:
        use = self._use
        node = self._expansion.add(
            "Const", f"{use.name}/{name}", (), (), region, use.device, {"dtype": INT32}
        )
        node.attr["value"].tensor.dtype = INT32
        node.attr["value"].tensor.tensor_shape.SetInParent()
        node.attr["value"].tensor.int_val.append(value)
        return node.name, 0


# Loops --------------------------------------------------------------------------------------------


def _while(expansion: Expansion, use: Use) -> Results:
    cond, body = expansion.function_of(use, "cond"), expansion.function_of(use, "body")
    types = body.argument_types
    for key, found in (("T", types), ("T", body.result_types), ("T", cond.argument_types)):
        check_types(use, key, found)
    if cond.argument_types != types or body.result_types != types:
        raise use.error("the functions of its condition and body take or return different types")
    if len(use.inputs) != len(types):
        raise use.error(f"it takes {len(types)} inputs, but {len(use.inputs)} are given")
    if len(cond.result_types) != 1:
        raise use.error(f"its condition returns {len(cond.result_types)} tensors, not one")
    return _Loop(expansion, use, cond, body).build()


class _Loop:
    """One loop. What the body returns as it was given is constant in it."""

    def __init__(self, expansion: Expansion, use: Use, cond: Body, body: Body) -> None:
        self._expansion, self._use, self._cond, self._body = expansion, use, cond, body
        types = body.argument_types
        constant = [_is_passed_on(body, i) for i in range(len(types))]
        if all(constant):  # iterations are counted by something that each of them makes
            plain = [i for i, kind in enumerate(types) if kind not in HANDLES]
            if not plain:
                raise use.error("it has no loop variable that an iteration could change")
            constant[plain[0]] = False
        self._constant = constant
        self._types = types

    def _add(
        self, op: str, name: str, inputs: list[Endpoint], kind: int, region: Region | None
    ) -> Any:
        device = self._use.device
        full = f"{self._use.name}/{name}"
        return self._expansion.add(op, full, inputs, (), region, device, {"T": kind})

    def build(self) -> Results:
        use, expansion, types = self._use, self._expansion, self._types
        entered = [self._enter(i) for i in range(len(types))]
        variables = [i for i, constant in enumerate(self._constant) if not constant]
        free = {entered[i] for i, constant in enumerate(self._constant) if constant}
        merged: dict[int, Endpoint] = {}
        following = {i: expansion.unique(f"{use.name}/NextIteration_{i}") for i in variables}
        for i in variables:
            inputs = [entered[i], (following[i], 0)]
            node = self._add("Merge", f"Merge_{i}", inputs, types[i], None)
            node.attr["N"].i = 2
            _record(node, _shape_of(use, i, len(types)), 1)
            merged[i] = (node.name, 0)
        first = variables[0]
        around = Region([merged[first][0]], free)
        given = [merged.get(i, entered[i]) for i in range(len(types))]
        tested = expansion.call(use, self._cond, f"{use.name}/cond/", given, around)
        pred, kind = tested.endpoints[0], tested.types[0]
        if kind != BOOL:
            pred = (self._add("ToBool", "ToBool", [pred], kind, around).name, 0)
        if tested.effects:
            pred = expansion.identity(f"{use.name}/tested", pred, BOOL, tested.effects, around)
        test = expansion.add("LoopCond", f"{use.name}/LoopCond", [pred], (), around, use.device)
        exits: dict[int, Endpoint] = {}
        inside: dict[int, Endpoint] = {}
        for i in variables:
            inputs = [merged[i], (test.name, 0)]
            switch = self._add("Switch", f"Switch_{i}", inputs, types[i], None).name
            inside[i] = (
                self._add("Identity", f"Identity_{i}", [(switch, 1)], types[i], None).name,
                0,
            )
            exits[i] = (self._add("Exit", f"Exit_{i}", [(switch, 0)], types[i], None).name, 0)
        within = Region([inside[first][0]], free)
        given = [inside.get(i, entered[i]) for i in range(len(types))]
        made = expansion.call(use, self._body, f"{use.name}/body/", given, within)
        for i in variables:
            value = made.endpoints[i]
            if made.effects:  # an iteration ends when all of it has run
                label = f"{use.name}/ended_{i}"
                value = expansion.identity(label, value, types[i], made.effects, within)
            node = self._add("NextIteration", f"next_{i}", [value], types[i], within)
            node.name = following[i]
        results = [exits.get(i, use.inputs[i]) for i in range(len(types))]
        effects = [exits[first][0]] if tested.effects or made.effects else []
        return Results(results, types, effects)

    def _enter(self, position: int) -> Endpoint:
        use, kind = self._use, self._types[position]
        constant = self._constant[position]
        region = None if constant else use.region
        node = self._add("Enter", f"Enter_{position}", [use.inputs[position]], kind, region)
        node.attr["frame_name"].s = f"{use.name}/while_context".encode()
        node.attr["is_constant"].b = constant
        iterations = (
            use.node.attr["parallel_iterations"].i
            if ("parallel_iterations" in use.node.attr)
            else 10
        )
        node.attr["parallel_iterations"].i = iterations if iterations > 0 else 10
        if not constant:
            _record(node, _shape_of(use, position, len(self._types)))
        return node.name, 0


def _is_passed_on(body: Body, position: int) -> bool:
    """Whether ``body`` returns its argument at ``position`` at the same place, as it came."""
    text = body.results[position]
    seen: set[str] = set()
    while text not in body.arguments and text not in seen:
        seen.add(text)
        node = body.nodes.get(text.partition(":")[0])
        if node is None or node.op != "Identity" or len(node.input) != 1:
            return False
        text = node.input[0]
    return body.arguments.get(text) == position


LOWERED: dict[str, Callable[[Expansion, Use], Results]] = {
    "If": _if,
    "StatelessIf": _if,
    "Case": _case,
    "StatelessCase": _case,
    "While": _while,
    "StatelessWhile": _while,
}
