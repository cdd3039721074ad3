"""TensorBoard reads what is written: by its own reader, and served by the real program."""

from __future__ import annotations

import io
import json
import re
import subprocess
import sys
import urllib.parse
import urllib.request

import numpy as np
import pytest
from PIL import Image
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from tensorboard.plugins.pr_curve import metadata as pr_curve

import runnel as tf
from runnel.contrib.tensorboard.plugins import projector

STEPS = 12
THRESHOLDS = 5
CURVES = np.arange(6 * THRESHOLDS, dtype=np.float32).reshape(6, THRESHOLDS)
EMBEDDING = np.arange(12, dtype=np.float32).reshape(3, 4)
PICTURE = np.random.default_rng(0).integers(0, 256, (1, 6, 5, 3), np.uint8)


@pytest.fixture(scope="module")
def logdir(tmp_path_factory):
    """A folder with one run of everything that can be written."""
    folder = tmp_path_factory.mktemp("logs")
    with tf.Graph().as_default() as graph:
        with tf.name_scope("layer"), tf.device("/cpu:0"):
            x = tf.placeholder(tf.float32, [None], name="x")
            weights = tf.Variable(tf.zeros([3]), name="weights")
            loss = tf.reduce_mean(tf.square(x), name="square_mean")
        tf.summary.scalar("loss", loss)
        tf.summary.histogram("inputs", x)
        tf.summary.image("picture", tf.constant(PICTURE), max_outputs=1)
        tf.summary.audio("sound", tf.zeros([1, 100]), 8000, max_outputs=1)
        tf.summary.text("words", tf.constant("some **words**"))
        tf.summary.tensor_summary(
            "curves",
            tf.constant(CURVES),
            summary_metadata=pr_curve.create_summary_metadata("curves", "", THRESHOLDS),
        )
        summaries = tf.summary.merge_all()
        options = tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE)
        with tf.Session() as sess, tf.summary.FileWriter(folder, graph) as writer:
            sess.run(weights.initializer)
            for step in range(STEPS):
                metadata = tf.RunMetadata()
                summary, _ = sess.run(
                    [summaries, weights], {x: [step, 1.0]}, options, run_metadata=metadata
                )
                writer.add_summary(summary, step)
                if not step % 5:
                    writer.add_run_metadata(metadata, f"step {step}", step)
            config = projector.ProjectorConfig()
            config.embeddings.add(
                tensor_name="words", tensor_path="words.tsv", metadata_path="names.tsv"
            )
            projector.visualize_embeddings(writer, config)
    np.savetxt(folder / "words.tsv", EMBEDDING, delimiter="\t")
    (folder / "names.tsv").write_text("one\ntwo\nthree\n")
    return folder


def losses():
    return [(step, np.float32((step**2 + 1) / 2)) for step in range(STEPS)]


def test_its_reader_finds_everything(logdir):
    found = EventAccumulator(str(logdir), size_guidance={"scalars": 0, "histograms": 0})
    found.Reload()
    tags = found.Tags()
    assert tags["scalars"] == ["loss"] and tags["histograms"] == ["inputs"]
    assert tags["images"] == ["picture/image"] and tags["audio"] == ["sound/audio"]
    assert sorted(tags["tensors"]) == ["curves", "words"]
    assert tags["run_metadata"] == ["step 0", "step 5", "step 10"]
    assert [(e.step, np.float32(e.value)) for e in found.Scalars("loss")] == losses()
    for event in found.Histograms("inputs"):
        value = event.histogram_value
        assert (value.num, value.sum) == (2, event.step + 1)
        assert value.min == min(1, event.step) and value.max == max(1, event.step)
        assert sum(value.bucket) == 2
    image = found.Images("picture/image")[-1]
    with Image.open(io.BytesIO(image.encoded_image_string)) as picture:
        np.testing.assert_array_equal(np.asarray(picture), PICTURE[0])
    assert found.Audio("sound/audio")[0].sample_rate == 8000
    (text,) = found.Tensors("words")[0].tensor_proto.string_val
    assert text == b"some **words**"
    assert found.SummaryMetadata("words").plugin_data.plugin_name == "text"
    nodes = {node.name: node for node in found.Graph().node}
    assert "CPU:0" in nodes["layer/weights"].device.upper()
    assert "layer/square_mean" in nodes
    assert found.MetaGraph().graph_def == found.Graph()
    assert found.RunMetadata("step 5").step_stats.dev_stats


