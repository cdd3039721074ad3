// Values out of text: the numbers that strings are, and the fields of comma-separated values.
//
// Strings stand one behind the other, and `ends` says where each ends. What is written in another
// way than most, or wrongly, is left to Python, which has all the rules and words the mistakes.

#include <cstdint>
#include <cstring>

#include "numerals.h"

namespace {

using runnel::Text;

enum Kind : int64_t { kNotWanted = 0, kString = 1, kReal = 2, kInteger = 3 };
enum Flag : uint8_t { kRead = 0, kMissing = 1, kUnread = 2 };

bool ReadNumber(Text text, int64_t kind, int64_t* word) {
  if (kind == kInteger) return runnel::ReadInteger(text, word);
  double value;
  if (!runnel::ReadReal(text, &value)) return false;
  std::memcpy(word, &value, sizeof(value));
  return true;
}

// Where fields stand in a line; one at a time.
struct Line {
  const char* at;
  const char* end;
  char delimiter;
  bool has_quotes;
  bool is_over = false;

  // Takes a field off the front; false for a mistake, or what Python has to look at.
  bool Take(Text* field, bool* has_doubled_quotes) {
    *has_doubled_quotes = false;
    if (has_quotes && at != end && *at == '"') {
      *field = {++at, at};
      for (;; ++at) {
        at = static_cast<const char*>(std::memchr(at, '"', end - at));
        if (at == nullptr) return false;
        field->end = at++;
        if (at == end || *at == delimiter) break;
        if (*at != '"') return false;
        *has_doubled_quotes = true;
      }
    } else {
      *field = {at, at};
      for (; at != end && *at != delimiter; ++at) {
        if (*at == '\n' || *at == '\r' || (has_quotes && *at == '"')) return false;
      }
      field->end = at;
    }
    is_over = at == end;
    at += !is_over;  // over the delimiter, behind which comes a field, if only an empty one
    return true;
  }
};

}  // namespace

// The numbers of `count` strings, as many as can be read from the first on: how many.
extern "C" int64_t runnel_read_numbers(const char* content, const int64_t* ends, int64_t count,
                                       int64_t kind, int64_t* out) {
  int64_t begin = 0;
  for (int64_t i = 0; i < count; ++i) {
    if (!ReadNumber({content + begin, content + ends[i]}, kind, out + i)) return i;
    begin = ends[i];
  }
  return count;
}

// The fields of `rows` lines, of which `kinds` says for each of `width` what it is; there are more
// only where `may_be_more`. For each that is wanted `out` gets `rows` places where it begins, those
// where it ends, and its numbers; `flags` gets how it was read. False where a line is not right.
extern "C" int64_t runnel_read_csv(const char* content, const int64_t* ends, int64_t rows,
                                   int64_t delimiter, int64_t has_quotes, const char* missing,
                                   int64_t missing_size, const int64_t* kinds, int64_t width,
                                   int64_t may_be_more, int64_t* out, uint8_t* flags) {
  int64_t begin = 0;
  for (int64_t row = 0; row < rows; ++row) {
    Line line{content + begin, content + ends[row], static_cast<char>(delimiter), has_quotes != 0};
    if (line.at == line.end) return 0;
    begin = ends[row];
    int64_t column = 0, wanted = 0;
    for (; !line.is_over; ++column) {
      Text field;
      bool has_doubled_quotes;
      if (!line.Take(&field, &has_doubled_quotes)) return 0;
      const int64_t kind = column < width ? kinds[column] : kNotWanted;
      if (kind == kNotWanted) continue;
      int64_t* places = out + 3 * rows * wanted + row;
      uint8_t* flag = flags + rows * wanted++ + row;
      places[0] = field.begin - content;
      places[rows] = field.end - content;
      if (has_doubled_quotes) {
        *flag = kUnread;
      } else if (!field.size() || (field.size() == missing_size &&
                                   !std::memcmp(field.begin, missing, missing_size))) {
        *flag = kMissing;
      } else {
        *flag = kind == kString || ReadNumber(field, kind, places + 2 * rows) ? kRead : kUnread;
      }
    }
    if (column < width || (column > width && !may_be_more)) return 0;
  }
  return 1;
}
