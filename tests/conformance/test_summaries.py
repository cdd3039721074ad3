"""Summaries against TensorFlow: what they say, their names and tags, and the event files."""

import re

import ml_dtypes
import numpy as np
import pytest

pytest.importorskip("tensorflow")

import tensorflow.compat.v1 as reference
from hypothesis import given, settings
from hypothesis import strategies as st

import runnel
from tests.conformance.side_by_side import op_of
from tests.summary_meaning import meaning

reference.disable_v2_behavior()

RNG = np.random.default_rng(0)
REAL = [
    np.float32, np.float64, np.float16, ml_dtypes.bfloat16, np.int8, np.int16, np.int32, np.int64,
    np.uint8, np.uint16, np.uint32, np.uint64,
]  # fmt: skip


def outcomes(program):
    """In TensorFlow and in runnel: the meaning of the summaries, or the kind of the error."""
    found = []
    for tf in (reference, runnel):
        with tf.Graph().as_default(), tf.Session() as sess:
            try:
                result = program(tf)
                feed = {}
                if isinstance(result, tuple):
                    result, feed = result
                found.append(meaning(sess.run(result, feed)))
            except (tf.errors.OpError, ValueError, TypeError) as error:
                found.append(error)
    return found


def assert_same(program):
    theirs, ours = outcomes(program)
    assert not isinstance(ours, Exception), ours
    assert ours == theirs


def assert_both_fail(program, *, message=True):
    theirs, ours = outcomes(program)
    assert isinstance(ours, Exception) and isinstance(theirs, Exception), (ours, theirs)
    assert type(ours).__name__ == type(theirs).__name__
    if message:
        own = re.search(r"\nNode: .*?\n(.*?)(?:\n|\t \[\[)", theirs.message, re.S)[1].strip()
        assert ours.message.startswith(own), (ours.message, own)


def fed(build, value, tag="tag"):
    """A summary of a value that is not known while the graph is built."""

    def program(tf):
        x = tf.placeholder(value.dtype, name="x")
        return build(tf, tag, x), {x: value}

    return program


@pytest.mark.parametrize("dtype", REAL)
def test_a_scalar_of_every_type(dtype):
    for number in (0, 1, 117, 3.7):
        assert_same(
            fed(lambda tf, tag, x: tf.summary.scalar(tag, x), np.array(number).astype(dtype))
        )


@pytest.mark.parametrize("number", [np.nan, np.inf, -np.inf, 1e-300, 1e300, 0.1])
def test_a_scalar_in_double_precision(number):
    assert_same(fed(lambda tf, tag, x: tf.summary.scalar(tag, x), np.array(number)))


def test_several_scalars_with_a_tag_each():
    def program(tf):
        return op_of(tf, "ScalarSummary")(tf.constant([["a"], ["b"]]), tf.constant([[1.0], [2.0]]))

    assert_same(program)


@pytest.mark.parametrize("tags,values", [(["a", "b"], [1.0]), ("a", [1.0]), (["a"], 1.0)])
def test_tags_that_do_not_fit_the_values(tags, values):
    def program(tf):
        x = tf.placeholder(tf.float32)
        return op_of(tf, "ScalarSummary")(tf.constant(tags), x), {x: values}

    theirs, ours = outcomes(program)
    assert type(ours).__name__ == type(theirs).__name__ == "InvalidArgumentError"
    assert "tags and values are not the same shape" in ours.message
    assert "tags and values are not the same shape" in theirs.message


HISTOGRAMS = {
    "normal": RNG.normal(size=(50, 20)),
    "wide": np.exp(RNG.normal(size=2000) * 40) * np.sign(RNG.normal(size=2000)),
    "one": np.array(0.5),
    "zeros": np.zeros(7),
    "negative zero": np.array([-0.0]),
    "empty": np.zeros((0, 3)),
    "largest": np.array([1.7e308, -1.7e308]),
    "lowest of all": np.array([-np.finfo(np.float64).max]),
    "smallest": np.array([1e-300, -1e-300, 1e-12, -1e-12, 1e20, -1e20]),
}


@pytest.mark.parametrize("name", HISTOGRAMS)
def test_a_histogram(name):
    assert_same(fed(lambda tf, tag, x: tf.summary.histogram(tag, x), HISTOGRAMS[name]))


@pytest.mark.parametrize("dtype", REAL)
def test_a_histogram_of_every_type(dtype):
    values = (RNG.uniform(0, 100, (8, 4))).astype(dtype)
    assert_same(fed(lambda tf, tag, x: tf.summary.histogram(tag, x), values))


