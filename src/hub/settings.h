#pragma once

#include <string>

namespace orthrus {

/// How to reach the hub, from the environment variables of Hugging Face's own tools.
struct HubSettings {
  std::string endpoint;      ///< $HF_ENDPOINT without a slash at its end, or the public hub
  std::string token;         ///< "" where there is none
  bool offline = false;      ///< $HF_HUB_OFFLINE
  long stall_seconds = 30;   ///< $HF_HUB_DOWNLOAD_TIMEOUT: without a byte, a connection is given up
  std::string certificates;  ///< $SSL_CERT_FILE or $CURL_CA_BUNDLE: "" for the system's
};

/// Reads them. The token is $HF_TOKEN, else the file of `hf auth login` ($HF_TOKEN_PATH, or token
/// in hub_home()); $HF_HUB_DISABLE_IMPLICIT_TOKEN leaves that file unread. Error(kUsage) where a
/// variable holds what it cannot.
HubSettings hub_settings();

}  // namespace orthrus
