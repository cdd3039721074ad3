// Combining rows that belong together, one after the other: sums of segments, sparse products.

#include <cstdint>
#include <cstring>
#include <type_traits>

// See bilinear_resize.cpp: one version for wider registers, too.
#if defined(__x86_64__) && defined(__GLIBC__) && defined(__GNUC__) && !defined(__clang__)
#define RUNNEL_ALSO_FOR_AVX2 __attribute__((target_clones("avx2", "default")))
#else
#define RUNNEL_ALSO_FOR_AVX2
#endif
// Only what is inlined into the versions is compiled for each.
#define RUNNEL_INLINE inline __attribute__((always_inline))

namespace {

// Sums and products of integers wrap around, as they do in NumPy.
template <class T, bool = std::is_integral<T>::value>
struct Wrapping {
  using type = T;
};
template <class T>
struct Wrapping<T, true> {
  using type = std::make_unsigned_t<T>;
};

struct Add {
  template <class T>
  static RUNNEL_INLINE T of(T a, T b) {
    using W = typename Wrapping<T>::type;
    return static_cast<T>(static_cast<W>(a) + static_cast<W>(b));
  }
};
struct Multiply {
  template <class T>
  static RUNNEL_INLINE T of(T a, T b) {
    using W = typename Wrapping<T>::type;
    return static_cast<T>(static_cast<W>(a) * static_cast<W>(b));
  }
};
struct Maximum {  // of NaN and a number: NaN
  template <class T>
  static RUNNEL_INLINE T of(T a, T b) {
    return a >= b || a != a ? a : b;
  }
};
struct Minimum {
  template <class T>
  static RUNNEL_INLINE T of(T a, T b) {
    return a <= b || a != a ? a : b;
  }
};

struct Rows {
  const int64_t* targets;
  const int64_t* sources;
  const void* data;
  const void* weights;
  int64_t count, width, data_rows, out_rows;
  void* out;
  uint8_t* begun;
};

template <class T, class Operation>
RUNNEL_INLINE void combine(const Rows& rows) {
  const T* data = static_cast<const T*>(rows.data);
  const T* weights = static_cast<const T*>(rows.weights);
  const int64_t width = rows.width;
  for (int64_t i = 0; i < rows.count; ++i) {
    const int64_t target = rows.targets[i];
    const int64_t source = rows.sources ? rows.sources[i] : i;
    if (target < 0 || target >= rows.out_rows || source < 0 || source >= rows.data_rows) continue;
    const T* from = data + source * width;
    T* to = static_cast<T*>(rows.out) + target * width;
    if (rows.begun && !rows.begun[target]) {
      rows.begun[target] = 1;
      std::memcpy(to, from, width * sizeof(T));
    } else if (weights) {
      const T weight = weights[i];
      for (int64_t k = 0; k < width; ++k) {
        to[k] = Operation::of(to[k], Multiply::of(weight, from[k]));
      }
    } else {
      for (int64_t k = 0; k < width; ++k) to[k] = Operation::of(to[k], from[k]);
    }
  }
}

template <class T>
RUNNEL_INLINE void combine_by(uint8_t operation, const Rows& rows) {
  switch (operation) {
    case 0:
      return combine<T, Add>(rows);
    case 1:
      return combine<T, Multiply>(rows);
    case 2:
      return combine<T, Maximum>(rows);
    case 3:
      return combine<T, Minimum>(rows);
  }
}

}  // namespace

// Row `sources[i]` of `data` (row i without `sources`), times `weights[i]` if there are any, is
// combined into row `targets[i]` of `out`; places that are not there are skipped. With `begun`, a
// byte for each row of `out`, the first row for a place replaces what is there; then there are no
// weights. Rows have `width` elements of `type`.
extern "C" RUNNEL_ALSO_FOR_AVX2 void runnel_combine_rows(
    uint8_t operation, uint8_t type, const int64_t* targets, const int64_t* sources,
    const void* data, const void* weights, int64_t count, int64_t width, int64_t data_rows,
    int64_t out_rows, void* out, uint8_t* begun) {
  const Rows rows{targets, sources, data, weights, count, width, data_rows, out_rows, out, begun};
  switch (type) {
    case 0:
      return combine_by<float>(operation, rows);
    case 1:
      return combine_by<double>(operation, rows);
    case 2:
      return combine_by<int32_t>(operation, rows);
    case 3:
      return combine_by<int64_t>(operation, rows);
  }
}
