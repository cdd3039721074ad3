// CRC-32C, by the processor's instruction where it has one.
//
// The instruction has a latency of three cycles and can begin anew in each: so long runs of bytes
// are taken as three lanes side by side, and what the lanes give is put together. A register that
// has gone over some zero bytes is a linear function of the one before; tables hold that function
// for the length of a lane.

#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#if defined(__x86_64__)
#include <nmmintrin.h>
#endif

namespace runnel {

class Crc32c {
 public:
  // The checksum of some bytes.
  static uint32_t Of(const uint8_t* data, size_t size) {
#if defined(__x86_64__)
    if (Tables().has_instruction_) return ~Tables().ByInstruction(~0u, data, size);
#endif
    return ByTables(data, size);
  }

  // The same, by any processor.
  static uint32_t ByTables(const uint8_t* data, size_t size) {
    return ~Tables().ByBytes(~0u, data, size);
  }

 private:
  static const Crc32c& Tables() {
    static const Crc32c tables;
    return tables;
  }

  static constexpr size_t kLanes[] = {4096, 320};  // bytes, multiples of eight; longest first
  static constexpr uint32_t kPolynomial = 0x82F63B78u;

  uint32_t byte_[8][256];     // what a byte does, with so many bytes behind it
  uint32_t zeros_[2][4][256];  // what the zero bytes of a lane do to each byte of a register
  bool has_instruction_ = false;

  Crc32c() {
    for (uint32_t value = 0; value < 256; ++value) {
      uint32_t left = value;
      for (int bit = 0; bit < 8; ++bit) left = left >> 1 ^ (left & 1 ? kPolynomial : 0);
      byte_[0][value] = left;
    }
    for (int place = 1; place < 8; ++place) {
      for (int value = 0; value < 256; ++value) {
        byte_[place][value] = Next(byte_[place - 1][value]);
      }
    }
    for (int lane = 0; lane < 2; ++lane) FillZeros(zeros_[lane], kLanes[lane]);
#if defined(__x86_64__)
    has_instruction_ = __builtin_cpu_supports("sse4.2");
#endif
  }

  uint32_t Next(uint32_t state) const { return state >> 8 ^ byte_[0][state & 0xFF]; }

  void FillZeros(uint32_t (*zeros)[256], size_t length) const {
    uint32_t of_bit[32];
    for (int bit = 0; bit < 32; ++bit) {
      of_bit[bit] = uint32_t{1} << bit;
      for (size_t i = 0; i < length; ++i) of_bit[bit] = Next(of_bit[bit]);
    }
    for (int place = 0; place < 4; ++place) {
      for (int value = 0; value < 256; ++value) {
        uint32_t sum = 0;
        for (int bit = 0; bit < 8; ++bit) sum ^= value >> bit & 1 ? of_bit[8 * place + bit] : 0;
        zeros[place][value] = sum;
      }
    }
  }

  static uint64_t Word(const uint8_t* data) {
    uint64_t word;
    std::memcpy(&word, data, sizeof word);
    return word;
  }

  uint32_t ByBytes(uint32_t state, const uint8_t* data, size_t size) const {
    for (; size >= 8; data += 8, size -= 8) {
      const uint64_t word = Word(data) ^ state;
      state = 0;
      for (int place = 0; place < 8; ++place) state ^= byte_[7 - place][word >> 8 * place & 0xFF];
    }
    for (; size; ++data, --size) state = Next(state ^ *data);
    return state;
  }

#if defined(__x86_64__)
  static uint32_t Shifted(const uint32_t (*zeros)[256], uint64_t state) {
    return zeros[0][state & 0xFF] ^ zeros[1][state >> 8 & 0xFF] ^ zeros[2][state >> 16 & 0xFF] ^
           zeros[3][state >> 24 & 0xFF];
  }

  __attribute__((target("sse4.2"))) uint32_t ByInstruction(uint32_t state, const uint8_t* data,
                                                           size_t size) const {
    uint64_t first = state;
    for (int kind = 0; kind < 2; ++kind) {
      const size_t lane = kLanes[kind];
      for (; size >= 3 * lane; data += 3 * lane, size -= 3 * lane) {
        uint64_t second = 0, third = 0;
        for (size_t i = 0; i < lane; i += 8) {
          first = _mm_crc32_u64(first, Word(data + i));
          second = _mm_crc32_u64(second, Word(data + lane + i));
          third = _mm_crc32_u64(third, Word(data + 2 * lane + i));
        }
        first = Shifted(zeros_[kind], first) ^ second;
        first = Shifted(zeros_[kind], first) ^ third;
      }
    }
    for (; size >= 8; data += 8, size -= 8) first = _mm_crc32_u64(first, Word(data));
    uint32_t last = static_cast<uint32_t>(first);
    for (; size; ++data, --size) last = _mm_crc32_u8(last, *data);
    return last;
  }
#endif
};

}  // namespace runnel
