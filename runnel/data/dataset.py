"""``tf.data.Dataset``: elements, and what is done to them on their way into a step."""

from __future__ import annotations

import builtins
from collections.abc import Callable
from typing import Any

import numpy as np

from runnel.data.element_structure import (
    TensorSpec,
    VariantSpec,
    as_elements,
    component_attrs,
    flatten,
    from_components,
    map_leaves,
    pack_as,
    structure_of,
    to_components,
    values_up_to,
)
from runnel.data.generators import generated
from runnel.data.iterators import GLOBAL_ITERATORS, Iterator
from runnel.data.options import Options
from runnel.data.padding import padded_shape
from runnel.data.traced_function import TracedFunction, dataset_factory, trace, trace_state
from runnel.graph import dtypes
from runnel.graph.constant_value import constant_value
from runnel.graph.conversion import convert_to_tensor
from runnel.graph.graph import colocate_with, control_dependencies, get_default_graph
from runnel.graph.operation import Tensor
from runnel.graph.random_seed import get_seed, skip_op_ids
from runnel.graph.shapes import TensorShape
from runnel.graph.sparse_tensor import SparseTensor
from runnel.ops.array_shape import shape as shape_of
from runnel.ops.checks import Assert
from runnel.ops.control import identity
from runnel.ops.data import dataset_ops, function_ops, statistics_ops
from runnel.ops.data.iterator_ops import make_op, one_shot_op
from runnel.ops.files import matching_files

AUTOTUNE = -1
_FOREVER = np.iinfo(np.int64).max


def _count(value: Any) -> Tensor:
    return convert_to_tensor(-1 if value is None else value, dtypes.int64)


