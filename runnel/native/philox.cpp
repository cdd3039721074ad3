// The random words of TensorFlow's CPU kernels: Philox4x32-10 at many counters of one stream.
//
// Nothing depends on anything else, so the compiler makes vector code of the loop over counters.

#include <cstdint>

// See bilinear_resize.cpp: one version for wider registers, too.
#if defined(__x86_64__) && defined(__GLIBC__) && defined(__GNUC__) && !defined(__clang__)
#define RUNNEL_ALSO_FOR_AVX2 __attribute__((target_clones("avx2", "default")))
#else
#define RUNNEL_ALSO_FOR_AVX2
#endif

namespace {

constexpr int kRounds = 10;
constexpr uint64_t kFirstMultiplier = 0xD2511F53, kSecondMultiplier = 0xCD9E8D57;
constexpr uint32_t kFirstKeyStep = 0x9E3779B9, kSecondKeyStep = 0xBB67AE85;
constexpr int64_t kTogether = 64;

}  // namespace

// `stream` is the key and the counter, low words first; of each of `count` places at `offsets` from
// there `out` gets four words: all first ones, then all second ones, and so on.
extern "C" RUNNEL_ALSO_FOR_AVX2 void runnel_philox(const uint32_t* stream, const uint64_t* offsets,
                                                   int64_t count, uint32_t* out) {
  const uint64_t low = stream[2] | static_cast<uint64_t>(stream[3]) << 32;
  const uint64_t high = stream[4] | static_cast<uint64_t>(stream[5]) << 32;
  for (int64_t begin = 0; begin < count; begin += kTogether) {
    const int64_t size = count - begin < kTogether ? count - begin : kTogether;
    uint32_t words[4][kTogether] = {};
    for (int64_t i = 0; i < size; ++i) {
      const uint64_t at = low + offsets[begin + i];
      const uint64_t above = high + (at < low);
      words[0][i] = static_cast<uint32_t>(at);
      words[1][i] = static_cast<uint32_t>(at >> 32);
      words[2][i] = static_cast<uint32_t>(above);
      words[3][i] = static_cast<uint32_t>(above >> 32);
    }
    uint32_t first_key = stream[0], second_key = stream[1];
    for (int round = 0; round < kRounds; ++round) {
      for (int64_t i = 0; i < kTogether; ++i) {
        const uint64_t first = words[0][i] * kFirstMultiplier;
        const uint64_t second = words[2][i] * kSecondMultiplier;
        words[0][i] = static_cast<uint32_t>(second >> 32) ^ words[1][i] ^ first_key;
        words[1][i] = static_cast<uint32_t>(second);
        words[2][i] = static_cast<uint32_t>(first >> 32) ^ words[3][i] ^ second_key;
        words[3][i] = static_cast<uint32_t>(first);
      }
      first_key += kFirstKeyStep;
      second_key += kSecondKeyStep;
    }
    for (int word = 0; word < 4; ++word) {
      for (int64_t i = 0; i < size; ++i) out[word * count + begin + i] = words[word][i];
    }
  }
}
