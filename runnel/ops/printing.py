"""Printing from inside a graph."""

from __future__ import annotations

import sys
import weakref
from collections.abc import Sequence
from typing import Any

import numpy as np

from runnel.graph.conversion import convert_to_tensor
from runnel.graph.graph import name_scope
from runnel.graph.operation import Operation, Tensor
from runnel.graph.permitted_files import permitted
from runnel.graph.registry import register_op
from runnel.graph.shape_inference import scalar
from runnel.ops.tensor_summary import summarize as summary
from runnel.ops.tensor_summary import summarize_edges

# How often each Print operation has printed, for ``first_n``.
_printed: weakref.WeakKeyDictionary[Operation, int] = weakref.WeakKeyDictionary()

print_op = register_op(
    "Print",
    inputs="input: T, data: U",
    outputs="output: T",
    attrs=[
        "T: type",
        "U: list(type) >= 0",
        "message: string = ''",
        "first_n: int = -1",
        "summarize: int = 3",
    ],
    stateful=True,
    host=True,
    holds_thread=True,  # who reads what is printed may be slow
)


@print_op.shape
def _(x, data):
    return x.dims


@print_op.kernel
def _(xp, x, data, *, message, first_n, summarize, operation):
    count = _printed.get(operation, 0)
    if first_n < 0 or count < first_n:
        _printed[operation] = count + 1
        text = message + "".join(summary(value, summarize) for value in data)
        print_text(text + "\n", "stderr")
    return x


@print_op.gradient
def _(op, grad):
    return [grad, *[None] * (len(op.inputs) - 1)]


def print_text(text: str, stream: str) -> None:
    """Writes ``text`` to "stdout", "stderr", a log level, or ``file://`` and a path."""
    if stream.startswith("file://"):
        path = permitted(stream.removeprefix("file://"))
        with open(path, "a", encoding="utf-8") as file:
            file.write(text)
        return
    target = sys.stdout if stream == "stdout" else sys.stderr
    target.write(text)
    target.flush()


string_format_op = register_op(
    "StringFormat",
    inputs="inputs: T",
    outputs="output: string",
    attrs=[
        "T: list(type) >= 0",
        "template: string = '%s'",
        "placeholder: string = '%s'",
        "summarize: int = 3",
    ],
    host=True,
    differentiable=False,
)
string_format_op.shape(scalar)


@string_format_op.kernel
def _(xp, values, *, template, placeholder, summarize):
    pieces = template.split(placeholder)
    if len(pieces) != len(values) + 1:
        raise ValueError(
            f"The template {template!r} has {len(pieces) - 1} placeholders for {len(values)} inputs"
        )
    text = pieces[0]
    for value, piece in zip(values, pieces[1:], strict=True):
        text += summarize_edges(value, summarize) + piece
    out = np.empty((), object)
    out[()] = text.encode()
    return out


print_v2_op = register_op(
    "PrintV2",
    inputs="input: string",
    attrs=["output_stream: string = 'stderr'", "end: string = '\n'"],
    stateful=True,
    host=True,
    holds_thread=True,
    differentiable=False,
)


@print_v2_op.kernel
def _(xp, text, *, output_stream, end):
    content: bytes = np.asarray(text).item()
    print_text(content.decode(errors="backslashreplace") + end, output_stream)
    return ()


# Functions ------------------------------------------------------------------------------------


def Print(  # noqa: N802 (TensorFlow's name)
    input_: Any = None,
    data: Sequence[Any] | None = None,
    message: str | None = None,
    first_n: int | None = None,
    summarize: int | None = None,
    name: str | None = None,
    input: Any = None,  # noqa: A002 (TensorFlow's name)
) -> Tensor:
    """``input_``, printing ``data`` to standard error whenever it is computed.

    ``first_n`` bounds how often, ``summarize`` how many elements of each tensor.

    Example:
        >>> x = tf.Print(x, [tf.shape(x), x], message="x: ")
    """
    value = convert_to_tensor(input_ if input is None else input)
    tensors = [convert_to_tensor(item) for item in data or ()]
    return print_op(
        value,
        tensors,
        message=message or "",
        first_n=-1 if first_n is None else first_n,
        summarize=3 if summarize is None else summarize,
        name=name,
    )


