// Finding the records in a piece of a record file.
//
// A record is its length (8 bytes, little-endian), the masked CRC-32C of those 8 bytes, the data,
// and the masked CRC-32C of the data. Nothing in the piece is trusted.

#include <cstdint>
#include <cstring>

#include "crc32c.h"

namespace {

constexpr int64_t kHeader = 12;
constexpr int64_t kFooter = 4;

uint32_t Masked(uint32_t crc) { return (crc >> 15 | crc << 17) + 0xA282EAD8u; }

bool Matches(const uint8_t* data, int64_t size, const uint8_t* stored) {
  uint32_t checksum;
  std::memcpy(&checksum, stored, sizeof checksum);
  return Masked(runnel::Crc32c::Of(data, static_cast<size_t>(size))) == checksum;
}

}  // namespace

// The CRC-32C of some bytes.
extern "C" uint32_t runnel_crc32c(const uint8_t* data, int64_t size) {
  return runnel::Crc32c::Of(data, static_cast<size_t>(size));
}

// The same, as processors without an instruction for it compute it.
extern "C" uint32_t runnel_crc32c_by_tables(const uint8_t* data, int64_t size) {
  return runnel::Crc32c::ByTables(data, static_cast<size_t>(size));
}

// Notes where the data of each record begins and ends, for the records from `at` on that are whole
// and sound, at most `most`; how many they are. It stops before one that is cut or damaged.
extern "C" int64_t runnel_scan_records(const uint8_t* content, int64_t size, int64_t at,
                                       int64_t most, int64_t* spans) {
  int64_t found = 0;
  for (; found < most && size - at >= kHeader + kFooter; ++found) {
    uint64_t length;
    std::memcpy(&length, content + at, sizeof length);
    if (length > static_cast<uint64_t>(size - at - kHeader - kFooter)) break;
    if (!Matches(content + at, sizeof length, content + at + sizeof length)) break;
    const int64_t begin = at + kHeader, end = begin + static_cast<int64_t>(length);
    if (!Matches(content + begin, end - begin, content + end)) break;
    spans[2 * found] = begin;
    spans[2 * found + 1] = end;
    at = end + kFooter;
  }
  return found;
}
