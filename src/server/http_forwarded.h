#pragma once

#include <string>
#include <unordered_set>
#include <vector>

#include "server/http_answer.h"

namespace orthrus {

/// Whose request it is that a proxy passes on: X-Forwarded-For, which each proxy adds the address
/// of its own peer to. Of anybody else the header says what he likes.
class HttpForwarded {
 public:
  /// `trusted`: addresses of proxies; "*": everyone. Error(kUsage) for another text.
  explicit HttpForwarded(const std::vector<std::string>& trusted);

  /// The last address that no trusted proxy has (the first one, where all do); that of the peer,
  /// where it is no trusted proxy or what it sent is malformed.
  std::string client(const std::string& peer, const HttpHeaders& headers) const;

 private:
  bool trusts(const std::string& address) const { return everyone_ || trusted_.contains(address); }

  bool everyone_ = false;
  std::unordered_set<std::string> trusted_;
};

}  // namespace orthrus
