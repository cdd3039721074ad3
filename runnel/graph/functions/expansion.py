"""Rewrites a ``GraphDef`` with functions into one without: calls become their functions' nodes.

The nodes of a function lie under the name of the operation that calls it. That operation stays as
an ``IdentityN`` of the function's results, which also waits for the function's effects, so a
program can fetch and feed its outputs by the names in the file. Inside functions, nodes take the
results of a call directly: a result that is an argument leads to the caller's tensor.

A node of a function without any input waits for whatever the call waits for (a control edge, the
branch or the iteration in which it lies): its :class:`Region`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from runnel.graph.effects import has_effect
from runnel.graph.functions.body import HANDLES, INT32, Body, bind
from runnel.graph.functions.library import CALLS, MOST_NODES, SYMBOLIC_GRADIENT, Library
from runnel.graph.functions.nesting import depths_of
from runnel.graph.functions.output_ranges import output_index
from runnel.graph.functions.use import Region, Results, Use, check_types
from runnel.graph.imported_node import Endpoint, parse_endpoint
from runnel.graph.registry import find_op_def

_COLOCATED = b"loc:@"
_PRIMITIVES = frozenset({"Switch", "Merge", "Enter", "RefSwitch", "RefMerge", "RefEnter"})


@dataclass(slots=True)
class ExpandedNode:
    """A node of the result, whose inputs are known when all calls are expanded."""

    proto: Any
    inputs: list[Endpoint | str]
    """A text stands for itself: it is not of the form that a tensor's name has."""
    controls: list[str]
    region: Region | None
    functions: list[tuple[str, list[tuple[str, list[Endpoint]]]]] = field(default_factory=list)
    """Attributes that describe a function by the tensors that it is made of."""


def expand_functions(graph_def: Any) -> Any:
    """``graph_def`` without functions; itself if nothing in it uses any.

    A ValueError says what is wrong with its library or a call, before memory is spent on it.
    """
    library = Library(graph_def)
    if not any(library.uses_functions(node) for node in graph_def.node):
        return graph_def
    library.check(graph_def.node)
    return Expansion(graph_def, library).run()


