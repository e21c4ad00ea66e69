#include "text/pretokenizer_regex.h"

#include <oniguruma.h>

#include <algorithm>
#include <mutex>

#include "base/error.h"
#include "formats/printable.h"
#include "text/utf8.h"

namespace orthrus {
namespace {

constexpr size_t kMaxPatternBytes = 4096;  // Llama 3's has 130; compiled ones can be far larger
constexpr unsigned long kFirstLimit = 512;

const OnigUChar* bytes_of(std::string_view text) {
  return reinterpret_cast<const OnigUChar*>(text.data());
}

std::shared_ptr<re_pattern_buffer> compile(const std::string& pattern, const std::string& where) {
  // Compiling touches tables that are shared by all patterns.
  static std::mutex mutex;
  std::lock_guard lock(mutex);
  OnigEncoding encoding = ONIG_ENCODING_UTF8;
  onig_initialize(&encoding, 1);
  regex_t* compiled = nullptr;
  OnigErrorInfo info;
  int status = onig_new(&compiled, bytes_of(pattern), bytes_of(pattern) + pattern.size(),
                        ONIG_OPTION_NONE, encoding, ONIG_SYNTAX_DEFAULT, &info);
  if (status != ONIG_NORMAL) {
    OnigUChar message[ONIG_MAX_ERROR_MESSAGE_LEN];
    int length = onig_error_code_to_str(message, status, &info);
    fail("{}: not a valid pattern: {}", where,
         printable({reinterpret_cast<char*>(message), static_cast<size_t>(std::max(length, 0))}));
  }
  return {compiled, onig_free};
}

/// One search after the other in the same text, each with as many steps as it needs: the limit
/// grows fourfold until the budget is spent, so a pattern cannot take more than linear time in all.
class Searcher {
 public:
  Searcher(regex_t* pattern, std::string_view text, RegexBudget& budget, const std::string& where)
      : pattern_(pattern), text_(text), budget_(budget), where_(where) {
    ORTHRUS_CHECK(region_ != nullptr && param_ != nullptr);
    onig_initialize_match_param(param_.get());
    // Entries of 40 bytes or so; a repeated class needs one a character.
    size_t stack = std::min<size_t>(2 * text.size() + 4096, UINT32_MAX);
    onig_set_match_stack_limit_size_of_match_param(param_.get(), static_cast<unsigned>(stack));
  }

  /// The first match from `start` on; false where there is none.
  bool search(size_t start, ByteRange& found) {
    for (unsigned long limit = kFirstLimit;; limit *= 4) {
      int status = search_within(start, limit);
      if (status == ONIG_MISMATCH) return false;
      if (status >= 0) {
        found = {static_cast<size_t>(region_->beg[0]), static_cast<size_t>(region_->end[0])};
        return true;
      }
      bool over = status == ONIGERR_RETRY_LIMIT_IN_MATCH_OVER ||
                  status == ONIGERR_RETRY_LIMIT_IN_SEARCH_OVER;
      budget_.spent += limit;
      if (!over || budget_.spent > budget_.limit) {
        fail("{}: the pattern needs too many steps on this text (error {} at byte {})", where_,
             status, start);
      }
    }
  }

 private:
  int search_within(size_t start, unsigned long limit) {
    onig_set_retry_limit_in_match_of_match_param(param_.get(), limit);
    onig_set_retry_limit_in_search_of_match_param(param_.get(), limit);
    const OnigUChar* begin = bytes_of(text_);
    const OnigUChar* end = begin + text_.size();
    return onig_search_with_param(pattern_, begin, end, begin + start, end, region_.get(),
                                  ONIG_OPTION_NONE, param_.get());
  }

  struct FreeRegion {
    void operator()(OnigRegion* region) const { onig_region_free(region, 1); }
  };
  struct FreeParam {
    void operator()(OnigMatchParam* param) const { onig_free_match_param(param); }
  };

  regex_t* pattern_;
  std::string_view text_;
  RegexBudget& budget_;
  const std::string& where_;
  std::unique_ptr<OnigRegion, FreeRegion> region_{onig_region_new()};
  std::unique_ptr<OnigMatchParam, FreeParam> param_{onig_new_match_param()};
};

}  // namespace

Regex::Regex(const std::string& pattern, const std::string& where)
    : source_(pattern), where_(where) {
  if (pattern.size() > kMaxPatternBytes) {
    fail("{}: a pattern of {} bytes, expected at most {}", where, pattern.size(), kMaxPatternBytes);
  }
  pattern_ = compile(pattern, where);
}

std::vector<ByteRange> Regex::matches(std::string_view text, RegexBudget& budget) const {
  std::vector<ByteRange> out;
  Searcher searcher(pattern_.get(), text, budget, where_);
  ByteRange found;
  for (size_t start = 0; start <= text.size() && searcher.search(start, found);) {
    // Only \K can do that.
    if (found.begin < start || found.end < found.begin) {
      fail("{}: the pattern's match does not lie where it was looked for", where_);
    }
    start = found.end;
    if (found.begin == found.end && !out.empty() && out.back().end == found.end) {
      if (start == text.size()) break;
      start += utf8_at(text, start).length;
    } else {
      out.push_back(found);
    }
  }
  return out;
}

}  // namespace orthrus
