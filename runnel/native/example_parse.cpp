// Finding the wanted features in serialized `Example` messages, and reading their values.
//
// An Example is a map of features; a feature is a list of strings, floats or integers:
//
//   0A <size> features:  { 0A <size> entry: { 0A <size> key  12 <size> feature } } ...
//   feature:  nothing, or <tag of its kind> <size> list
//   list of strings:  { 0A <size> bytes } ...
//   list of numbers:  nothing, or 0A <size> numbers   (floats of 4 bytes, integers of 1 to 10)
//
// Writers write so. The format allows more (unknown fields, messages in parts, a key twice, numbers
// that are not packed): a message that is written in another way is called unusual and left to the
// general parser, as is one that is damaged. Nothing in a message is trusted: each size is compared
// with what is left of the part that it stands in.

#include <cstdint>
#include <cstring>
#include <vector>

namespace {

constexpr uint8_t kField1 = 0x0A, kField2 = 0x12;
constexpr uint8_t kStrings = 0x0A, kFloats = 0x12, kIntegers = 0x1A;  // the tags of lists
constexpr int kLongestSize = 5;     // bytes of a size: with more it is unusual
constexpr int kLongestInteger = 10;

struct Part {
  const uint8_t* at;
  const uint8_t* end;

  int64_t size() const { return end - at; }

  // Takes the field with `tag`, whose bytes are `inside`, off the front.
  bool Take(uint8_t tag, Part* inside) {
    if (at == end || *at != tag) return false;
    const uint8_t* next = at + 1;
    uint64_t size = 0;
    for (int i = 0;; ++i) {
      if (next == end || i == kLongestSize) return false;
      const uint8_t byte = *next++;
      size |= static_cast<uint64_t>(byte & 0x7F) << 7 * i;
      if (byte < 0x80) break;
    }
    if (size > static_cast<uint64_t>(end - next)) return false;
    *inside = {next, next + size};
    at = next + size;
    return true;
  }

  // The field with `tag` that is all of it.
  bool TakeAll(uint8_t tag, Part* inside) { return Take(tag, inside) && at == end; }
};

// How many integers there are; -1 where one is cut, or so long that it is unusual.
int64_t CountIntegers(Part numbers) {
  int64_t count = 0, length = 0;
  for (; numbers.at != numbers.end; ++numbers.at) {
    ++length;
    if (length == kLongestInteger && *numbers.at > 1) return -1;
    if (*numbers.at < 0x80) {
      ++count;
      length = 0;
    }
  }
  return length ? -1 : count;
}

// Of a list of the kind `tag`: how many values it has, and where they are; -1 if it is unusual.
int64_t CountValues(uint8_t tag, Part list, Part* values) {
  *values = list;
  if (list.at == list.end) return 0;
  if (tag == kStrings) {
    int64_t count = 0;
    for (Part text; list.at != list.end; ++count) {
      if (!list.Take(kField1, &text)) return -1;
    }
    return count;
  }
  if (!list.TakeAll(kField1, values)) return -1;
  if (tag == kIntegers) return CountIntegers(*values);
  return values->size() % 4 ? -1 : values->size() / 4;
}

bool IsAscii(Part text) {
  uint8_t all = 0;
  for (; text.at != text.end; ++text.at) all |= *text.at;
  return all < 0x80;
}

// The keys of the wanted features, by what they are.
class Keys {
 public:
  Keys(const uint8_t* text, const int64_t* ends, int64_t count) {
    size_t slots = 16;
    while (slots < 2 * static_cast<size_t>(count)) slots *= 2;
    slots_.assign(slots, -1);
    int64_t begin = 0;
    for (int64_t i = 0; i < count; ++i) {
      keys_.push_back({text + begin, text + ends[i]});
      begin = ends[i];
      size_t slot = Hash(keys_[i]) & (slots - 1);
      while (slots_[slot] >= 0) slot = (slot + 1) & (slots - 1);
      slots_[slot] = i;
    }
  }

  // The number of the feature with this key; -1 where it is not wanted.
  int64_t Find(Part key) const {
    for (size_t slot = Hash(key) & (slots_.size() - 1);; slot = (slot + 1) & (slots_.size() - 1)) {
      const int64_t found = slots_[slot];
      if (found < 0 || Is(found, key)) return found;
    }
  }

  bool Is(int64_t number, Part key) const {
    const Part& known = keys_[number];
    return known.size() == key.size() && !std::memcmp(known.at, key.at, key.size());
  }

 private:
  std::vector<Part> keys_;
  std::vector<int64_t> slots_;

  static size_t Hash(Part key) {
    uint64_t hash = 0xCBF29CE484222325u;
    for (; key.at != key.end; ++key.at) hash = (hash ^ *key.at) * 0x100000001B3u;
    return hash ^ hash >> 32;
  }
};

struct Places {
  int64_t* begins;
  int64_t* ends;
  int64_t* counts;
  uint8_t* tags;
  int64_t messages;

