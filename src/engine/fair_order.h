#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace orthrus {

/// A request as the order of service sees it.
struct Claim {
  std::string client;    ///< whose it is: API key, else address
  int priority = 0;      ///< smaller first, as vLLM has it
  uint64_t arrival = 0;  ///< counts up
};

/// The order in which requests are served: by priority; among equals the clients take turns, each
/// with its oldest request first, the client whose oldest came first beginning. So one client's
/// flood does not delay another's request by more than its own turn. Indices into `claims`.
std::vector<size_t> fair_order(const std::vector<const Claim*>& claims);

}  // namespace orthrus
