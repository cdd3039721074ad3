"""Without a package everything works that has no need of it, and the rest says what to install."""

import os
import subprocess
import sys
import textwrap

import pytest

PACKAGES = [
    *("google_crc32c", "re2", "simplejpeg", "safetensors", "fsspec", "ray", "scipy", "PIL"),
    *("grpc", "absl", "rich", "click", "google_crc32c re2 simplejpeg fsspec ray scipy PIL grpc"),
]

TRAINING = """
    path = os.path.join(folder, "numbers.tfrecord")
    with tf.python_io.TFRecordWriter(path) as writer:
        for i in range(8):
            x = tf.train.Feature(float_list=tf.train.FloatList(value=[i, i + 1.0]))
            y = tf.train.Feature(bytes_list=tf.train.BytesList(value=[b"<%d>" % i]))
            features = tf.train.Features(feature={"x": x, "y": y})
            writer.write(tf.train.Example(features=features).SerializeToString())
    wanted = {"x": tf.FixedLenFeature([2], tf.float32), "y": tf.FixedLenFeature([], tf.string)}
    records = tf.data.TFRecordDataset(path)
    examples = records.map(lambda record: tf.parse_single_example(record, wanted))
    batch = examples.batch(4).repeat().make_one_shot_iterator().get_next()
    label = tf.string_to_number(tf.strings.regex_replace(batch["y"], "<([0-9]+)>", "\\\\1"))
    weights = tf.get_variable("weights", [2, 1])
    error = tf.matmul(batch["x"], weights)[:, 0] - label
    loss = tf.reduce_mean(tf.square(error))
    step = tf.train.get_or_create_global_step()
    train = tf.train.AdamOptimizer(0.01).minimize(loss, global_step=step)
    tf.summary.scalar("loss", loss)
    saver = tf.train.Saver()
    stop = tf.train.StopAtStepHook(4)
    with tf.train.MonitoredTrainingSession(
        checkpoint_dir=folder, save_summaries_steps=2, hooks=[stop]
    ) as session:
        while not session.should_stop():
            session.run(train)
    with tf.Session() as session:
        saver.restore(session, tf.train.latest_checkpoint(folder))
        assert session.run(step) == 4
"""


def run(tmp_path, packages, program):
    """Runs a program in a process that has none of the packages."""
    blocked = f"for name in {packages.split()!r}: sys.modules[name] = None\n"
    given = f"import os, sys\n{blocked}import runnel as tf\nfolder = {str(tmp_path)!r}\n"
    return subprocess.run(
        [sys.executable, "-c", given + textwrap.dedent(program)],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)},
    )


@pytest.mark.parametrize("packages", PACKAGES)
def test_a_program_that_needs_no_such_package_trains(tmp_path, packages):
    done = run(tmp_path, packages, TRAINING)
    assert done.returncode == 0, done.stderr


def test_what_is_written_without_a_package_is_read_with_it(tmp_path):
    done = run(tmp_path, "google_crc32c", TRAINING)
    assert done.returncode == 0, done.stderr
    program = """
        assert len(list(tf.python_io.tf_record_iterator(folder + "/numbers.tfrecord"))) == 8
        reader = tf.train.load_checkpoint(tf.train.latest_checkpoint(folder))
        assert reader.get_tensor("weights").shape == (2, 1)
    """
    done = run(tmp_path, "", program)
    assert done.returncode == 0, done.stderr


USES = {
    "PIL": (
        "tf.Session().run(tf.image.decode_png(b'\\x89PNG\\r\\n\\x1a\\n'))",
        "pip install pillow",
    ),
    "scipy": ("tf.Session().run(tf.igamma([1.0], [2.0]))", "pip install scipy"),
    "fsspec": ("tf.gfile.Exists('gs://bucket/file')", "install the package fsspec"),
    "grpc": ("tf.Session('grpc://localhost:1').run(tf.constant(1))", "grpc"),
    "absl": ("tf.flags.DEFINE_string('name', '', '')", "absl"),
}


@pytest.mark.parametrize("package", USES)
def test_what_needs_a_package_says_so(tmp_path, package):
    program, message = USES[package]
    done = run(tmp_path, package, program)
    assert done.returncode != 0
    assert message in done.stderr


def test_no_module_warns_of_what_python_will_not_have_any_more(tmp_path):
    # Other packages may; sources that are compiled anew warn, too.
    program = """
        import importlib, pkgutil, warnings
        sys.dont_write_bytecode = True
        for kind in (DeprecationWarning, PendingDeprecationWarning, SyntaxWarning, FutureWarning):
            warnings.filterwarnings("error", category=kind, module="runnel")
        for module in pkgutil.walk_packages(tf.__path__, "runnel.", onerror=lambda name: None):
            if not module.name.endswith("__main__"):
                importlib.import_module(module.name)
    """
    done = run(tmp_path, "", program)
    assert done.returncode == 0, done.stderr
