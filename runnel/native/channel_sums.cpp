// Sums over all positions of each channel, as batch normalisation needs them, in one pass.
//
// Written with jax.numpy, a variance takes two passes over the activations and a copy of them with
// the mean taken off; at the size of activations each pass costs the time to read them from memory.
// Here a block of rows is read into the cache, summed there, and its moments are merged with those
// of the blocks before (Chan, Golub and LeVeque). A block's mean is rounded to float32: what the
// rounding took is summed too, and put back in double, so a large mean costs no digits.
//
// Arrays are seen as (rows, channels). Rows are split into a fixed number of parts, one for each
// thread, which are merged in order: the result does not depend on which thread came first.

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "resources.h"
#include "xla/ffi/api/ffi.h"

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
// The processor's vector instructions are chosen when the library is loaded.
#define RUNNEL_VECTORIZED __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define RUNNEL_VECTORIZED
#endif

namespace {

namespace ffi = xla::ffi;
using Array = ffi::Buffer<ffi::F32>;
using Vector = ffi::Buffer<ffi::F32, 1>;

constexpr int64_t kBlock = 1 << 15;     // elements that stay in a core's cache
constexpr int64_t kLeastPart = 1 << 16;  // elements that are worth a thread

RUNNEL_VECTORIZED
void AddRows(const float* __restrict x, int64_t rows, int64_t channels, float* __restrict sums) {
  int64_t r = 0;
  for (; r + 4 <= rows; r += 4, x += 4 * channels) {
    for (int64_t c = 0; c < channels; ++c) {
      sums[c] += (x[c] + x[c + channels]) + (x[c + 2 * channels] + x[c + 3 * channels]);
    }
  }
  for (; r < rows; ++r, x += channels) {
    for (int64_t c = 0; c < channels; ++c) sums[c] += x[c];
  }
}

RUNNEL_VECTORIZED
void AddDistances(const float* __restrict x, int64_t rows, int64_t channels,
                  const float* __restrict means, float* __restrict sums,
                  float* __restrict squares) {
  int64_t r = 0;
  for (; r + 4 <= rows; r += 4, x += 4 * channels) {
    for (int64_t c = 0; c < channels; ++c) {
      const float a = x[c] - means[c], b = x[c + channels] - means[c];
      const float d = x[c + 2 * channels] - means[c], e = x[c + 3 * channels] - means[c];
      sums[c] += (a + b) + (d + e);
      squares[c] += (a * a + b * b) + (d * d + e * e);
    }
  }
  for (; r < rows; ++r, x += channels) {
    for (int64_t c = 0; c < channels; ++c) {
      const float a = x[c] - means[c];
      sums[c] += a;
      squares[c] += a * a;
    }
  }
}

RUNNEL_VECTORIZED
void AddGradients(const float* __restrict g, const float* __restrict x, int64_t rows,
                  int64_t channels, const float* __restrict means, float* __restrict sums,
                  float* __restrict along) {
  int64_t r = 0;
  for (; r + 2 <= rows; r += 2, g += 2 * channels, x += 2 * channels) {
    for (int64_t c = 0; c < channels; ++c) {
      const float a = g[c], b = g[c + channels];
      sums[c] += a + b;
      along[c] += a * (x[c] - means[c]) + b * (x[c + channels] - means[c]);
    }
  }
  for (; r < rows; ++r, g += channels, x += channels) {
    for (int64_t c = 0; c < channels; ++c) {
      sums[c] += g[c];
      along[c] += g[c] * (x[c] - means[c]);
    }
  }
}

// Rows in parts, and parts in blocks.
struct Division {
  int64_t rows, channels, parts;

  Division(const Array& x, ffi::ThreadPool& pool) : channels(x.dimensions().back()) {
    rows = x.element_count() / channels;
    const int64_t most = std::max<int64_t>(1, x.element_count() / kLeastPart);
    parts = std::min({std::max<int64_t>(1, pool.num_threads()), most, rows});
  }

  // Calls with the first row and the number of rows of each block of a part.
  template <typename Function>
  void EachBlock(int64_t part, const Function& function) const {
    const int64_t end = rows * (part + 1) / parts;
    const int64_t step = std::max<int64_t>(4, kBlock / channels);
    for (int64_t r = rows * part / parts; r < end; r += step) function(r, std::min(step, end - r));
  }
};

struct Moments {
  double count = 0;
  std::vector<double> mean, squares;

