"""``with_pprof_output``: what a reader of the public format finds in the file."""

from __future__ import annotations

import pytest

import runnel as tf
from tests.both_tiers import COMPILED, INTERPRETED, session
from tests.profiler.pprof_file import read_pprof

BUILD = tf.profiler.ProfileOptionBuilder
FULL_TRACE = tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE)


def product():
    return tf.matmul(tf.ones([20, 30]), tf.ones([30, 40]), name="product")


def traced(fetch, level=INTERPRETED):
    metadata = tf.RunMetadata()
    with session(level) as sess:
        sess.run(fetch, options=FULL_TRACE, run_metadata=metadata)
    return metadata


def profile_to(path, metadata, options, cmd="code", **more):
    chosen = BUILD(options).with_pprof_output(path).build() | more
    return tf.profiler.profile(run_meta=metadata, cmd=cmd, options=chosen)


def by_operation(found):
    return {
        label["graph node:"]: (calls, values)
        for (calls, values), label in zip(found.samples, found.labels, strict=True)
    }


def test_each_operation_is_a_sample_with_the_calls_that_made_it(tmp_path):
    metadata = traced(tf.tanh(product(), name="result"))
    spent = {s.node_name: s for d in metadata.step_stats.dev_stats for s in d.node_stats}
    path = tmp_path / "profile.gz"
    profile_to(path, metadata, BUILD.time_and_memory(min_bytes=0))
    found = read_pprof(path)
    assert found.kinds == [("count", "count"), ("micros", "microseconds"), ("bytes", "bytes")]
    assert found.default_kind == "micros"
    samples = by_operation(found)
    calls, values = samples["product"]
    assert values == [1, spent["product"].all_end_rel_micros, 20 * 40 * 4]
    function, file, line = calls[0]
    assert (function, file) == ("test_pprof:product", __file__)
    assert line == product.__code__.co_firstlineno + 1
    assert calls[1][0] == "test_pprof:test_each_operation_is_a_sample_with_the_calls_that_made_it"
    assert samples["result"][0][0][0] == calls[1][0]
    total = sum(s.all_end_rel_micros for s in spent.values())
    assert sum(values[1] for _, values in found.samples) == total


def test_counts_that_need_no_trace(tmp_path):
    tf.Variable(tf.zeros([3, 4]), name="w")
    product()
    options = BUILD(BUILD.trainable_variables_parameter()).select(["params", "float_ops"]).build()
    profile_to(tmp_path / "p.gz", None, options, account_type_regexes=[".*"])
    found = read_pprof(tmp_path / "p.gz")
    assert found.kinds[1:] == [("params", "count"), ("float_ops", "count")]
    samples = {name: values for name, (_, values) in by_operation(found).items()}
    assert samples["w"] == [1, 12, 0] and "zeros" not in samples
    profile_to(tmp_path / "p.gz", None, BUILD.float_operation())
    samples = by_operation(read_pprof(tmp_path / "p.gz"))
    assert samples["product"][1] == [1, 2 * 20 * 30 * 40]


def test_calls_are_hidden_by_name(tmp_path):
    product()
    path = tmp_path / "p.gz"
    profile_to(path, None, BUILD.float_operation(), hide_name_regexes=[".*:product"])
    [(calls, _)] = read_pprof(path).samples
    assert calls[0][0] == "test_pprof:test_calls_are_hidden_by_name"


def test_compiled_steps_are_there_too(tmp_path):
    metadata = traced(tf.tanh(product()), COMPILED)
    path = tmp_path / "profile.gz"
    profile_to(path, metadata, BUILD.time_and_memory(min_bytes=0))
    spent = [s for d in metadata.step_stats.dev_stats for s in d.node_stats]
    found = read_pprof(path)
    assert sum(v[1] for _, v in found.samples) == sum(s.all_end_rel_micros for s in spent)


def test_only_lines_of_code_and_something_to_count(tmp_path):
    product()
    with pytest.raises(ValueError, match="cmd='code'"):
        profile_to(tmp_path / "p.gz", None, BUILD.float_operation(), cmd="scope")
    with pytest.raises(ValueError, match="select one of micros"):
        profile_to(tmp_path / "p.gz", None, BUILD.float_operation(), select=["occurrence"])