class Expansion:
    """One ``GraphDef`` and what its calls become."""

    def __init__(self, graph_def: Any, library: Library) -> None:
        self.graph_def = graph_def
        self.library = library
        self.made: list[ExpandedNode] = []
        self._taken = {node.name for node in graph_def.node}
        self._aliases: dict[Endpoint, Endpoint] = {}
        """What stands for the outputs of calls."""
        self._bodies: dict[tuple[str, bytes], Body] = {}
        self._node_def = type(graph_def.node[0])

    # The graph itself -----------------------------------------------------------------------

    def run(self) -> Any:
        nodes = self.graph_def.node
        has_primitives = any(node.op in _PRIMITIVES for node in nodes)
        for node in nodes:
            inputs, controls = _parsed(node.input)
            if not self.library.uses_functions(node):
                self._append(node, inputs, controls, None)
                continue
            endpoints = [e for e in inputs if not isinstance(e, str)]
            if len(endpoints) != len(inputs):
                bad = next(e for e in inputs if isinstance(e, str))
                raise ValueError(f"Node {node.name!r} ({node.op}): {bad!r} names no tensor")
            use = Use(node, node.name, endpoints, controls, None, node.device, True, True)
            self.expand(use, has_primitives)
        return self._written()

    def _written(self) -> Any:
        made = type(self.graph_def)()
        made.versions.CopyFrom(self.graph_def.versions)
        for entry in self.made:
            found = [e if isinstance(e, str) else self.resolved(e) for e in entry.inputs]
            controls = list(dict.fromkeys(entry.controls))
            region = entry.region
            if region is not None and not controls:
                free = {self.resolved(e) for e in region.free}
                if all(e in free for e in found):
                    controls = region.controls
            node = made.node.add()
            node.CopyFrom(entry.proto)
            node.input[:] = [_text(e) for e in found] + [f"^{name}" for name in controls]
            for key, parts in entry.functions:
                self._describe(node.attr[key].func, f"{node.name}/{key}", parts)
        return made

    def _describe(self, described: Any, name: str, parts: Any) -> None:
        described.Clear()
        described.name = name
        for part, endpoints in parts:
            texts = [self.resolved(e) for e in endpoints]
            described.attr[part].list.s.extend(f"{n}:{i}".encode() for n, i in texts)

    def resolved(self, endpoint: Endpoint) -> Endpoint:
        """The output of a node that ``endpoint`` stands for."""
        aliases = self._aliases
        if endpoint not in aliases:
            return endpoint
        passed = [endpoint]
        while endpoint in aliases:
            endpoint = aliases[endpoint]
            if endpoint in passed:
                raise ValueError(f"The GraphDef has a cycle: {_text(endpoint)!r} is its own value.")
            passed.append(endpoint)
        for one in passed[:-1]:
            aliases[one] = endpoint
        return endpoint

    # Making nodes ---------------------------------------------------------------------------

    def unique(self, name: str) -> str:
        """``name``, or one like it that no node has."""
        made, count = name, 0
        while made in self._taken:
            count += 1
            made = f"{name}_{count}"
        self._taken.add(made)
        return made

    def _append(
        self,
        proto: Any,
        inputs: Sequence[Endpoint | str],
        controls: Iterable[str],
        region: Region | None,
    ) -> ExpandedNode:
        if len(self.made) > MOST_NODES:
            raise ValueError(
                f"With its functions called the GraphDef has more than {MOST_NODES:,} nodes."
            )
        made = ExpandedNode(proto, list(inputs), list(controls), region)
        self.made.append(made)
        return made

    def add(
        self,
        op: str,
        name: str,
        inputs: Sequence[Endpoint] = (),
        controls: Iterable[str] = (),
        region: Region | None = None,
        device: str = "",
        types: Mapping[str, int | list[int]] | None = None,
    ) -> Any:
        """Adds a node with attributes that are ``types``; returns it, its name made unique."""
        node = self._node_def(name=self.unique(name), op=op, device=device)
        for key, value in (types or {}).items():
            if isinstance(value, list):
                node.attr[key].list.type.extend(value)
            else:
                node.attr[key].type = value
        self._append(node, inputs, controls, region)
        return node

    def identity(
        self, name: str, tensor: Endpoint, kind: int, controls: Iterable[str], region: Region | None
    ) -> Endpoint:
        """``tensor``, after ``controls``."""
        return (self.add("Identity", name, [tensor], controls, region, "", {"T": kind}).name, 0)

    # Calls ----------------------------------------------------------------------------------

    def expand(self, use: Use, in_primitives: bool) -> list[str]:
        """Expands a node that uses functions; returns what must run for its effects.

        ``in_primitives``: branches and loops around it may be made of primitives.
        """
        from runnel.graph.functions import control_flow, dataset_functions, symbolic_gradient

        op = use.node.op
        if op in control_flow.LOWERED:
            results = control_flow.LOWERED[op](self, self._waiting(use, in_primitives))
        elif op in self.library or op in CALLS:
            results = self._call(self._waiting(use, in_primitives))
        elif op == SYMBOLIC_GRADIENT:
            results = symbolic_gradient.expand(self, self._waiting(use, in_primitives))
        else:
            return dataset_functions.expand(self, use)
        self._finish(use, results)
        return results.effects

    def _waiting(self, use: Use, in_primitives: bool) -> Use:
        """``use``, its function in a region that waits for its control inputs."""
        waits = list(use.controls)
        if not waits and in_primitives and use.inputs and use.region is None:
            # A branch or a loop around it is known by its inputs only.
            _, types = self._first_type(use)
            entered = self.identity(f"{use.name}/inputs", use.inputs[0], types, (), use.region)
            return use.within(Region([entered[0]]))
        if not waits:
            return use
        if len(waits) > 1:
            node = self.add("NoOp", f"{use.name}/inputs", (), waits, use.region, use.device)
            waits = [node.name]
        return use.within(Region(waits, set(use.inputs)))

    def _first_type(self, use: Use) -> tuple[str, int]:
        """The function that takes the inputs of ``use``, and the type of the first of them."""
        node = use.node
        if node.op in self.library:
            return node.op, self.body(use, node.op, node.attr).argument_types[0]
        for key in ("Tcond", "Tin", "T"):
            value = node.attr.get(key, None)
            if value is not None and value.WhichOneof("value") == "type":
                return key, value.type
            if value is not None and value.list.type:
                return key, value.list.type[0]
        return "", INT32

    def body(self, use: Use, name: str, attrs: Mapping[str, Any]) -> Body:
        """The function ``name`` with ``attrs`` bound."""
        function = self.library.functions[name]
        needed = {attr.name for attr in function.signature.attr}
        given = {key: attrs[key] for key in attrs if key in needed}
        key = b"".join(k.encode() + v.SerializeToString() for k, v in sorted(given.items()))
        found = self._bodies.get((name, key))
        if found is None:
            try:
                found = self._bodies[name, key] = bind(function, given)
            except ValueError as error:
                raise use.error(str(error)) from None
        return found

    def named(self, use: Use, value: Any) -> Body:
        """The function that the ``NameAttrList`` ``value`` names."""
        if value.name not in self.library:
            raise use.error(f"the GraphDef's library has no function {value.name!r}")
        return self.body(use, value.name, value.attr)

    def function_of(self, use: Use, key: str) -> Body:
        """The function that the attribute ``key`` of ``use`` names."""
        if key not in use.node.attr or use.node.attr[key].WhichOneof("value") != "func":
            raise use.error(f"the attribute {key!r} must name a function")
        return self.named(use, use.node.attr[key].func)

    def _call(self, use: Use) -> Results:
        node = use.node
        if node.op in self.library:
            body, inputs = self.body(use, node.op, node.attr), use.inputs
        else:
            body = self.function_of(use, "f")
            inputs = use.inputs[1:] if node.op == "RemoteCall" else use.inputs
            check_types(use, "Tin", body.argument_types)
            check_types(use, "Tout", body.result_types)
        return self.call(use, body, f"{use.name}/", inputs, use.region)

    def call(
        self, use: Use, body: Body, prefix: str, inputs: list[Endpoint], region: Region | None
    ) -> Results:
        """Adds the nodes of ``body``, called with ``inputs``, under ``prefix``."""
        if len(inputs) != len(body.argument_types):
            raise use.error(
                f"the function {body.name!r} takes {len(body.argument_types)} arguments, but "
                f"{len(inputs)} are given"
            )
        return FunctionCall(self, use, body, prefix, inputs, region).run()

    def _finish(self, use: Use, results: Results) -> None:
        """Has the outputs of ``use`` be ``results``; where others need it there is a node."""
        keeps_all = use.is_fetchable
        kept: list[tuple[Endpoint, int]] = []
        pairs = zip(results.endpoints, results.types, strict=True)
        for i, (endpoint, kind) in enumerate(pairs):
            if not keeps_all or kind in HANDLES:
                self._aliases[use.name, i] = endpoint
            if keeps_all or kind not in HANDLES:
                kept.append((endpoint, kind))
        if not (use.is_fetchable or use.is_awaited):
            return
        node = self._node_def(name=use.name, op="IdentityN" if kept else "NoOp", device=use.device)
        if kept:
            node.attr["T"].list.type.extend(kind for _, kind in kept)
            shapes = use.node.attr.get("output_shapes", None)
            if shapes is not None and keeps_all and len(shapes.list.shape) == len(kept):
                node.attr["_output_shapes"].CopyFrom(shapes)
        controls = [*results.effects, *use.controls]
        self._append(node, [endpoint for endpoint, _ in kept], controls, use.region)