def string_format(
    template: str,
    inputs: Any,
    placeholder: str = "{}",
    summarize: int = 3,
    name: str | None = None,
) -> Tensor:
    """``template`` with each placeholder replaced by the text of one input.

    Example:
        >>> tf.strings.format("x is {}", x)
    """
    values = list(inputs) if isinstance(inputs, list | tuple) else [inputs]
    if template.count(placeholder) != len(values):
        raise ValueError(
            f"{len(values)} placeholder(s) are needed in the template for {len(values)} tensor(s), "
            f"but {template.count(placeholder)} were found in {template!r}"
        )
    tensors = [convert_to_tensor(value) for value in values]
    return string_format_op(
        tensors, template=template, placeholder=placeholder, summarize=summarize, name=name
    )


_STREAMS = ("stdout", "stderr", "log(info)", "log(warning)", "log(error)")


def print_values(*inputs: Any, **kwargs: Any) -> Operation:
    """``tf.print``: an operation that prints its inputs, tensors and other things alike.

    ``output_stream`` is ``sys.stderr`` (the default), ``sys.stdout`` or "file://" and a path;
    ``summarize`` (3, -1 for all), ``sep``, ``end`` and ``name`` may be given too.

    Example:
        >>> with tf.control_dependencies([tf.print("loss:", loss)]):
        ...     step = tf.identity(loss)
    """
    stream = kwargs.pop("output_stream", sys.stderr)
    limit = kwargs.pop("summarize", 3)
    separator = kwargs.pop("sep", " ")
    end = kwargs.pop("end", "\n")
    name = kwargs.pop("name", None)
    if kwargs:
        raise ValueError(f"Unrecognized keyword arguments for print: {', '.join(kwargs)}")
    if stream is sys.stdout:
        target = "stdout"
    elif isinstance(stream, str) and (stream in _STREAMS or stream.startswith("file://")):
        target = stream
    elif stream is sys.stderr:
        target = "stderr"
    else:
        raise ValueError(
            "output_stream must be sys.stdout, sys.stderr, one of "
            f"{', '.join(_STREAMS)}, or 'file://' and a path, not {stream!r}"
        )
    placeholder = _unused_placeholder(inputs)
    with name_scope(name, "print", [x for x in inputs if isinstance(x, Tensor)]):
        only = inputs[0] if len(inputs) == 1 else None
        if isinstance(only, Tensor) and only.dtype.base_dtype.name == "string" and only.dims == ():
            return print_v2_op(only, output_stream=target, end=end)  # as it is, without quotes
        tensors: list[Tensor] = []
        template = separator.join(_template(x, placeholder, tensors, False) for x in inputs)
        text = string_format(template, tensors, placeholder, limit or 3)
        return print_v2_op(text, output_stream=target, end=end)


def _unused_placeholder(inputs: Sequence[Any]) -> str:
    """A placeholder that does not occur in what is printed."""
    text = repr(inputs)
    placeholder = "{}"
    while placeholder in text:
        placeholder = "{" + placeholder + "}"
    return placeholder


def _template(value: Any, placeholder: str, tensors: list[Tensor], nested: bool) -> str:
    """How ``value`` prints, with placeholders for the tensors in it (collected in ``tensors``)."""
    if isinstance(value, Tensor) or hasattr(value, "_as_graph_element"):
        tensors.append(convert_to_tensor(value))
        return placeholder
    if isinstance(value, dict):
        items = (f"{k!r}: {_template(v, placeholder, tensors, True)}" for k, v in value.items())
        return "{" + ", ".join(items) + "}"
    if isinstance(value, list | tuple):
        inner = ", ".join(_template(v, placeholder, tensors, True) for v in value)
        if isinstance(value, list):
            return f"[{inner}]"
        return f"({inner},)" if len(value) == 1 else f"({inner})"
    return value if isinstance(value, str) and not nested else repr(value)
