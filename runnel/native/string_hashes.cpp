// TensorFlow's hashes of strings: FarmHash's Fingerprint64, SipHash-2-4, and its old Hash64.
//
// Strings stand one behind the other, and `ends` says where each ends. hashes.py has the same.

#include <cstdint>
#include <cstring>

namespace {

constexpr uint64_t kFirst = 0xC3A5C85C97CB3127, kSecond = 0xB492B66FBE98F273,
                   kThird = 0x9AE16A3B2F90404F;

uint64_t Word(const uint8_t* at) {
  uint64_t word;
  std::memcpy(&word, at, sizeof(word));
  return word;
}

uint64_t HalfWord(const uint8_t* at) {
  uint32_t word;
  std::memcpy(&word, at, sizeof(word));
  return word;
}

// The last `size` bytes before `end`, fewer than eight, as a word.
uint64_t LastBytes(const uint8_t* end, int64_t size) {
  uint64_t word = 0;
  std::memcpy(&word, end - size, size);
  return word;
}

uint64_t Right(uint64_t value, int bits) { return value >> bits | value << (64 - bits); }
uint64_t Left(uint64_t value, int bits) { return value << bits | value >> (64 - bits); }
uint64_t Mixed(uint64_t value) { return value ^ value >> 47; }

uint64_t Of16(uint64_t low, uint64_t high, uint64_t factor) {
  const uint64_t first = Mixed((low ^ high) * factor);
  return Mixed((high ^ first) * factor) * factor;
}

struct Pair {
  uint64_t first, second;
};

Pair Of32(const uint8_t* at, uint64_t a, uint64_t b) {
  const uint64_t w = Word(at), x = Word(at + 8), y = Word(at + 16), z = Word(at + 24);
  a += w;
  b = Right(b + a + z, 21);
  const uint64_t c = a;
  a += x + y;
  b += Right(a, 44);
  return {a + z, b + c};
}

uint64_t Upto16(const uint8_t* text, int64_t size) {
  const uint64_t length = size, factor = kThird + length * 2;
  if (size >= 8) {
    const uint64_t a = Word(text) + kThird, b = Word(text + size - 8);
    return Of16(Right(b, 37) * factor + a, (Right(a, 25) + b) * factor, factor);
  }
  if (size >= 4) return Of16(length + (HalfWord(text) << 3), HalfWord(text + size - 4), factor);
  if (!size) return kThird;
  const uint64_t a = text[0], b = text[size >> 1], c = text[size - 1];
  return Mixed((a + (b << 8)) * kThird ^ (length + (c << 2)) * kFirst) * kThird;
}

uint64_t Upto64(const uint8_t* text, int64_t size) {
  const bool is_short = size <= 32;
  const uint64_t factor = kThird + static_cast<uint64_t>(size) * 2;
  const uint64_t a = Word(text) * (is_short ? kSecond : kThird), b = Word(text + 8);
  const uint64_t c = Word(text + size - 8) * factor, d = Word(text + size - 16) * kThird;
  const uint64_t y = Right(a + b, 43) + Right(c, 30) + d;
  const uint64_t z = Of16(y, a + Right(b + kThird, 18) + c, factor);
  if (is_short) return z;
  const uint64_t e = Word(text + 16) * factor, f = Word(text + 24);
  const uint64_t g = (y + Word(text + size - 32)) * factor;
  const uint64_t h = (z + Word(text + size - 24)) * factor;
  return Of16(Right(e + f, 43) + Right(g, 30) + h, e + Right(f + a, 18) + g, factor);
}

uint64_t Fingerprint64(const uint8_t* text, int64_t size) {
  if (size <= 16) return Upto16(text, size);
  if (size <= 64) return Upto64(text, size);
  constexpr uint64_t kSeed = 81;
  uint64_t x = kSeed, y = kSeed * kSecond + 113, z = Mixed(y * kThird + 113) * kThird;
  Pair v{0, 0}, w{0, 0};
  x = x * kThird + Word(text);
  const auto stir = [&](const uint8_t* at, uint64_t factor, uint64_t times) {
    x = Right(x + y + v.first + Word(at + 8), 37) * factor;
    y = Right(y + v.second + Word(at + 48), 42) * factor;
    x ^= w.second * times;
    y += v.first * times + Word(at + 40);
    z = Right(z + w.first, 33) * factor;
    v = Of32(at, v.second * factor, x + w.first);
    w = Of32(at + 32, z + w.second, y + Word(at + 16));
    const uint64_t kept = x;
    x = z;
    z = kept;
  };
  for (int64_t at = 0; at < (size - 1) / 64 * 64; at += 64) stir(text + at, kSecond, 1);
  const uint64_t factor = kSecond + ((z & 0xFF) << 1);
  w.first += (size - 1) & 63;
  v.first += w.first;
  w.first += v.first;
  stir(text + size - 64, factor, 9);
  return Of16(Of16(v.first, w.first, factor) + Mixed(y) * kFirst + z,
              Of16(v.second, w.second, factor) + x, factor);
}

uint64_t SipHash(const uint8_t* text, int64_t size, const uint64_t* key) {
  uint64_t v0 = key[0] ^ 0x736F6D6570736575, v1 = key[1] ^ 0x646F72616E646F6D;
  uint64_t v2 = key[0] ^ 0x6C7967656E657261, v3 = key[1] ^ 0x7465646279746573;
  const auto rounds = [&](int count) {
    for (int i = 0; i < count; ++i) {
      v0 += v1;
      v1 = Left(v1, 13) ^ v0;
      v0 = Left(v0, 32);
      v2 += v3;
      v3 = Left(v3, 16) ^ v2;
      v0 += v3;
      v3 = Left(v3, 21) ^ v0;
      v2 += v1;
      v1 = Left(v1, 17) ^ v2;
      v2 = Left(v2, 32);
    }
  };
  const auto take = [&](uint64_t word) {
    v3 ^= word;
    rounds(2);
    v0 ^= word;
  };
  const int64_t whole = size / 8 * 8;
  for (int64_t at = 0; at < whole; at += 8) take(Word(text + at));
  take(LastBytes(text + size, size - whole) | static_cast<uint64_t>(size) << 56);
  v2 ^= 0xFF;
  rounds(4);
  return v0 ^ v1 ^ v2 ^ v3;
}

// MurmurHash2 of 64 bits, with TensorFlow's seed.
uint64_t OldHash64(const uint8_t* text, int64_t size) {
  constexpr uint64_t kFactor = 0xC6A4A7935BD1E995, kSeed = 0xDECAFCAFFE;
  uint64_t value = kSeed ^ static_cast<uint64_t>(size) * kFactor;
  const int64_t whole = size / 8 * 8;
  for (int64_t at = 0; at < whole; at += 8) {
    value = (value ^ Mixed(Word(text + at) * kFactor) * kFactor) * kFactor;
  }
  if (whole < size) value = (value ^ LastBytes(text + size, size - whole)) * kFactor;
  return Mixed(Mixed(value) * kFactor);
}

}  // namespace

// The hashes of `count` strings, of the `kind`: 0 a fingerprint, 1 SipHash under `key`, 2 the old.
extern "C" void runnel_hash_strings(const char* content, const int64_t* ends, int64_t count,
                                    int64_t kind, const char* key, uint64_t* out) {
  uint64_t words[2];
  std::memcpy(words, key, sizeof(words));
  const auto* text = reinterpret_cast<const uint8_t*>(content);
  int64_t begin = 0;
  for (int64_t i = 0; i < count; ++i) {
    const int64_t size = ends[i] - begin;
    out[i] = kind == 0   ? Fingerprint64(text + begin, size)
             : kind == 1 ? SipHash(text + begin, size, words)
                         : OldHash64(text + begin, size);
    begin = ends[i];
  }
}
