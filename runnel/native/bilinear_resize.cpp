// Resizing images between their pixels, one row of the result after the other.
//
// An output pixel lies between two pixels of each axis: a + (b - a) * share. Which pixels these are,
// and the shares, the caller says. The axis that leaves less to do is first; a row in between stays
// in the processor's cache.

#include <cstdint>
#include <cstring>
#include <utility>
#include <vector>

// Where the C library can choose between versions of a function when it is loaded, one is compiled
// for wider registers too. AVX2 alone has no fused multiplication, so results are the same to the
// bit.
#if defined(__x86_64__) && defined(__GLIBC__) && defined(__GNUC__) && !defined(__clang__)
#define RUNNEL_ALSO_FOR_AVX2 __attribute__((target_clones("avx2", "default")))
#else
#define RUNNEL_ALSO_FOR_AVX2
#endif

namespace {

// One axis: between which two places each output place lies, and how far it is from the first.
struct Axis {
  const int64_t* low;
  const int64_t* high;
  const float* share;
  int64_t count;
};

template <typename Pixel>
inline __attribute__((always_inline)) void Between(const Pixel* first, const Pixel* second,
                                                   float share, int64_t size, float* out) {
  for (int64_t i = 0; i < size; ++i) {
    const float a = first[i], b = second[i];
    out[i] = a + (b - a) * share;
  }
}

RUNNEL_ALSO_FOR_AVX2
void BetweenRows(const uint8_t* first, const uint8_t* second, float share, int64_t size,
                 float* out) {
  Between(first, second, share, size, out);
}

RUNNEL_ALSO_FOR_AVX2
void BetweenRows(const float* first, const float* second, float share, int64_t size, float* out) {
  Between(first, second, share, size, out);
}

// With the number of channels known the compiler writes the loop over them out.
template <typename Pixel, int kChannels>
void BetweenColumns(const Pixel* row, const Axis& columns, int64_t given, float* out) {
  const int64_t channels = kChannels ? kChannels : given;
  for (int64_t x = 0; x < columns.count; ++x, out += channels) {
    Between(row + columns.low[x] * channels, row + columns.high[x] * channels, columns.share[x],
            channels, out);
  }
}

// Four numbers in one register, which GCC and Clang have for every processor.
typedef float Four __attribute__((vector_size(16)));

inline Four FourAt(const float* place) {
  Four found;
  std::memcpy(&found, place, sizeof(found));
  return found;
}

// Columns of three channels, of a row that a number more may be read behind. A pixel is calculated
// with a fourth number, over which the next pixel is written.
void BetweenColoredColumns(const float* row, const Axis& columns, float* out) {
  const int64_t last = columns.count - 1;
  for (int64_t x = 0; x < last; ++x, out += 3) {
    const Four a = FourAt(row + columns.low[x] * 3), b = FourAt(row + columns.high[x] * 3);
    const Four made = a + (b - a) * columns.share[x];
    std::memcpy(out, &made, sizeof(made));
  }
  Between(row + columns.low[last] * 3, row + columns.high[last] * 3, columns.share[last], 3, out);
}

template <typename Pixel>
void BetweenColumnsOf(const Pixel* row, const Axis& columns, int64_t channels, float* out) {
  if (channels == 3) return BetweenColumns<Pixel, 3>(row, columns, channels, out);
  if (channels == 1) return BetweenColumns<Pixel, 1>(row, columns, channels, out);
  BetweenColumns<Pixel, 0>(row, columns, channels, out);
}

template <typename Pixel>
void Resize(const Pixel* image, int64_t width, int64_t channels, const Axis& rows,
            const Axis& columns, bool rows_first, float* out) {
  const int64_t wide = width * channels, narrow = columns.count * channels;
  if (rows_first) {
    std::vector<float> between(wide + 1);
    for (int64_t y = 0; y < rows.count; ++y, out += narrow) {
      BetweenRows(image + rows.low[y] * wide, image + rows.high[y] * wide, rows.share[y], wide,
                  between.data());
      if (channels == 3) {
        BetweenColoredColumns(between.data(), columns, out);
      } else {
        BetweenColumnsOf(between.data(), columns, channels, out);
      }
    }
    return;
  }
  // The two rows that were last resized: mostly the next output row lies between the same.
  std::vector<float> kept[2] = {std::vector<float>(narrow), std::vector<float>(narrow)};
  int64_t which[2] = {-1, -1};
  for (int64_t y = 0; y < rows.count; ++y, out += narrow) {
    const int64_t wanted[2] = {rows.low[y], rows.high[y]};
    if (which[1] == wanted[0] || which[0] == wanted[1]) {
      kept[0].swap(kept[1]);
      std::swap(which[0], which[1]);
    }
    for (int i = 0; i < 2; ++i) {
      if (which[i] == wanted[i]) continue;
      BetweenColumnsOf(image + wanted[i] * wide, columns, channels, kept[i].data());
      which[i] = wanted[i];
    }
    BetweenRows(kept[0].data(), kept[1].data(), rows.share[y], narrow, out);
  }
}

template <typename Pixel>
void ResizeAll(const void* images, int64_t batch, int64_t height, int64_t width, int64_t channels,
               const Axis& rows, const Axis& columns, bool rows_first, float* out) {
  const Pixel* image = static_cast<const Pixel*>(images);
  for (int64_t i = 0; i < batch; ++i) {
    Resize(image, width, channels, rows, columns, rows_first, out);
    image += height * width * channels;
    out += rows.count * columns.count * channels;
  }
}

}  // namespace

// Resizes images of bytes or of floats; places are within the images.
extern "C" void runnel_resize_bilinear(const void* images, int64_t are_bytes, int64_t batch,
                                       int64_t height, int64_t width, int64_t channels,
                                       const int64_t* row_low, const int64_t* row_high,
                                       const float* row_share, int64_t row_count,
                                       const int64_t* column_low, const int64_t* column_high,
                                       const float* column_share, int64_t column_count,
                                       int64_t rows_first, float* out) {
  const Axis rows = {row_low, row_high, row_share, row_count};
  const Axis columns = {column_low, column_high, column_share, column_count};
  const auto resize = are_bytes ? ResizeAll<uint8_t> : ResizeAll<float>;
  resize(images, batch, height, width, channels, rows, columns, rows_first, out);
}
