// Numbers that are written as text, as most are: what is not read here is read in Python.

#ifndef RUNNEL_NATIVE_NUMERALS_H_
#define RUNNEL_NATIVE_NUMERALS_H_

#include <cstdint>

namespace runnel {

struct Text {
  const char* begin;
  const char* end;

  int64_t size() const { return end - begin; }
};

inline bool IsBlank(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }
inline bool IsDigit(char c) { return c >= '0' && c <= '9'; }

inline Text WithoutBlanks(Text text) {
  while (text.begin != text.end && IsBlank(*text.begin)) ++text.begin;
  while (text.begin != text.end && IsBlank(text.end[-1])) --text.end;
  return text;
}

// Takes the sign off the front; true for a minus.
inline bool TakeSign(Text* text) {
  if (text->begin == text->end || (*text->begin != '+' && *text->begin != '-')) return false;
  return *text->begin++ == '-';
}

// The integer that `text` is, if it has at most 18 digits.
inline bool ReadInteger(Text text, int64_t* value) {
  constexpr int kDigits = 18;
  text = WithoutBlanks(text);
  const bool is_negative = TakeSign(&text);
  if (text.size() < 1 || text.size() > kDigits) return false;
  int64_t found = 0;
  for (; text.begin != text.end; ++text.begin) {
    if (!IsDigit(*text.begin)) return false;
    found = found * 10 + (*text.begin - '0');
  }
  *value = is_negative ? -found : found;
  return true;
}

// The number that `text` is, if its digits are an integer below 2^53 and it is that integer times
// or through a power of ten that a double has: then one operation rounds as it should (Clinger,
// "How to read floating point numbers accurately", 1990). Doubles have powers up to 10^22.
inline bool ReadReal(Text text, double* value) {
  constexpr uint64_t kLargest = uint64_t{1} << 53;
  constexpr int kPowers = 23, kDigits = 18;
  static constexpr double kPowersOfTen[kPowers] = {
      1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,  1e10, 1e11,
      1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
  text = WithoutBlanks(text);
  const bool is_negative = TakeSign(&text);
  uint64_t digits = 0;
  int64_t count = 0, behind_point = 0;
  bool has_point = false;
  for (; text.begin != text.end; ++text.begin) {
    if (IsDigit(*text.begin)) {
      if (++count > kDigits) return false;
      digits = digits * 10 + (*text.begin - '0');
      behind_point += has_point;
    } else if (*text.begin == '.' && !has_point) {
      has_point = true;
    } else {
      break;
    }
  }
  if (!count || digits > kLargest) return false;
  int64_t exponent = 0;
  if (text.begin != text.end) {
    if (*text.begin != 'e' && *text.begin != 'E') return false;
    ++text.begin;
    const bool is_small = TakeSign(&text);
    if (text.size() < 1 || text.size() > 3) return false;
    for (; text.begin != text.end; ++text.begin) {
      if (!IsDigit(*text.begin)) return false;
      exponent = exponent * 10 + (*text.begin - '0');
    }
    if (is_small) exponent = -exponent;
  }
  exponent -= behind_point;
  if (exponent <= -kPowers || exponent >= kPowers) return false;
  const double whole = static_cast<double>(digits);
  const double found = exponent < 0 ? whole / kPowersOfTen[-exponent] : whole * kPowersOfTen[exponent];
  *value = is_negative ? -found : found;
  return true;
}

}  // namespace runnel

#endif  // RUNNEL_NATIVE_NUMERALS_H_
