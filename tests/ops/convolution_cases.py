"""Convolutions to try, and their results by loops over every output element."""

import itertools
from dataclasses import dataclass

import jax
import numpy as np

from runnel.ops.convolution import conv_lowering as lowering


@dataclass(frozen=True)
class Case:
    """A convolution; spatial attributes only."""

    sizes: tuple = (7, 6)
    window: tuple = (3, 2)
    strides: tuple = (1, 1)
    dilations: tuple = (1, 1)
    padding: str | tuple = "SAME"
    batch: int = 2
    channels: int = 4
    filters: int = 6
    groups: int = 1
    channels_first: bool = False

    @property
    def pads(self):
        pads = []
        for i, n in enumerate(self.sizes):
            extent = (self.window[i] - 1) * self.dilations[i] + 1
            if self.padding == "SAME":
                total = max(0, (-(-n // self.strides[i]) - 1) * self.strides[i] + extent - n)
                pads.append((total // 2, total - total // 2))
            else:
                pads.append((0, 0) if self.padding == "VALID" else self.padding[i])
        return pads

    @property
    def attributes(self):
        def every_axis(values, other):
            values = list(values)
            return [other, other, *values] if self.channels_first else [other, *values, other]

        explicit = isinstance(self.padding, tuple)
        letters = "DHW"[-len(self.sizes) :]
        return dict(
            strides=every_axis(self.strides, 1),
            dilations=every_axis(self.dilations, 1),
            padding="EXPLICIT" if explicit else self.padding,
            explicit_paddings=[
                n for pair in every_axis(self.padding, (0, 0)) for n in pair
            ] if explicit else [],
            data_format="NC" + letters if self.channels_first else "N" + letters + "C",
        )  # fmt: skip

    def operands(self, dtype=np.float32):
        """x, filter and dy, small integers so that narrow types hold them exactly."""
        random = np.random.default_rng(0)
        out = [
            (n + sum(p) - (k - 1) * d - 1) // s + 1
            for n, p, k, d, s in zip(
                self.sizes, self.pads, self.window, self.dilations, self.strides
            )
        ]
        shapes = (
            (self.batch, *self.sizes, self.channels),
            (*self.window, self.channels // self.groups, self.filters),
            (self.batch, *out, self.filters),
        )
        return [random.integers(-4, 5, shape).astype(dtype) for shape in shapes]


def by_loops(case, x, filter, dy):
    """y, dfilter and dx, one output element of one group at a time, in float64."""
    x, filter, dy = (a.astype(np.float64) for a in (x, filter, dy))
    padded = np.pad(x, [(0, 0), *case.pads, (0, 0)])
    y, dfilter, dpadded = np.zeros(dy.shape), np.zeros(filter.shape), np.zeros(padded.shape)
    ins, outs = case.channels // case.groups, case.filters // case.groups
    for stop in itertools.product(*map(range, dy.shape[1:-1])):
        patch = tuple(
            slice(at * s, at * s + (k - 1) * d + 1, d)
            for at, s, k, d in zip(stop, case.strides, case.window, case.dilations)
        )
        for n, g in itertools.product(range(case.batch), range(case.groups)):
            seen = (n, *patch, slice(g * ins, (g + 1) * ins))
            group = slice(g * outs, (g + 1) * outs)
            at = (n, *stop, group)
            weights = filter[..., group]
            y[at] = np.tensordot(padded[seen], weights, axes=weights.ndim - 1)
            dfilter[..., group] += padded[seen][..., None] * dy[at]
            dpadded[seen] += weights @ dy[at]
    inside = tuple(slice(low, low + n) for (low, _), n in zip(case.pads, case.sizes))
    return y, dfilter, dpadded[(slice(None), *inside)]


def lowered(xp, case, operands, directions=("forward", "filter", "input"), **options):
    """y, dfilter and dx by the lowering, given and returned with the channels last."""
    x, filter, dy = operands
    attributes = {**case.attributes, **options}

    def arrange(a):
        return xp.moveaxis(a, -1, 1) if case.channels_first else a

    def restore(a):
        return xp.moveaxis(a, 1, -1) if case.channels_first else a

    run = {
        "forward": lambda x, w, dy: restore(lowering.conv(xp, arrange(x), w, **attributes)),
        "filter": lambda x, w, dy: lowering.conv_backprop_filter(
            xp, arrange(x), w.shape, arrange(dy), **attributes
        ),
        "input": lambda x, w, dy: restore(
            lowering.conv_backprop_input(xp, arrange(x).shape, w, arrange(dy), **attributes)
        ),
    }
    results = []
    for direction in directions:
        function = run[direction] if xp is np else jax.jit(run[direction])
        results.append(function(x, filter, dy))
    return results


CASES = {
    "same": Case(),
    "valid": Case(padding="VALID"),
    "strided": Case(strides=(2, 3)),
    "strided_valid_with_rest": Case(sizes=(8, 9), strides=(3, 2), padding="VALID"),
    "stride_beyond_window": Case(sizes=(9, 9), window=(2, 1), strides=(3, 2)),
    "dilated": Case(sizes=(9, 8), window=(3, 3), dilations=(2, 1)),
    "dilated_strided": Case(sizes=(9, 8), window=(2, 3), dilations=(3, 2), strides=(2, 1)),
    "explicit": Case(padding=((1, 0), (2, 3)), strides=(2, 1)),
    "padding_beyond_window": Case(padding=((4, 3), (0, 5))),
    "one_by_one": Case(window=(1, 1)),
    "one_by_one_strided": Case(window=(1, 1), strides=(2, 2), padding="VALID"),
    "image": Case(sizes=(11, 12), window=(7, 7), strides=(2, 2), channels=3),
    "image_dense": Case(window=(3, 3), channels=3),
    "channels_first": Case(strides=(2, 1), channels_first=True),
    "groups": Case(groups=2, strides=(1, 2)),
    "groups_channels_first": Case(groups=2, channels_first=True),
    "groups_of_one": Case(groups=4, filters=8),
    "volume": Case((4, 5, 3), (2, 3, 2), (1, 2, 1), (1, 1, 1)),
    "volume_dilated": Case((5, 4, 5), (2, 2, 3), (1, 1, 1), (2, 1, 1), channels_first=True),
}