class Dataset:
    """Elements, described in the graph; an iterator gives them to steps.

    Example:
        >>> dataset = tf.data.Dataset.from_tensor_slices((images, labels))
        >>> dataset = dataset.shuffle(10000).repeat().batch(32).prefetch(1)
        >>> images, labels = dataset.make_one_shot_iterator().get_next()
    """

    _options: Options | None = None

    def __init__(self, variant: Tensor, structure: Any) -> None:
        self._variant_tensor = variant
        self._structure = structure

    @property
    def _place(self) -> DatasetSpec:
        """What stands for it where it is an element itself."""
        return DatasetSpec(self._structure)

    def __repr__(self) -> str:
        return f"<Dataset shapes: {self.output_shapes}, types: {self.output_types}>"

    @property
    def element_spec(self) -> Any:
        """The structure of its elements, with a ``tf.TypeSpec`` in each place.

        Example:
            >>> tf.data.Dataset.range(3).element_spec
            TensorSpec(shape=TensorShape([]), dtype=tf.int64, name=None)
        """
        return self._structure

    @property
    def output_types(self) -> Any:
        return map_leaves(lambda place: place.type, self._structure)

    @property
    def output_shapes(self) -> Any:
        return map_leaves(lambda place: place.shape, self._structure)

    @property
    def output_classes(self) -> Any:
        return map_leaves(lambda place: place.kind, self._structure)

    # Sources ------------------------------------------------------------------------------------

    @staticmethod
    def from_tensors(tensors: Any) -> Dataset:
        """One element: ``tensors``."""
        elements = as_elements(tensors)
        structure = structure_of(elements)
        variant = dataset_ops.tensor_op(
            to_components(structure, elements),
            output_shapes=component_attrs(structure)["output_shapes"],
        )
        return Dataset(variant, structure)

    @staticmethod
    def from_tensor_slices(tensors: Any) -> Dataset:
        """An element for each row of ``tensors``.

        Example:
            >>> tf.data.Dataset.from_tensor_slices({"x": [[1, 2], [3, 4]], "y": [0, 1]})
        """
        elements = as_elements(tensors)
        whole = structure_of(elements)
        structure = map_leaves(lambda place: place.unbatched(), whole)
        sizes = {
            place.dims[0]
            for place in flatten(whole)
            if place.dims is not None and place.dims[0] is not None
        }
        if len(sizes) > 1:
            raise ValueError(f"The first dimensions of the components differ: {sorted(sizes)}")
        leaves = builtins.zip(flatten(whole), flatten(elements), strict=True)
        variant = dataset_ops.slices_op(
            [place.to_slices(leaf) for place, leaf in leaves],
            output_shapes=component_attrs(structure)["output_shapes"],
        )
        return Dataset(variant, structure)

    @staticmethod
    def from_sparse_tensor_slices(sparse_tensor: Any) -> Dataset:
        """An element (indices, values, shape) for each row of a sparse tensor."""
        sparse = SparseTensor.from_value(sparse_tensor)
        rank = sparse.shape.rank
        inner = None if rank is None else rank - 1
        structure = (
            TensorSpec((None, inner), dtypes.int64),
            TensorSpec((None,), sparse.dtype.base_dtype),
            TensorSpec((inner,), dtypes.int64),
        )
        variant = dataset_ops.sparse_slices_op(sparse.indices, sparse.values, sparse.dense_shape)
        return Dataset(variant, structure)

    @staticmethod
    def from_generator(
        generator: Callable[..., Any],
        output_types: Any,
        output_shapes: Any = None,
        args: Any = None,
    ) -> Dataset:
        """What the Python generator ``generator(*args)`` gives, called anew for each iteration.

        Example:
            >>> tf.data.Dataset.from_generator(lambda: iter(range(3)), tf.int64, [])
        """
        return Dataset(*generated(generator, output_types, output_shapes, args))

    @staticmethod
    def range(*args: Any) -> Dataset:
        """The numbers of Python's ``range``, as int64."""
        if not 1 <= len(args) <= 3:
            raise ValueError(f"Invalid arguments to RangeDataset: {args}")
        start, stop, step = {
            1: lambda: (0, args[0], 1),
            2: lambda: (args[0], args[1], 1),
            3: lambda: args,
        }[len(args)]()
        structure = TensorSpec((), dtypes.int64)
        variant = dataset_ops.range_op(
            *[convert_to_tensor(value, dtypes.int64) for value in (start, stop, step)],
            **component_attrs(structure),
        )
        return Dataset(variant, structure)

    @staticmethod
    def list_files(file_pattern: Any, shuffle: bool | None = None, seed: Any = None) -> Dataset:
        """The names of the files that match a pattern, shuffled unless told otherwise."""
        pattern = convert_to_tensor(file_pattern, dtypes.string)
        found = matching_files(pattern)
        count = shape_of(found, out_type=dtypes.int64)[0]
        check = Assert(count > 0, ["No files matched pattern: ", pattern])
        with control_dependencies([check]):
            found = identity(found)
        dataset = Dataset.from_tensor_slices(found)
        skip_op_ids(3)  # TensorFlow's check of the number, and below, a shuffle of at least one
        if shuffle is False:
            return dataset
        skip_op_ids(2)
        return dataset.shuffle(shape_of(found, out_type=dtypes.int64)[0], seed=seed)

    @staticmethod
    def zip(datasets: Any) -> Dataset:
        """Elements of several datasets side by side, until one of them ends.

        Example:
            >>> tf.data.Dataset.zip((images, {"label": labels}))
        """
        parts = flatten(datasets)
        for part in parts:
            if not isinstance(part, Dataset):
                raise TypeError(
                    f"The argument to `Dataset.zip()` must be a nested structure of `Dataset` "
                    f"objects, not {part!r}"
                )
        structure = map_leaves(lambda dataset: dataset._structure, datasets)
        variant = dataset_ops.zip_op(
            [part._variant_tensor for part in parts], **component_attrs(structure)
        )
        return Dataset(variant, structure)._made_of(*parts)

    # Transformations ----------------------------------------------------------------------------

    def _with(self, op_def: Any, *inputs: Any, structure: Any = None, **attrs: Any) -> Dataset:
        """The dataset that an operation makes of this one."""
        made = self._structure if structure is None else structure
        variant = op_def(self._variant_tensor, *inputs, **component_attrs(made), **attrs)
        return Dataset(variant, made)._made_of(self)

    def _made_of(self, *datasets: Dataset) -> Dataset:
        """This dataset, with the options of those whose elements it takes."""
        for dataset in datasets:
            if dataset._options is not None:
                self._options = self.options().merge(dataset._options)
        return self

    def concatenate(self, dataset: Dataset) -> Dataset:
        """These elements, then those of ``dataset``."""
        ours, theirs = flatten(self._structure), flatten(dataset._structure)
        if len(ours) != len(theirs):
            raise TypeError(
                f"Two datasets to concatenate have different structures: {self.output_types} and "
                f"{dataset.output_types}"
            )
        merged = [a.merged(b) for a, b in builtins.zip(ours, theirs, strict=True)]
        structure = pack_as(self._structure, merged)
        made = self._with(dataset_ops.concatenate_op, dataset._variant_tensor, structure=structure)
        return made._made_of(dataset)

    def repeat(self, count: Any = None) -> Dataset:
        """All elements ``count`` times, or for ever."""
        return self._with(dataset_ops.repeat_op, _count(count))

    def take(self, count: Any) -> Dataset:
        """The first ``count`` elements; all for -1."""
        return self._with(dataset_ops.take_op, _count(count))

    def skip(self, count: Any) -> Dataset:
        """What follows the first ``count`` elements; nothing for -1."""
        return self._with(dataset_ops.skip_op, _count(count))

    def shard(self, num_shards: Any, index: Any) -> Dataset:
        """Every ``num_shards``-th element, from ``index`` on."""
        shards = convert_to_tensor(num_shards, dtypes.int64)
        place = convert_to_tensor(index, dtypes.int64)
        known = (constant_value(shards), constant_value(place))
        if known[0] is not None and known[0] < 1:
            raise ValueError("num_shards must be >= 1")
        if known[1] is not None and known[1] < 0:
            raise ValueError("index must be >= 0")
        if known[0] is not None and known[1] is not None and known[1] >= known[0]:
            raise ValueError("index must be less than num_shards")
        return self._with(dataset_ops.shard_op, shards, place)

    def cache(self, filename: Any = "") -> Dataset:
        """The same elements; after the first time, out of memory, or the file ``filename.cache``.

        The file appears when all elements have been made, and serves later processes too.
        """
        return self._with(dataset_ops.cache_op, convert_to_tensor(filename, dtypes.string))

    def prefetch(self, buffer_size: Any) -> Dataset:
        """The same elements, made by a thread ahead of need, at most ``buffer_size`` of them."""
        return self._with(dataset_ops.prefetch_op, _count(buffer_size))

    def shuffle(
        self, buffer_size: Any, seed: Any = None, reshuffle_each_iteration: bool | None = None
    ) -> Dataset:
        """The elements in a random order: each drawn from a buffer of ``buffer_size``."""
        size = convert_to_tensor(buffer_size, dtypes.int64)
        again = True if reshuffle_each_iteration is None else reshuffle_each_iteration
        return self._with(
            dataset_ops.shuffle_op, size, *_seeds(seed), reshuffle_each_iteration=again
        )

    def _shuffled_and_repeated(self, buffer_size: Any, count: Any, seed: Any) -> Dataset:
        size, times = convert_to_tensor(buffer_size, dtypes.int64), _count(count)
        return self._with(dataset_ops.shuffle_and_repeat_op, size, *_seeds(seed), times)

    def batch(self, batch_size: Any, drop_remainder: Any = False) -> Dataset:
        """``batch_size`` elements stacked; the last may have fewer unless it is dropped."""
        size = convert_to_tensor(batch_size, dtypes.int64)
        drop = convert_to_tensor(drop_remainder, dtypes.bool_)
        rows = _known_rows(size, drop)
        structure = map_leaves(lambda place: place.batched(rows), self._structure)
        return self._with(dataset_ops.batch_v2_op, size, drop, structure=structure)

    def padded_batch(
        self,
        batch_size: Any,
        padded_shapes: Any,
        padding_values: Any = None,
        drop_remainder: Any = False,
    ) -> Dataset:
        """``batch_size`` elements stacked, each filled up to a shape first.

        In ``padded_shapes`` None (or -1) stands for the largest of the batch; a shape may be a
        vector, or have scalar tensors in it.
        """
        size = convert_to_tensor(batch_size, dtypes.int64)
        drop = convert_to_tensor(drop_remainder, dtypes.bool_)
        places = flatten(self._structure)
        for place in places:
            if type(place) is not TensorSpec:
                raise TypeError(
                    "Batching of padded sparse tensors is not currently supported, nor of padded "
                    f"ragged ones: padded_batch takes tensors, not {place.kind}"
                )
        shapes = [padded_shape(s) for s in values_up_to(self._structure, padded_shapes)]
        given = (
            [None] * len(places)
            if padding_values is None
            else values_up_to(self._structure, padding_values)
        )
        fillings = []
        for place, value in builtins.zip(places, given, strict=True):
            if value is None:
                value = "" if place.dtype is dtypes.string else place.dtype.np_dtype.type(0)
            fillings.append(convert_to_tensor(value, place.dtype))
        for place, (_, shape) in builtins.zip(places, shapes, strict=True):
            if place.dims is not None and shape is not None and len(place.dims) != len(shape):
                raise ValueError(
                    f"The padded shape {list(shape)} is not compatible with the corresponding "
                    f"input component shape {place.shape}."
                )
        rows = _known_rows(size, drop)
        structure = pack_as(
            self._structure,
            [
                TensorSpec(None if shape is None else (rows, *shape), place.dtype)
                for place, (_, shape) in builtins.zip(places, shapes, strict=True)
            ],
        )
        variant = dataset_ops.padded_batch_v2_op(
            self._variant_tensor,
            size,
            [sizes for sizes, _ in shapes],
            fillings,
            drop,
            output_shapes=component_attrs(structure)["output_shapes"],
        )
        return Dataset(variant, structure)._made_of(self)

    def unbatch(self) -> Dataset:
        """The rows of elements as elements."""
        places = flatten(self._structure)
        firsts = [place.dims[0] for place in places if isinstance(place, TensorSpec) and place.dims]
        sizes = {size for size in firsts if size is not None}
        if len(sizes) > 1:
            raise ValueError(
                f"The components of an element have different numbers of rows: {sorted(sizes)}. "
                "unbatch() takes them apart row by row, side by side."
            )
        structure = map_leaves(lambda place: place.unbatched(), self._structure)
        if all(type(place) is TensorSpec for place in places):
            return self._with(dataset_ops.unbatch_op, structure=structure)

        def in_rows(*element: Any) -> tuple[Tensor, ...]:
            leaves = builtins.zip(places, flatten(element), strict=True)
            return tuple(place.to_slices(leaf) for place, leaf in leaves)

        return self.map(in_rows)._with(dataset_ops.unbatch_op, structure=structure)

    def window(
        self, size: Any, shift: Any = None, stride: Any = 1, drop_remainder: Any = False
    ) -> Dataset:
        """Elements that are datasets: of ``size`` elements each, ``shift`` further each time."""
        structure = map_leaves(lambda place: DatasetSpec(place), self._structure)
        return self._with(
            dataset_ops.window_op,
            *[convert_to_tensor(n, dtypes.int64) for n in (size, shift or size, stride)],
            convert_to_tensor(drop_remainder, dtypes.bool_),
            structure=structure,
        )

    def enumerate(self, start: Any = 0) -> Dataset:
        """Pairs of a number, from ``start`` on, and an element."""
        return Dataset.zip((Dataset.range(start, _FOREVER), self))

    # Functions ----------------------------------------------------------------------------------

    def _traced(self, function: Callable[..., Any], what: str) -> TracedFunction:
        return trace(function, [self._structure], what)

    def map(self, map_func: Callable[..., Any], num_parallel_calls: Any = None) -> Dataset:
        """``map_func`` of each element, of several at the same time if asked.

        Example:
            >>> dataset.map(lambda image, label: (image / 255, label), num_parallel_calls=2)
        """
        function = self._traced(map_func, "map")
        captured = list(function.captures)
        if num_parallel_calls is None:
            return self._with(
                function_ops.map_op, captured, structure=function.structure, f=function.attr
            )
        calls = convert_to_tensor(num_parallel_calls, dtypes.int32)
        return self._with(
            function_ops.parallel_map_op,
            captured,
            calls,
            structure=function.structure,
            f=function.attr,
        )

    def filter(self, predicate: Callable[..., Any]) -> Dataset:
        """The elements of which ``predicate`` says true."""
        function = self._traced(predicate, "filter")
        place = function.structure
        if not isinstance(place, TensorSpec) or not place.fits(TensorSpec((), dtypes.bool_)):
            raise ValueError("`predicate` must return a scalar boolean tensor.")
        return self._with(function_ops.filter_op, list(function.captures), predicate=function.attr)

    def map_with_legacy_function(
        self, map_func: Callable[..., Any], num_parallel_calls: Any = None
    ) -> Dataset:
        """The same as :meth:`map`, under an older name."""
        return self.map(map_func, num_parallel_calls)

    def filter_with_legacy_function(self, predicate: Callable[..., Any]) -> Dataset:
        """The same as :meth:`filter`, under an older name."""
        return self.filter(predicate)

    def _traced_dataset(self, function: Callable[..., Any], what: str) -> tuple[Any, Any]:
        traced = self._traced(function, what)
        if not isinstance(traced.structure, DatasetSpec):
            raise TypeError(f"`map_func` must return a `Dataset` object, not {traced.elements!r}")
        return traced, traced.structure.structure

    def flat_map(self, map_func: Callable[..., Any]) -> Dataset:
        """The elements of the datasets that ``map_func`` makes, one dataset after the other."""
        function, structure = self._traced_dataset(map_func, "flat_map")
        return self._with(
            function_ops.flat_map_op,
            list(function.captures),
            structure=structure,
            f=function.attr,
        )

    def interleave(
        self,
        map_func: Callable[..., Any],
        cycle_length: Any = AUTOTUNE,
        block_length: Any = 1,
        num_parallel_calls: Any = None,
    ) -> Dataset:
        """The elements of the datasets that ``map_func`` makes, ``block_length`` of each in turn.

        ``cycle_length`` datasets are open at the same time, or as many as there are cores. With
        ``num_parallel_calls`` threads read them ahead; the order stays the same.
        """
        function, structure = self._traced_dataset(map_func, "interleave")
        turns = [convert_to_tensor(n, dtypes.int64) for n in (cycle_length, block_length)]
        if num_parallel_calls is None:
            return self._with(
                function_ops.interleave_op,
                list(function.captures),
                *turns,
                structure=structure,
                f=function.attr,
            )
        return self._with(
            function_ops.parallel_interleave_v2_op,
            list(function.captures),
            *turns,
            convert_to_tensor(num_parallel_calls, dtypes.int64),
            structure=structure,
            f=function.attr,
        )

    def reduce(self, initial_state: Any, reduce_func: Callable[..., Any]) -> Any:
        """``reduce_func(state, element)`` of each element in turn: the last state, as a tensor.

        Example:
            >>> tf.data.Dataset.range(5).reduce(np.int64(0), lambda total, x: total + x)  # 10
        """
        state = as_elements(initial_state)
        function, structure = trace_state(
            reduce_func, structure_of(state), self._structure, "reduce", lambda made: made
        )
        tensors = function_ops.reduce_op(
            self._variant_tensor,
            to_components(structure, state),
            list(function.captures),
            f=function.attr,
            **component_attrs(structure),
        )
        return from_components(structure, list(tensors))

    def apply(self, transformation_func: Callable[[Dataset], Dataset]) -> Dataset:
        """``transformation_func`` of this dataset."""
        made = transformation_func(self)
        if not isinstance(made, Dataset):
            raise TypeError("`transformation_func` must return a Dataset.")
        return made

    def options(self) -> Options:
        """The options that it was given."""
        return self._options or Options()

    def with_options(self, options: Options) -> Dataset:
        """The same elements, with ``options``."""
        made = Dataset(self._variant_tensor, self._structure)
        made._options = self.options().merge(options)
        return made

    # Iterators ----------------------------------------------------------------------------------

    def make_one_shot_iterator(self) -> Iterator:
        """An iterator that begins by itself, once; it can be neither fed nor begun again."""
        graph = get_default_graph()
        name = graph.unique_name("Dataset_make")
        variant, made = self._with_options_applied()
        skip_op_ids(-made)  # in TensorFlow they are those of a function
        factory = dataset_factory(graph, variant, name)
        resource = one_shot_op(dataset_factory=factory.attr, **component_attrs(self._structure))
        graph.add_to_collection(GLOBAL_ITERATORS, resource)
        return Iterator.over(resource, None, self._structure)

    def make_initializable_iterator(self, shared_name: str | None = None) -> Iterator:
        """An iterator that its operation ``initializer`` has begin with the first element."""
        variant, _ = self._with_options_applied()
        if self.options().experimental_optimization.autotune is not False:
            skip_op_ids(1)  # with which TensorFlow tunes it
        made = Iterator.of_structure(self._structure, shared_name)
        made._initializer = make_op(variant, made._iterator_resource)
        return made

    def _with_options_applied(self) -> tuple[Tensor, int]:
        """What stands for it in its iterators, and how many operations that took."""
        options, variant = self.options(), self._variant_tensor
        before = len(variant.graph.get_operations())
        attrs = component_attrs(self._structure)
        with colocate_with(variant.op):  # a variant cannot go to another process
            if rewrites := options.rewrites():
                names = convert_to_tensor(rewrites, dtypes.string, name="optimizations")
                variant = statistics_ops.optimize_op(variant, names, **attrs)
            stats = options.experimental_stats
            if stats.aggregator is not None:
                variant = statistics_ops.record_op(
                    variant, stats.aggregator._resource, stats.prefix, stats.counter_prefix, **attrs
                )
        return variant, len(variant.graph.get_operations()) - before