def test_every_limit_belongs_to_the_next_bucket():
    from runnel.ops.summaries.histogram_summary import bucket_limits

    limits = bucket_limits()[:-1]
    above, below = np.nextafter(limits, np.inf), np.nextafter(limits[1:], -np.inf)
    around = np.concatenate([limits, above, below])
    around[np.abs(around) < 1e-300] = 0  # TensorFlow's threads take denormal numbers for zero
    assert_same(fed(lambda tf, tag, x: tf.summary.histogram(tag, x), around))


@given(st.lists(st.floats(-1.7e308, 1.7e308, allow_subnormal=False), max_size=30))
@settings(max_examples=60, deadline=None)
def test_a_histogram_of_any_numbers(numbers):
    array = np.array(numbers)
    array[np.abs(array) < 1e-150] = 0  # TensorFlow's threads take denormal squares for zero
    assert_same(fed(lambda tf, tag, x: tf.summary.histogram(tag, x), array))


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_a_histogram_of_what_is_not_finite(bad):
    values = np.array([1.0, bad, 2.0], np.float32)
    assert_both_fail(fed(lambda tf, tag, x: tf.summary.histogram(tag, x), values))


def images(*shape):
    return RNG.normal(size=shape)


IMAGES = {
    "gray": images(2, 5, 7, 1),
    "rgb": images(2, 5, 7, 3),
    "rgba": images(2, 5, 7, 4),
    "positive": np.abs(images(1, 5, 7, 3)),
    "negative": -np.abs(images(1, 5, 7, 1)),
    "zero": np.zeros((1, 3, 3, 1)),
    "tiny": np.full((1, 3, 3, 1), 1e-7),
    "tiny negative": np.full((1, 3, 3, 1), -1e-7),
    "many": images(6, 2, 2, 1),
    "none": images(0, 2, 2, 1),
    "no number": np.full((1, 2, 2, 3), np.nan),
    "infinite": np.array([1.0, np.inf, -np.inf, -3.0, np.nan, 2.0]).reshape(1, 1, 6, 1),
    "bad in color": np.where(images(2, 6, 6, 3) > 1, np.nan, images(2, 6, 6, 3)),
}


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16])
@pytest.mark.parametrize("name", IMAGES)
def test_an_image(name, dtype):
    assert_same(fed(lambda tf, tag, x: tf.summary.image(tag, x), IMAGES[name].astype(dtype)))


@pytest.mark.parametrize("limit", [1, 2, 5])
def test_images_in_bytes_and_their_tags(limit):
    values = RNG.integers(0, 256, (3, 4, 5, 3), np.uint8)
    assert_same(fed(lambda tf, tag, x: tf.summary.image(tag, x, max_outputs=limit), values))


def test_another_color_for_what_is_not_finite():
    values = IMAGES["bad in color"].astype(np.float32)
    color = np.array([1, 2, 3, 4], np.uint8)

    def build(tf, tag, x):
        given_as = tf.make_tensor_proto(color) if tf is reference else color
        return op_of(tf, "ImageSummary")(tf.constant(tag), x, max_images=3, bad_color=given_as)

    assert_same(fed(build, values))


@pytest.mark.parametrize("shape", [(1, 2, 2, 2), (2, 2, 3), (1, 1, 1, 1, 1)])
def test_an_image_of_another_shape(shape):
    values = np.zeros(shape, np.float32)
    assert_both_fail(fed(lambda tf, tag, x: tf.summary.image(tag, x), values), message=False)


SOUNDS = {
    "mono": RNG.uniform(-1, 1, (2, 50)),
    "stereo": RNG.uniform(-1, 1, (2, 50, 2)),
    "too loud": RNG.uniform(-3, 3, (1, 50)),
    "many": RNG.uniform(-1, 1, (5, 3)),
    "halves": (np.arange(-20, 20) + 0.5).reshape(1, -1) / 2**15,
    "limits": np.array([[1.0, -1.0, 32767 / 32768, 32767.5 / 32768, np.inf, -np.inf]]),
    "none": np.zeros((0, 3)),
}


@pytest.mark.parametrize("rate", [8000, 44100, 44100.5, 0.6])
@pytest.mark.parametrize("name", SOUNDS)
def test_a_clip(name, rate):
    values = SOUNDS[name].astype(np.float32)
    assert_same(fed(lambda tf, tag, x: tf.summary.audio(tag, x, rate), values))
    assert_same(fed(lambda tf, tag, x: tf.summary.audio(tag, x, rate, max_outputs=1), values))