class FunctionCall:
    """The nodes of one function, called once."""

    def __init__(
        self,
        expansion: Expansion,
        use: Use,
        body: Body,
        prefix: str,
        inputs: list[Endpoint],
        region: Region | None,
    ) -> None:
        self._expansion, self._use, self._body = expansion, use, body
        self._prefix, self._given, self._region = prefix, inputs, region
        self._names = {name: expansion.unique(prefix + name) for name in body.nodes}

    def run(self) -> Results:
        expansion, body = self._expansion, self._body
        awaited = {
            text[1:] for node in body.nodes.values() for text in node.input if text[:1] == "^"
        }.union(body.controls)
        has_primitives = any(node.op in _PRIMITIVES for node in body.nodes.values())
        depths = depths_of(body) if has_primitives else {}
        effects: list[str] = []
        for name, node in body.nodes.items():
            inputs, controls = self._inputs_of(node)
            flat, device = self._names[name], node.device or self._use.device
            if expansion.library.uses_functions(node):
                use = Use(
                    node, flat, inputs, controls, self._region, device, False, name in awaited
                )
                made = expansion.expand(use, has_primitives)
            else:
                expansion._append(self._renamed(node, flat, device), inputs, controls, self._region)
                op_def = find_op_def(node.op)
                made = [flat] if op_def is not None and has_effect(op_def) else []
            if not depths.get(name):  # not in a branch or loop, which it might not leave
                effects += made
        for name in body.controls:
            if name not in self._names:
                raise self._error(f"it is to run {name!r}, which is not in it")
            effects.append(self._names[name])
        results = [self._only(text) for text in body.results]
        return Results(results, body.result_types, list(dict.fromkeys(effects)))

    def _error(self, message: str) -> ValueError:
        return self._use.error(f"function {self._body.name!r}: {message}")

    def _inputs_of(self, node: Any) -> tuple[list[Endpoint], list[str]]:
        inputs: list[Endpoint] = []
        controls: list[str] = []
        for text in node.input:
            if not text.startswith("^"):
                inputs += self._endpoints(text)
            elif text[1:] in self._names:
                controls.append(self._names[text[1:]])
            elif text[1:] not in self._body.arguments:
                raise self._error(
                    f"node {node.name!r} waits for {text[1:]!r}, which is not in the function"
                )
        return inputs, controls

    def _only(self, text: str) -> Endpoint:
        found = self._endpoints(text)
        if len(found) != 1:
            raise self._error(f"it returns {text!r}, which is {len(found)} tensors")
        return found[0]

    def _endpoints(self, text: str) -> list[Endpoint]:
        """The tensors that a node of the function, or its result, names ``text``."""
        position = self._body.arguments.get(text)
        if position is not None:
            return [self._given[position]]
        name, _, output = text.partition(":")
        node = self._body.nodes.get(name)
        if node is None:
            raise self._error(f"{text!r} is neither an argument nor a tensor of the function")
        try:
            expansion, use = self._expansion, self._use
            callee = node.op if node.op in expansion.library else None
            body = expansion.body(use, callee, node.attr) if callee else None
            return [(self._names[name], i) for i in output_index(node, output, body)]
        except ValueError as error:
            raise self._error(f"{text!r}: {error}") from None

    def _renamed(self, node: Any, name: str, device: str) -> Any:
        """A copy of a node of the function, under the name that it has in the graph."""
        made = type(node).FromString(node.SerializeToString())
        made.name, made.device = name, device
        if "frame_name" in made.attr:
            made.attr["frame_name"].s = self._prefix.encode() + made.attr["frame_name"].s
        if "_class" in made.attr:
            kept = []
            for place in made.attr["_class"].list.s:
                anchor = place.removeprefix(_COLOCATED).decode(errors="replace")
                target = self._body.nodes.get(anchor)
                if target is not None and not self._expansion.library.uses_functions(target):
                    kept.append(_COLOCATED + self._names[anchor].encode())
            made.attr["_class"].list.s[:] = kept
        return made


def _parsed(texts: Iterable[str]) -> tuple[list[Endpoint | str], list[str]]:
    inputs: list[Endpoint | str] = []
    controls: list[str] = []
    for text in texts:
        if text.startswith("^"):
            controls.append(text[1:])
        elif controls:
            inputs.append(text)
            raise ValueError(f"the input {text!r} stands after a control input")
        else:
            inputs.append(parse_endpoint(text) or text)
    return inputs, controls


def _text(endpoint: Endpoint | str) -> str:
    if isinstance(endpoint, str):
        return endpoint
    name, index = endpoint
    return f"{name}:{index}" if index else name
