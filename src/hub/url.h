#pragma once

#include <string>
#include <string_view>

namespace orthrus {

/// The text with everything but letters, digits and "-._~" as %XX; slashes too, unless kept.
std::string url_escape(std::string_view text, bool keep_slashes = false);

/// "https://host:443" of an absolute URL; "" where it is none of http or https.
std::string url_origin(const std::string& url);

/// The URL that a Location header means that came from `base`; "" where it means none.
std::string url_resolve(const std::string& base, const std::string& location);

/// For messages: without query and fragment, which hold the signatures of storage hosts.
std::string url_without_query(const std::string& url);

}  // namespace orthrus
