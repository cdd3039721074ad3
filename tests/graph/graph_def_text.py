"""GraphDefs written down as text, node by node."""

from google.protobuf import text_format

import runnel as tf


def graph_def(text, producer=134):
    return text_format.Parse(text + f" versions {{ producer: {producer} }}", tf.GraphDef())


def const(name, value=1.0, dtype=None):
    """The text of a constant node."""
    proto = tf.make_tensor_proto(value, dtype)
    tensor = text_format.MessageToString(proto, as_one_line=True)
    return node(name, "Const", value=f"tensor {{ {tensor} }}", dtype=f"type: {proto.dtype}")


def node(name, op, *inputs, **attrs):
    """The text of a node; attributes are given as text."""
    parts = [f'name: "{name}" op: "{op}"']
    parts += [f'input: "{i}"' for i in inputs]
    parts += [f'attr {{ key: "{k}" value {{ {v} }} }}' for k, v in attrs.items()]
    return f"node {{ {' '.join(parts)} }}"


FLOAT = "type: DT_FLOAT"


def identity(name, source, dtype=FLOAT):
    return node(name, "Identity", source, T=dtype)
