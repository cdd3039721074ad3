"""``Distribution``: what all distributions can do."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from runnel.graph.conversion import convert_to_tensor
from runnel.graph.dtypes import float32, int32
from runnel.graph.graph import name_scope
from runnel.graph.operation import Tensor
from runnel.graph.shapes import TensorShape
from runnel.ops.array_shape import reshape, shape
from runnel.ops.comparison import equal
from runnel.ops.control import stop_gradient
from runnel.ops.elementwise import exp, log, log1p, sqrt
from runnel.ops.joining import concat
from runnel.ops.reduce_functions import reduce_prod


class ReparameterizationType:
    """Whether samples have gradients with respect to the parameters."""

    def __init__(self, rep_type: str) -> None:
        self._rep_type = rep_type

    def __repr__(self) -> str:
        return f"<Reparameterization Type: {self._rep_type}>"


FULLY_REPARAMETERIZED = ReparameterizationType("FULLY_REPARAMETERIZED")
NOT_REPARAMETERIZED = ReparameterizationType("NOT_REPARAMETERIZED")

_DIVERGENCES: dict[tuple[type, type], Callable[..., Tensor]] = {}


class Distribution:
    """A distribution, or a batch of independent ones.

    A subclass has ``_sample(count, seed)``, ``_log_prob(value)`` and what else it can say:
    ``_mean``, ``_variance``, ``_entropy``, ``_mode``, ``_cdf``. Samples have the shape of what was
    asked, then of the batch, then of one event.
    """

    reparameterization_type = NOT_REPARAMETERIZED
    _event_rank = 0

    def __init__(self, name: str, **parameters: Any) -> None:
        self._name = name
        self._parameters = parameters

    @property
    def name(self) -> str:
        """Its name."""
        return self._name

    @property
    def parameters(self) -> dict[str, Any]:
        """What it was made of."""
        return dict(self._parameters)

    @property
    def dtype(self) -> Any:
        """The type of its samples."""
        return float32

    def copy(self, **override_parameters_kwargs: Any) -> Any:
        """The same with some parameters replaced."""
        return type(self)(**{**self._parameters, **override_parameters_kwargs}, name=self._name)

    # Shapes -----------------------------------------------------------------------------------

    def is_scalar_event(self, name: str = "is_scalar_event") -> Tensor:
        """Whether an event is a number."""
        return convert_to_tensor(self._event_rank == 0)

    def is_scalar_batch(self, name: str = "is_scalar_batch") -> Tensor:
        """Whether it is no batch."""
        return equal(shape(self.batch_shape_tensor())[0], 0)

    def _whole_shape(self) -> Tensor:
        """The shape of one sample of the whole batch, as a tensor."""
        raise NotImplementedError

    def _static_shape(self) -> TensorShape:
        raise NotImplementedError

    @property
    def batch_shape(self) -> TensorShape:
        """The shape of the batch, as far as it is known."""
        whole = self._static_shape()
        return whole[: len(whole) - self._event_rank] if self._event_rank else whole

    @property
    def event_shape(self) -> TensorShape:
        """The shape of one event."""
        whole = self._static_shape()
        return whole[len(whole) - self._event_rank :] if self._event_rank else TensorShape([])

    def batch_shape_tensor(self, name: str = "batch_shape_tensor") -> Tensor:
        """The shape of the batch."""
        whole = self._whole_shape()
        return whole[: shape(whole)[0] - self._event_rank]

    def event_shape_tensor(self, name: str = "event_shape_tensor") -> Tensor:
        """The shape of one event."""
        whole = self._whole_shape()
        return whole[shape(whole)[0] - self._event_rank :]

    # What is asked -----------------------------------------------------------------------------

    def sample(
        self, sample_shape: Any = (), seed: int | None = None, name: str = "sample"
    ) -> Tensor:
        """Samples: a tensor of ``sample_shape``, then the shape of the batch."""
        with name_scope(f"{self._name}/{name}"):
            given = sample_shape
            if isinstance(given, tuple | list | TensorShape):
                given = convert_to_tensor(list(TensorShape(list(given)).as_list()), int32)
            wanted = reshape(convert_to_tensor(given, int32), [-1])
            count = reduce_prod(wanted)
            flat = self._sample(count, seed)
            found = reshape(flat, concat([wanted, shape(flat)[1:]], 0))
            if isinstance(sample_shape, int | tuple | list):
                sizes = [sample_shape] if isinstance(sample_shape, int) else list(sample_shape)
                found.set_shape(TensorShape(sizes).concatenate(self._static_shape()))
            if self.reparameterization_type is NOT_REPARAMETERIZED and found.dtype.is_floating:
                found = stop_gradient(found)
            return found

    def log_prob(self, value: Any, name: str = "log_prob") -> Tensor:
        """The logarithm of the density, or probability, of values."""
        with name_scope(f"{self._name}/{name}"):
            return self._log_prob(self._as_value(value))

    def _as_value(self, value: Any) -> Tensor:
        return convert_to_tensor(value, None if hasattr(value, "dtype") else self.dtype)

    def prob(self, value: Any, name: str = "prob") -> Tensor:
        """The density, or probability, of values."""
        with name_scope(f"{self._name}/{name}"):
            return exp(self._log_prob(self._as_value(value)))

    def cdf(self, value: Any, name: str = "cdf") -> Tensor:
        """The probability of values up to ``value``."""
        with name_scope(f"{self._name}/{name}"):
            return self._cdf(self._as_value(value))

    def log_cdf(self, value: Any, name: str = "log_cdf") -> Tensor:
        """The logarithm of :meth:`cdf`."""
        with name_scope(f"{self._name}/{name}"):
            return self._log_cdf(self._as_value(value))

    def survival_function(self, value: Any, name: str = "survival_function") -> Tensor:
        """The probability of values above ``value``."""
        return 1.0 - self.cdf(value, name)

    def log_survival_function(self, value: Any, name: str = "log_survival_function") -> Tensor:
        """The logarithm of :meth:`survival_function`."""
        with name_scope(f"{self._name}/{name}"):
            return self._log_survival_function(self._as_value(value))

    def entropy(self, name: str = "entropy") -> Tensor:
        """The entropy, in nats."""
        with name_scope(f"{self._name}/{name}"):
            return self._entropy()

    def mean(self, name: str = "mean") -> Tensor:
        """The mean."""
        with name_scope(f"{self._name}/{name}"):
            return self._mean()

    def mode(self, name: str = "mode") -> Tensor:
        """The most likely value."""
        with name_scope(f"{self._name}/{name}"):
            return self._mode()

    def variance(self, name: str = "variance") -> Tensor:
        """The variance."""
        with name_scope(f"{self._name}/{name}"):
            return self._variance()

    def stddev(self, name: str = "stddev") -> Tensor:
        """The standard deviation."""
        with name_scope(f"{self._name}/{name}"):
            return sqrt(self._variance())

    def kl_divergence(self, other: Distribution, name: str = "kl_divergence") -> Tensor:
        """The divergence of this distribution from another, of Kullback and Leibler."""
        return kl_divergence(self, other, name=name)

    def cross_entropy(self, other: Distribution, name: str = "cross_entropy") -> Tensor:
        """The cross entropy with another distribution."""
        return self.entropy() + kl_divergence(self, other, name=name)

    # What subclasses say -------------------------------------------------------------------------

    def _missing(self, what: str) -> NotImplementedError:
        return NotImplementedError(f"{type(self).__name__} does not tell its {what}")

    def _sample(self, count: Tensor, seed: int | None) -> Tensor:
        raise self._missing("samples")

    def _log_prob(self, value: Tensor) -> Tensor:
        raise self._missing("density")

    def _cdf(self, value: Tensor) -> Tensor:
        raise self._missing("cdf")

    def _log_cdf(self, value: Tensor) -> Tensor:
        return log(self._cdf(value))

    def _log_survival_function(self, value: Tensor) -> Tensor:
        return log1p(-self._cdf(value))

    def _entropy(self) -> Tensor:
        raise self._missing("entropy")

    def _mean(self) -> Tensor:
        raise self._missing("mean")

    def _mode(self) -> Tensor:
        raise self._missing("mode")

    def _variance(self) -> Tensor:
        raise self._missing("variance")


class RegisterKL:
    """Decorates the function that gives the divergence between two classes of distributions.

    Example:
        >>> @tf.distributions.RegisterKL(Mine, Mine)
        ... def _(a, b, name=None): ...
    """

    def __init__(self, dist_cls_a: type, dist_cls_b: type) -> None:
        self._key = (dist_cls_a, dist_cls_b)

    def __call__(self, kl_fn: Callable[..., Tensor]) -> Callable[..., Tensor]:
        if not callable(kl_fn):
            raise TypeError(f"kl_fn must be callable, received: {kl_fn}")
        if self._key in _DIVERGENCES:
            names = " and ".join(kind.__name__ for kind in self._key)
            raise ValueError(f"The divergence of {names} is registered already")
        _DIVERGENCES[self._key] = kl_fn
        return kl_fn


def kl_divergence(
    distribution_a: Distribution,
    distribution_b: Distribution,
    allow_nan_stats: bool = True,
    name: str | None = None,
) -> Tensor:
    """The divergence of one distribution from another, of Kullback and Leibler."""
    for a in type(distribution_a).__mro__:
        for b in type(distribution_b).__mro__:
            found = _DIVERGENCES.get((a, b))
            if found is not None:
                with name_scope(name, "KullbackLeibler"):
                    return found(distribution_a, distribution_b)
    raise NotImplementedError(
        f"No divergence is registered for {type(distribution_a).__name__} and "
        f"{type(distribution_b).__name__}; tf.distributions.RegisterKL registers one"
    )
