"""What the real TensorBoard shows in a real browser, read off its pages."""

from __future__ import annotations

import numpy as np
import pytest

from tests.summary.chromium import PROGRAM, Page
from tests.summary.test_tensorboard import PICTURE, STEPS, Served, logdir, losses  # noqa: F401

pytestmark = [
    pytest.mark.skipif(PROGRAM is None, reason="there is no Chromium here"),
    pytest.mark.timeout(300),
]


@pytest.fixture(scope="module")
def shown(logdir):  # noqa: F811
    """TensorBoard and a browser."""
    at_once = ["--load_fast=false", "--reload_interval=0", "--reload_task=blocking"]
    with (
        Served("tensorboard.main", "--logdir", str(logdir), *at_once) as served,
        Page(f"{served.address}#timeseries", seconds=240.0) as page,
    ):
        yield served.address, page


POINTED_AT = """await until(() => {
  const chart = everywhere('scalar-card line-chart-interactive-view')[0];
  if (!chart || !everywhere('scalar-card tb-data-table-content-row')[0]) return null;
  chart.scrollIntoView({block: 'center', behavior: 'instant'});
  const box = chart.getBoundingClientRect();
  return [box.x, box.y, box.width, box.height];
})"""
TOOLTIP = """await until(() => {
  const row = everywhere('.tooltip').map(tip => (tip.innerText ?? '').trim().split('\\n').at(-1))
      .find(text => text.split('\\t').length > 4);
  return row && row.split('\\t').map(text => text.trim());
}, 10)"""


def test_the_curve_of_a_scalar_has_its_values(shown):
    address, page = shown
    page.go_to(f"{address}#timeseries")
    found = {}
    for part in np.linspace(0.01, 0.99, 2 * STEPS):
        x, y, width, height = page.evaluate(POINTED_AT)
        page.move_mouse(x + width * part, y + height / 2)
        *_, value, step, _, _ = page.evaluate(TOOLTIP)
        found[int(step)] = float(value)
    assert found == {step: pytest.approx(float(value), rel=1e-2) for step, value in losses()}


def test_a_histogram_has_a_shape_for_each_step(shown):
    address, page = shown
    page.go_to(f"{address}#timeseries")
    shapes = page.evaluate(
        """await until(() => {
          const shapes = everywhere('histogram-card tb-histogram g.histogram path').map(
              path => path.getAttribute('d'));
          return shapes.length && shapes.every(shape => shape) ? shapes : null;
        })"""
    )
    assert len(shapes) == STEPS and len(set(shapes)) == STEPS, "each step has other inputs"


def test_an_image_has_its_pixels(shown):
    address, page = shown
    page.go_to(f"{address}#images")
    pixels = page.evaluate(
        """await until(() => {
          const image = everywhere('img[src*=individualImage]')[0];
          if (!image || !image.complete || !image.naturalWidth) return null;
          const canvas = document.createElement('canvas');
          canvas.width = image.naturalWidth;
          canvas.height = image.naturalHeight;
          const context = canvas.getContext('2d');
          context.drawImage(image, 0, 0);
          return [...context.getImageData(0, 0, canvas.width, canvas.height).data];
        })"""
    )
    _, height, width, _ = PICTURE.shape
    np.testing.assert_array_equal(np.reshape(pixels, (height, width, 4))[..., :3], PICTURE[0])


def test_the_graph_has_its_nodes_and_scopes(shown):
    address, page = shown
    page.go_to(f"{address}#graphs")
    names = page.evaluate(
        """await until(() => {
          const names = everywhere('g.node title').map(title => title.textContent);
          return names.length ? names : null;
        })"""
    )
    assert {"layer", "words", "curves", "sound"} <= set(names), "scopes"
    assert {"zeros", "Const_1", "words/tag", "curves/serialized_summary_metadata"} <= set(names)
