#include "server/api_answer_parser.h"

#include <algorithm>

#include "server/api_call_head.h"

namespace orthrus {
namespace {

using Events = std::vector<AnswerEvent>;
using Kind = AnswerEvent::Kind;

constexpr std::string_view kSpace = " \t\r\n";
// White space that is held back before a possible tag; a longer run is text.
constexpr size_t kMostSpace = 64;

// Bytes of the longest end of `text` that `tag` begins with.
size_t partial_tag(std::string_view text, std::string_view tag) {
  for (size_t size = std::min(text.size(), tag.size() - 1); size > 0; --size) {
    if (tag.starts_with(text.substr(text.size() - size))) return size;
  }
  return 0;
}

// `text` without white space at its end, as far as that is held back.
size_t without_space(std::string_view text) {
  const size_t last = text.find_last_not_of(kSpace);
  const size_t end = last == text.npos ? 0 : last + 1;
  return std::max(end, text.size() - std::min(text.size(), kMostSpace));
}

// Where `tag` stands in `text`, and how much of the text before it is certain to be text.
struct TagSearch {
  size_t at;
  size_t certain;
};

TagSearch search(std::string_view text, std::string_view tag) {
  const size_t at = text.find(tag);
  const size_t end = at == text.npos ? text.size() - partial_tag(text, tag) : at;
  return {at, without_space(text.substr(0, end))};
}

}  // namespace

AnswerParser::AnswerParser(Thought thought, bool tools, std::string call_prefix, bool calls_only)
    : state_(thought == Thought::kOpen       ? State::kThought
             : thought == Thought::kMayBegin ? State::kStart
                                             : State::kContent),
      tools_(tools),
      calls_only_(calls_only),
      call_prefix_(std::move(call_prefix)),
      skip_space_(thought == Thought::kOpen) {}

void AnswerParser::feed(std::string_view text, Events& events) {
  fed_ += text.size();
  pending_ += text;
  while (!pending_.empty() && step(events)) {
  }
}

bool AnswerParser::step(Events& events) {
  switch (state_) {
    case State::kStart:
      return start();
    case State::kThought:
      return thought(events);
    case State::kContent:
      return content(events);
    case State::kCallHead:
      return call_head(events);
    case State::kArguments:
      return arguments(events);
    default:
      return call_tail();
  }
}

void AnswerParser::emit(Kind kind, std::string_view text, Events& events) {
  if (skip_space_) {
    const size_t begin = text.find_first_not_of(kSpace);
    if (begin == text.npos) return;
    text.remove_prefix(begin);
    skip_space_ = false;
  }
  if (text.empty()) return;
  const size_t call = kind == Kind::kArguments ? calls_ - 1 : 0;
  events.push_back({kind, std::string(text), call, {}, {}});
}

bool AnswerParser::start() {
  const std::string_view tag = kThinkBegin;
  const size_t begin = pending_.find_first_not_of(kSpace);
  const bool spaces = begin == std::string::npos;
  const size_t space = spaces ? pending_.size() : begin;
  const std::string_view rest = std::string_view(pending_).substr(space, tag.size());
  if (space > kMostSpace || !tag.starts_with(rest)) {
    state_ = State::kContent;
    return true;
  }
  if (rest.size() < tag.size()) return false;
  take(space + tag.size());
  state_ = State::kThought;
  skip_space_ = true;
  return true;
}

bool AnswerParser::thought(Events& events) {
  const std::string_view tag = kThinkEnd;
  const TagSearch found = search(pending_, tag);
  emit(Kind::kReasoning, std::string_view(pending_).substr(0, found.certain), events);
  if (found.at == std::string::npos) {
    take(found.certain);
    return false;
  }
  take(found.at + tag.size());
  thought_bytes_ = fed_ - pending_.size();
  state_ = State::kContent;
  skip_space_ = true;
  return true;
}

bool AnswerParser::content(Events& events) {
  if (!tools_) {
    emit(Kind::kContent, pending_, events);
    pending_.clear();
    return false;
  }
  const std::string_view tag = kToolCallBegin;
  const TagSearch found = search(pending_, tag);
  emit(Kind::kContent, std::string_view(pending_).substr(0, found.certain), events);
  if (found.at == std::string::npos) {
    take(found.certain);
    return false;
  }
  call_opening_ = pending_.substr(found.certain, found.at - found.certain + tag.size());
  take(found.at + tag.size());
  state_ = State::kCallHead;
  return true;
}

void AnswerParser::begin_call(std::string name, Events& events) {
  events.push_back(
      {Kind::kCallBegin, {}, calls_, call_prefix_ + std::to_string(calls_), std::move(name)});
  ++calls_;
  skip_space_ = false;
}

bool AnswerParser::call_head(Events& events) {
  CallHead head = read_call_head(pending_);
  switch (head.kind) {
    case CallHead::Kind::kPartial:
      return false;
    case CallHead::Kind::kNone:
      emit(Kind::kContent, call_opening_, events);
      state_ = State::kContent;  // what follows may hold the tag of a real call
      return true;
    case CallHead::Kind::kArguments:
      begin_call(std::move(head.name), events);
      state_ = State::kArguments;
      depth_ = 0;
      open_object_ = true;
      break;
    case CallHead::Kind::kNoArguments:
      begin_call(std::move(head.name), events);
      events.push_back({Kind::kArguments, "{}", calls_ - 1, {}, {}});
      events.push_back({Kind::kCallEnd, {}, calls_ - 1, {}, {}});
      state_ = State::kCallTail;
      open_object_ = false;
      break;
  }
  take(head.end);
  return true;
}

bool AnswerParser::arguments(Events& events) {
  size_t end = 0;
  bool closed = false;
  while (end < pending_.size() && !closed) {
    const char c = pending_[end];
    if (in_string_) {
      if (!escaped_ && c == '"') in_string_ = false;
      escaped_ = !escaped_ && c == '\\';
    } else if (c == '<') {
      break;  // no JSON: the closing tag of a call that was not finished
    } else if (c == '"') {
      in_string_ = true;
    } else if (c == '{' || c == '[') {
      ++depth_;
    } else if (c == '}' || c == ']') {
      closed = --depth_ == 0;
    }
    ++end;
  }
  emit(Kind::kArguments, std::string_view(pending_).substr(0, end), events);
  const bool over = closed || end < pending_.size();
  take(end);
  if (!over) return false;
  events.push_back({Kind::kCallEnd, {}, calls_ - 1, {}, {}});
  state_ = State::kCallTail;
  return true;
}

bool AnswerParser::call_tail() {
  const std::string_view tag = kToolCallEnd;
  const std::string_view text = pending_;
  const size_t space = std::min(text.find_first_not_of(kSpace), text.size());
  const std::string_view rest = text.substr(space, tag.size());
  if (space <= kMostSpace) {
    if (open_object_ && rest.starts_with('}')) {
      open_object_ = false;
      take(space + 1);
      return true;
    }
    if (rest.size() < tag.size() && tag.starts_with(rest)) return false;
    if (rest == tag) take(space + tag.size());
  }
  state_ = State::kContent;  // something else than the tag is text
  skip_space_ = true;
  return true;
}

void AnswerParser::finish(Events& events) {
  switch (state_) {
    case State::kThought:
      emit(Kind::kReasoning, pending_, events);
      thought_bytes_ = fed_;
      break;
    case State::kCallHead:
      if (!calls_only_) emit(Kind::kContent, call_opening_ + pending_, events);
      break;
    case State::kArguments:  // cut off
      events.push_back({Kind::kCallEnd, {}, calls_ - 1, {}, {}});
      break;
    case State::kCallTail:
      break;
    default:
      if (!calls_only_) emit(Kind::kContent, pending_, events);
  }
  pending_.clear();
}

}  // namespace orthrus