class DatasetSpec(VariantSpec):
    """A dataset, whose elements have a structure of their own.

    Example:
        >>> tf.data.DatasetSpec(tf.TensorSpec([None], tf.int64))
    """

    __slots__ = ()

    def __init__(self, element_spec: Any, dataset_shape: Any = ()) -> None:
        if TensorShape(dataset_shape).rank != 0:
            raise ValueError(f"A dataset is a scalar here; its shape is not {dataset_shape}")
        super().__init__(element_spec)

    def __repr__(self) -> str:
        return f"DatasetSpec({self.structure!r}, TensorShape([]))"

    @staticmethod
    def from_value(value: Dataset) -> DatasetSpec:
        """That of ``value``."""
        return value._place

    @property
    def value_type(self) -> Any:
        return Dataset

    def made(self, variant: Tensor) -> Dataset:
        return Dataset(variant, self.structure)


def _seeds(seed: Any) -> list[Tensor]:
    """The two seeds of a dataset that draws, zeros where it has none."""
    seeds = [0 if one is None else one for one in get_seed(seed)]
    skip_op_ids(7)  # with which TensorFlow chooses among seeds
    return [convert_to_tensor(one, dtypes.int64) for one in seeds]


def _known_rows(size: Tensor, drop: Tensor) -> int | None:
    """How many rows every batch has, if that is known."""
    rows, always = constant_value(size), constant_value(drop)
    return int(rows) if rows is not None and always is not None and always else None
