"""Where the pixels of a resized image come from: TensorFlow's rules for one axis.

By default pixel ``i`` of the output stands at ``i * scale`` of the input (its corner); with
``half_pixel_centers`` the centres of pixels correspond; with ``align_corners`` the centres of the
first and the last do. Positions are float32, so that they fall on the same pixels as TensorFlow's.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

_ONE = np.float32(1)
_HALF = np.float32(0.5)
_CUBIC_STEPS = 1024  # TensorFlow looks cubic weights up in a table of this many steps


@dataclass(frozen=True, slots=True)
class PixelGrid:
    """One axis of ``size`` pixels, resized to ``count``."""

    size: int
    count: int
    align_corners: bool = False
    half_pixel_centers: bool = False

    @property
    def scale(self) -> np.float32:
        """The distance in the input between neighbours of the output."""
        if self.align_corners and self.count > 1:
            return np.float32(self.size - 1) / np.float32(self.count - 1)
        return np.float32(self.size) / np.float32(self.count)

    def positions(self) -> np.ndarray:
        """Where each output pixel stands in the input."""
        places = np.arange(self.count, dtype=np.float32)
        if self.half_pixel_centers:
            return (places + _HALF) * self.scale - _HALF
        return places * self.scale

    def nearest(self) -> np.ndarray:
        """The input pixel that each output pixel copies."""
        places = np.arange(self.count, dtype=np.float32)
        if self.half_pixel_centers:
            places = places + _HALF
        places = places * self.scale
        # Halves go away from zero.
        rounded = np.floor(places + _HALF) if self.align_corners else np.floor(places)
        return np.clip(rounded, 0, self.size - 1).astype(np.int64)

    def neighbours(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The two pixels between which each output pixel lies, and how far it is from the first."""
        positions = self.positions()
        lower = np.floor(positions)
        low = np.clip(lower, 0, self.size - 1).astype(np.int64)
        high = np.clip(np.ceil(positions), 0, self.size - 1).astype(np.int64)
        return low, high, positions - lower

    # Weights: a matrix with a row for each output pixel and a column for each input pixel.

    def linear_weights(self) -> np.ndarray:
        """The weights of linear interpolation."""
        low, high, share = self.neighbours()
        return self._matrix([(low, _ONE - share), (high, share)])

    def nearest_weights(self) -> np.ndarray:
        """The weights of copying the nearest pixel."""
        return self._matrix([(self.nearest(), np.ones(self.count, np.float32))])

    def cubic_weights(self) -> np.ndarray:
        """The weights of cubic interpolation between four pixels (Keys, 1981).

        With ``half_pixel_centers`` pixels beyond the border have no weight and a is -0.5, else
        the border is repeated and a is -0.75.
        """
        keys = self.half_pixel_centers
        positions = self.positions()
        lower = np.floor(positions)
        share = np.rint((positions - lower) * _CUBIC_STEPS) / _CUBIC_STEPS
        places = [lower.astype(np.int64) + offset for offset in (-1, 0, 1, 2)]
        distances = (1 + share, share, 1 - share, 2 - share)
        weights = [_cubic(d, -0.5 if keys else -0.75) for d in distances]
        if keys:
            for place, weight in zip(places, weights, strict=True):
                weight[(place < 0) | (place >= self.size)] = 0
            total = np.sum(weights, axis=0, dtype=np.float32)
            weights = [weight / total for weight in weights]
        inside = [np.clip(place, 0, self.size - 1) for place in places]
        return self._matrix(list(zip(inside, weights, strict=True)))

    def area_weights(self) -> np.ndarray:
        """The share of each input pixel in the interval that an output pixel covers."""
        scale = self.scale
        begin = np.arange(self.count, dtype=np.float32) * scale
        end = np.arange(1, self.count + 1, dtype=np.float32) * scale
        widest = int(np.ceil(scale)) + 2
        parts = []
        for offset in range(widest):
            place = np.floor(begin) + np.float32(offset)
            covered = np.minimum(place + _ONE, end) - np.maximum(place, begin)
            weight = np.where(place < np.ceil(end), np.maximum(covered, 0), 0) / scale
            parts.append((np.clip(place, 0, self.size - 1).astype(np.int64), weight))
        return self._matrix(parts)

    def _matrix(self, parts: list[tuple[np.ndarray, np.ndarray]]) -> np.ndarray:
        matrix = np.zeros((self.count, self.size), np.float32)
        rows = np.arange(self.count)
        for places, weights in parts:
            matrix[rows, places] += weights.astype(np.float32)  # each row once in each part
        return matrix


def _cubic(distance: np.ndarray, a: float) -> np.ndarray:
    """The kernel of cubic convolution at a distance of at most two pixels."""
    d = distance.astype(np.float32)
    near = ((a + 2) * d - (a + 3)) * d * d + 1
    far = ((a * d - 5 * a) * d + 8 * a) * d - 4 * a
    return np.where(d <= 1, near, far).astype(np.float32)