@pytest.mark.parametrize(
    "shape,rate", [((2,), 8.0), ((1, 1, 1, 1), 8.0), ((1, 4), 0.0), ((1, 4), -1.0)]
)
def test_a_clip_that_is_none(shape, rate):
    values = np.zeros(shape, np.float32)
    assert_both_fail(fed(lambda tf, tag, x: tf.summary.audio(tag, x, rate), values), message=False)


@pytest.mark.parametrize(
    "value",
    [
        np.arange(6, dtype=np.float32).reshape(2, 3),
        np.array(3.5),
        np.array(["a", "é", "long" * 50], object),
        np.array(b"text", object),
        np.array([True, False]),
        np.array([1 + 2j]),
        np.zeros((0, 4), np.int64),
        np.full(100, 7, np.uint8),
        np.array([1.5, 2.5], ml_dtypes.bfloat16),
    ],
    ids=str,
)
def test_a_whole_tensor(value):
    assert_same(lambda tf: tf.summary.tensor_summary("t", tf.constant(value)))
    assert_same(
        lambda tf: tf.summary.tensor_summary(
            "t", tf.constant(value), summary_description="about", display_name="shown", family="f"
        )
    )
    assert_same(lambda tf: op_of(tf, "TensorSummary")(tf.constant(value), name="older"))


def test_text():
    assert_same(lambda tf: tf.summary.text("t", tf.constant([["*a*", "b"], ["c", "d"]])))
    for tf in (reference, runnel):
        with tf.Graph().as_default(), pytest.raises(ValueError, match="to have dtype string"):
            tf.summary.text("t", tf.constant(1.0))


def test_merging():
    def program(tf):
        with tf.name_scope("a"):
            tf.summary.scalar("s", 1.0)
            tf.summary.histogram("h", [1.0, 2.0])
        tf.summary.text("t", tf.constant("x"))
        return tf.summary.merge_all()

    assert_same(program)


def test_merging_the_same_tag_twice():
    def program(tf):
        s = tf.summary.scalar("s", 1.0)
        return tf.summary.merge([s, s])

    assert_both_fail(program)


def test_merging_what_is_no_summary():
    def program(tf):
        x = tf.placeholder(tf.string, [])
        return tf.summary.merge([x]), {x: b"\xff\xff"}

    assert_both_fail(program)


def build_many(tf):
    """Summaries under all kinds of names; their tags are those of the graph's constants."""
    x = tf.constant(1.0, name="x")
    image = tf.constant(np.zeros((1, 2, 2, 1), np.float32), name="pixels")
    tf.summary.scalar("loss", x)
    tf.summary.scalar("loss", x)
    tf.summary.scalar("with space & more", x)
    tf.summary.scalar("/leading/slash", x)
    tf.summary.histogram("deep/er", x, family="family")
    with tf.name_scope("outer"):
        tf.summary.scalar("loss", x, family="family")
        tf.summary.scalar("loss", x, family="fam ily")
        tf.summary.image("image", image, family="family")
        tf.summary.audio("sound", tf.zeros([1, 4]), 8000.0)
        with tf.name_scope("inner"):
            tf.summary.text("words", tf.constant("a"))
            tf.summary.tensor_summary("whole", x, family="family")
            tf.summary.scalar("elsewhere", x, collections=["mine", "yours"])
    tf.summary.scalar("nowhere", x, collections=[])
    tf.summary.merge_all()
    tf.summary.merge_all("mine", name="mine merged")
    tf.summary.merge_all(scope="outer/")
    with tf.name_scope("outer"):
        tf.summary.merge([tf.summary.scalar("last", x)], collections=["merged"])
    assert tf.summary.merge_all("empty") is None


def test_names_tags_and_collections_are_tensorflows():
    found = []
    for tf in (reference, runnel):
        with tf.Graph().as_default() as graph, tf.Session() as sess:
            build_many(tf)
            ops = [op for op in graph.get_operations() if "Summary" in op.type]
            names = [(op.type, op.name, [i.name for i in op.inputs]) for op in ops]
            tags = [sess.run(op.inputs[0]) for op in ops if op.type != "MergeSummary"]
            keys = ("summaries", "mine", "yours", "merged")
            collections = {key: [t.name for t in graph.get_collection(key)] for key in keys}
            found.append((names, tags, collections))
    assert found[1] == found[0]