  void Clear(int64_t features, int64_t message) const {
    for (int64_t i = 0; i < features; ++i) {
      counts[i * messages + message] = -1;
      tags[i * messages + message] = 0;
    }
  }
};

// Notes the wanted features of a message; false if it is unusual.
bool FindIn(const uint8_t* content, Part message, int64_t row, const Keys& keys,
            std::vector<int64_t>* expected, const Places& places) {
  Part features = message;
  if (message.at != message.end && !message.TakeAll(kField1, &features)) return false;
  for (size_t order = 0; features.at != features.end; ++order) {
    Part entry, key, feature, list, values = {nullptr, nullptr};
    if (!features.Take(kField1, &entry) || !entry.Take(kField1, &key) ||
        !entry.TakeAll(kField2, &feature)) {
      return false;
    }
    uint8_t tag = 0;
    int64_t count = -1;
    if (feature.at != feature.end) {
      tag = *feature.at;
      if (tag != kStrings && tag != kFloats && tag != kIntegers) return false;
      if (!feature.TakeAll(tag, &list)) return false;
      count = CountValues(tag, list, &values);
      if (count < 0) return false;
    }
    // Mostly messages have their features in the order of the one before.
    if (order == expected->size()) expected->push_back(-1);
    int64_t& number = (*expected)[order];
    if (number < 0 || !keys.Is(number, key)) number = keys.Find(key);
    if (number < 0) {
      if (!IsAscii(key)) return false;  // it may be no text at all
      continue;
    }
    const int64_t place = number * places.messages + row;
    if (places.begins[place] >= 0) return false;  // a key twice
    places.begins[place] = count < 0 ? 0 : values.at - content;
    places.ends[place] = count < 0 ? 0 : values.end - content;
    places.counts[place] = count;
    places.tags[place] = tag;
  }
  return true;
}

}  // namespace

// Finds the wanted features in messages, which stand one behind the other in `content`.
//
// For each feature and message it gives where the values begin and end, how many there are (-1:
// the feature is missing) and the tag of their kind (0: it has none). `usual` says which messages
// were read; the others have no features. `summary` has for each feature how many values there are
// in all, and for each kind whether it occurs: a sum of 1 (strings), 2 (floats), 4 (integers).
extern "C" void runnel_find_features(const uint8_t* content, const int64_t* message_ends,
                                     int64_t messages, const uint8_t* key_text,
                                     const int64_t* key_ends, int64_t features, int64_t* begins,
                                     int64_t* ends, int64_t* counts, uint8_t* tags, uint8_t* usual,
                                     int64_t* summary) {
  const Keys keys(key_text, key_ends, features);
  const Places places = {begins, ends, counts, tags, messages};
  std::vector<int64_t> expected;
  for (int64_t i = 0; i < features * messages; ++i) begins[i] = -1;
  const uint8_t* begin = content;
  for (int64_t row = 0; row < messages; ++row) {
    places.Clear(features, row);
    const uint8_t* end = content + message_ends[row];
    usual[row] = FindIn(content, {begin, end}, row, keys, &expected, places);
    if (!usual[row]) places.Clear(features, row);
    begin = end;
  }
  for (int64_t i = 0; i < features; ++i) {
    int64_t total = 0, kinds = 0;
    for (int64_t place = i * messages; place < (i + 1) * messages; ++place) {
      if (counts[place] > 0) total += counts[place];
      kinds |= tags[place] == kStrings ? 1 : tags[place] == kFloats ? 2 : tags[place] ? 4 : 0;
    }
    summary[2 * i] = total;
    summary[2 * i + 1] = kinds;
  }
}

// Writes the values of a feature, which `runnel_find_features` has found to be of the kind `tag`
// wherever there are any: floats, integers, or for each string where it begins and ends.
extern "C" void runnel_read_values(const uint8_t* content, const int64_t* begins,
                                   const int64_t* ends, const int64_t* counts, int64_t messages,
                                   uint8_t tag, void* out) {
  int64_t* number = static_cast<int64_t*>(out);
  uint8_t* bytes = static_cast<uint8_t*>(out);
  for (int64_t row = 0; row < messages; ++row) {
    if (counts[row] <= 0) continue;
    Part values = {content + begins[row], content + ends[row]};
    if (tag == kFloats) {
      std::memcpy(bytes, values.at, values.size());
      bytes += values.size();
    } else if (tag == kStrings) {
      for (Part text; values.at != values.end && values.Take(kField1, &text);) {
        *number++ = text.at - content;
        *number++ = text.end - content;
      }
    } else {
      uint64_t value = 0;
      for (int shift = 0; values.at != values.end; ++values.at) {
        value |= static_cast<uint64_t>(*values.at & 0x7F) << shift;
        shift += 7;
        if (*values.at < 0x80) {
          *number++ = static_cast<int64_t>(value);
          value = 0;
          shift = 0;
        }
      }
    }
  }
}
