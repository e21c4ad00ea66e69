#include "grammar/grammar.h"

#include <algorithm>

#include "grammar/local_masks.h"

namespace orthrus {

Grammar::Grammar(Tables tables)
    : tables_(std::move(tables)), classes_(size_t{tables_.byte_classes[255]} + 1) {}

Grammar::~Grammar() = default;

Grammar::State Grammar::state(uint32_t index) const {
  const Tables::Row& row = tables_.rows[index];
  const Tables::Row before = index == 0 ? Tables::Row{} : tables_.rows[index - 1];
  State state;
  state.edges =
      std::span(tables_.edges).subspan(before.edges_end, row.edges_end - before.edges_end);
  state.calls =
      std::span(tables_.calls).subspan(before.calls_end, row.calls_end - before.calls_end);
  state.depth_needed = row.depth_needed;
  state.final = row.final;
  return state;
}

std::shared_ptr<grammar::LocalMasks> Grammar::local_masks(
    const std::shared_ptr<const TokenTrie>& tokens) const {
  std::lock_guard lock(mutex_);
  std::erase_if(local_masks_, [](const auto& known) { return known.first.expired(); });
  for (const auto& [known, masks] : local_masks_) {
    if (known.lock() == tokens) return masks;
  }
  auto masks = std::make_shared<grammar::LocalMasks>(*this, *tokens);
  local_masks_.emplace_back(tokens, masks);
  return masks;
}

}  // namespace orthrus
