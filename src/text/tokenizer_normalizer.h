#pragma once

#include <string>
#include <string_view>

namespace orthrus {

/// Unicode normalisation form C of valid UTF-8. Time n log n whatever the text: also for long runs
/// of combining marks.
std::string normalize_nfc(std::string_view text);

/// Whether `text` (valid UTF-8) is in NFC for certain: it has no character from U+0300 on.
bool is_plainly_nfc(std::string_view text);

}  // namespace orthrus