  explicit Moments(int64_t channels) : mean(channels), squares(channels) {}

  void Merge(const Moments& other) {
    const double share = other.count / (count + other.count);
    for (size_t c = 0; c < mean.size(); ++c) {
      const double distance = other.mean[c] - mean[c];
      mean[c] += distance * share;
      squares[c] += other.squares[c] + distance * distance * (count * share);
    }
    count += other.count;
  }
};

ffi::Error ChannelMoments(ffi::ThreadPool pool, Array x, ffi::Result<Vector> mean,
                          ffi::Result<Vector> variance) try {
  const Division division(x, pool);
  const int64_t channels = division.channels;
  std::vector<Moments> moments(division.parts, Moments(channels));
  runnel::InParallel(pool, division.parts, [&](int64_t part) {
    std::vector<float> means(channels), rest(channels), squares(channels);
    Moments exact(channels);
    division.EachBlock(part, [&](int64_t row, int64_t rows) {
      const float* block = x.typed_data() + row * channels;
      std::fill(means.begin(), means.end(), 0.0f);
      std::fill(rest.begin(), rest.end(), 0.0f);
      std::fill(squares.begin(), squares.end(), 0.0f);
      AddRows(block, rows, channels, means.data());
      for (float& value : means) value /= static_cast<float>(rows);
      AddDistances(block, rows, channels, means.data(), rest.data(), squares.data());
      exact.count = static_cast<double>(rows);
      for (int64_t c = 0; c < channels; ++c) {
        const double distance = rest[c] / exact.count;
        exact.mean[c] = means[c] + distance;
        exact.squares[c] = squares[c] - rest[c] * distance;
      }
      moments[part].Merge(exact);
    });
  });
  for (int64_t part = 1; part < division.parts; ++part) {
    moments[0].Merge(moments[part]);
  }
  for (int64_t c = 0; c < channels; ++c) {
    mean->typed_data()[c] = static_cast<float>(moments[0].mean[c]);
    variance->typed_data()[c] = static_cast<float>(moments[0].squares[c] / moments[0].count);
  }
  return ffi::Error::Success();
} catch (const std::exception& error) {
  return ffi::Error::Internal(std::string("the moments of channels failed: ") + error.what());
}

// The sums of g, and of g times the distance of x from the mean.
ffi::Error ChannelGradients(ffi::ThreadPool pool, Array g, Array x, Vector mean,
                            ffi::Result<Vector> sums, ffi::Result<Vector> along) try {
  const Division division(x, pool);
  const int64_t channels = division.channels;
  std::vector<std::vector<double>> totals(division.parts, std::vector<double>(2 * channels));
  runnel::InParallel(pool, division.parts, [&](int64_t part) {
    std::vector<float> both(2 * channels);
    division.EachBlock(part, [&](int64_t row, int64_t rows) {
      const int64_t start = row * channels;
      std::fill(both.begin(), both.end(), 0.0f);
      AddGradients(g.typed_data() + start, x.typed_data() + start, rows, channels,
                   mean.typed_data(), both.data(), both.data() + channels);
      for (int64_t i = 0; i < 2 * channels; ++i) totals[part][i] += both[i];
    });
  });
  for (int64_t c = 0; c < channels; ++c) {
    double total = 0, total_along = 0;
    for (const auto& part : totals) {
      total += part[c];
      total_along += part[channels + c];
    }
    sums->typed_data()[c] = static_cast<float>(total);
    along->typed_data()[c] = static_cast<float>(total_along);
  }
  return ffi::Error::Success();
} catch (const std::exception& error) {
  return ffi::Error::Internal(std::string("the sums of gradients failed: ") + error.what());
}

}  // namespace

XLA_FFI_DEFINE_HANDLER_SYMBOL(
    runnel_channel_moments, ChannelMoments,
    ffi::Ffi::Bind().Ctx<ffi::ThreadPool>().Arg<Array>().Ret<Vector>().Ret<Vector>());
XLA_FFI_DEFINE_HANDLER_SYMBOL(runnel_channel_gradients, ChannelGradients,
                              ffi::Ffi::Bind()
                                  .Ctx<ffi::ThreadPool>()
                                  .Arg<Array>()
                                  .Arg<Array>()
                                  .Arg<Vector>()
                                  .Ret<Vector>()
                                  .Ret<Vector>());