DIRECTLY = urllib.request.build_opener(urllib.request.ProxyHandler({}))


class Served:
    """TensorBoard in a process of its own, on a free port of this machine."""

    def __init__(self, *command):
        self._process = subprocess.Popen(
            [sys.executable, "-m", *command, "--port=0", "--host=127.0.0.1"],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )

    def __enter__(self):
        self.said = ""
        for line in self._process.stderr:
            self.said += line
            address = re.search(r"http://127\.0\.0\.1:\d+/", line)
            if address:
                self.address = address[0]
                return self
        raise AssertionError(f"TensorBoard did not start:\n{self.said}")

    def __exit__(self, *exception):
        self._process.terminate()
        self._process.wait(30)
        self._process.stderr.close()

    def get(self, path, **query):
        address = f"{self.address}data/plugin/{path}?{urllib.parse.urlencode(query)}"
        with DIRECTLY.open(address, timeout=60) as answer:
            return answer.read()

    def json(self, path, **query):
        return json.loads(self.get(path, **query))


def test_its_server_shows_everything(logdir):
    at_once = ["--load_fast=false", "--reload_interval=0", "--reload_task=blocking"]
    with Served("tensorboard.main", "--logdir", str(logdir), *at_once) as served:
        shown = served.json("scalars/scalars", run=".", tag="loss")
        assert [(step, np.float32(value)) for _, step, value in shown] == losses()

        histograms = served.json("histograms/histograms", run=".", tag="inputs")
        assert [step for _, step, _ in histograms] == list(range(STEPS))
        assert all(sum(bucket[2] for bucket in buckets) == 2 for _, _, buckets in histograms)

        *_, last = served.json("images/images", run=".", tag="picture/image", sample=0)
        content = served.get(
            "images/individualImage", **dict(urllib.parse.parse_qsl(last["query"]))
        )
        with Image.open(io.BytesIO(content)) as picture:
            np.testing.assert_array_equal(np.asarray(picture), PICTURE[0])

        graph = served.get("graphs/graph", run=".").decode()
        assert 'name: "layer/square_mean"' in graph and "CPU:0" in graph.upper()
        statistics = served.get("graphs/run_metadata", run=".", tag="step 5").decode()
        assert "dev_stats" in statistics

        (words, *_) = served.json("text/text", run=".", tag="words")
        assert "<strong>words</strong>" in words["text"]
        curves = served.json("pr_curves/pr_curves", run=".", tag="curves")["."]
        assert curves[0]["precision"] == CURVES[4].tolist()
        assert curves[0]["recall"] == CURVES[5].tolist()
        (sound, *_) = served.json("audio/audio", run=".", tag="sound/audio", sample=0)
        assert sound["contentType"] == "audio/wav"

        (embedding,) = served.json("projector/info", run=".")["embeddings"]
        assert (embedding["tensorName"], embedding["tensorShape"]) == ("words", [3, 4])
        points = np.frombuffer(served.get("projector/tensor", run=".", name="words"), np.float32)
        np.testing.assert_array_equal(points.reshape(3, 4), EMBEDDING)
        assert served.get("projector/metadata", run=".", name="words").split() == [
            b"one",
            b"two",
            b"three",
        ]


def test_the_command_shows_a_folder(logdir, tmp_path):
    with Served("runnel", "board", str(logdir)) as served:
        assert f"1 run in {logdir}" in served.said
        assert isinstance(served.json("scalars/tags"), dict)
    with Served("runnel", "board", str(tmp_path)) as served:
        assert "has no event file yet" in served.said


def test_the_command_names_a_folder_that_is_not_there(tmp_path):
    done = subprocess.run(
        [sys.executable, "-m", "runnel", "board", str(tmp_path / "none")],
        capture_output=True,
        text=True,
        timeout=100,
    )
    assert done.returncode == 2 and "does not exist" in done.stderr