def test_a_description_in_a_node():
    for tf in (reference, runnel):
        with tf.Graph().as_default():
            op = op_of(tf, "TensorSummary")(
                tf.constant(1.0), description='{"typeHint": "hint"}', name="n"
            ).op
            assert tf.summary.get_summary_description(op.node_def).type_hint == "hint"
            with pytest.raises(ValueError, match="Can't get_summary_description on Const"):
                tf.summary.get_summary_description(op.inputs[0].op.node_def)
            assert tf.summary.all_v2_summary_ops() == []


# Event files --------------------------------------------------------------------------------------


def write(tf, logdir):
    """The same events, written by either."""
    with tf.Graph().as_default() as graph, tf.Session() as sess:
        with tf.device("/cpu:0"), tf.name_scope("layer"):
            x = tf.placeholder(tf.float32, [None], name="x")
        tf.summary.histogram("h", x)
        tf.summary.text("t", tf.constant("words"))
        merged = tf.summary.merge_all()
        writer = tf.summary.FileWriter(str(logdir), graph, filename_suffix=".mine")
        for step in range(25):
            writer.add_summary(sess.run(merged, {x: [step, 1.0]}), step)
        plain = tf.Summary(value=[tf.Summary.Value(tag="mine", simple_value=0.5)])
        writer.add_summary(plain, np.int64(26))
        writer.add_summary(plain)
        writer.add_session_log(tf.SessionLog(status=tf.SessionLog.START), 27)
        writer.add_run_metadata(tf.RunMetadata(), "step28", 28)
        with pytest.raises(ValueError, match="tag was already used"):
            writer.add_run_metadata(tf.RunMetadata(), "step28", 29)
        writer.add_event(tf.summary.Event(wall_time=1.0, step=30, file_version="x"))
        writer.close()
        with pytest.warns(UserWarning, match="closed FileWriter"):
            writer.add_summary(plain, 31)


def described(event):
    """What must be the same in both files: not times, not graphs in every detail."""
    kind = event.WhichOneof("what")
    if kind == "summary":
        content = meaning(event.summary.SerializeToString())
    elif kind == "graph_def":
        nodes = runnel.GraphDef.FromString(event.graph_def).node
        content = [(n.name, n.op, n.device, sorted(n.input)) for n in nodes]
    elif kind == "meta_graph_def":
        content = None
    else:
        content = (
            getattr(event, kind).SerializeToString()
            if kind != "file_version"
            else event.file_version
        )
    return event.step, kind, content


def test_event_files_have_the_same_events_and_each_reads_the_others(tmp_path):
    files = {}
    for name, tf in (("theirs", reference), ("ours", runnel)):
        write(tf, tmp_path / name)
        (files[name],) = (tmp_path / name).iterdir()
    pattern = r"events\.out\.tfevents\.\d{10}\..+\.mine"
    assert all(re.fullmatch(pattern, file.name) for file in files.values())
    read = {
        (who, tf.__name__): [described(e) for e in tf.train.summary_iterator(str(file))]
        for who, file in files.items()
        for tf in (reference, runnel)
    }
    first, *others = read.values()
    assert len(first) > 25
    for other in others:
        assert other == first


@pytest.mark.parametrize(
    "damage", ["cut header", "cut data", "length", "data", "footer", "missing"]
)
def test_a_damaged_file_gives_the_same_events_and_error(tmp_path, damage):
    with runnel.summary.FileWriter(tmp_path) as writer:
        for step in range(5):
            writer.add_summary(b"", step)
    (path,) = tmp_path.iterdir()
    whole = bytearray(path.read_bytes())
    reader = runnel.train.summary_iterator(path)
    ends = []
    for _ in reader:
        ends.append(reader._records.offset)
    start, end = ends[2], ends[3]
    if damage == "cut header":
        whole = whole[: start + 5]
    elif damage == "cut data":
        whole = whole[: end - 6]
    elif damage == "missing":
        path = tmp_path / "none"
    else:
        whole[{"length": start, "data": start + 13, "footer": end - 1}[damage]] ^= 1
    if damage != "missing":
        path.write_bytes(bytes(whole))
    found = []
    for tf in (reference, runnel):
        events = []
        try:
            for event in tf.train.summary_iterator(str(path)):
                events.append(event.SerializeToString())
            error = None
        except tf.errors.OpError as raised:
            error = type(raised).__name__
        found.append((events, error))
    if damage == "cut header":  # TensorFlow takes it for the end of the file
        found[0] = (found[0][0], "DataLossError")
    assert found[0] == found[1]
    assert len(found[0][0]) == (0 if damage == "missing" else 3)
