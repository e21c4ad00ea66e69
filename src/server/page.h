#pragma once

#include <span>
#include <string_view>

namespace orthrus {

/// A file of the chat page, which is part of the program (src/server/page/).
struct PageFile {
  std::string_view path;          ///< of the request: "/" or "/page/NAME"
  std::string_view content_type;  ///< with its charset
  std::string_view etag;          ///< changes with the content; with the quotes of the header
  std::string_view body;
};

/// All of them; they last as long as the program.
std::span<const PageFile> page_files();

/// The Content-Security-Policy that every file of the page is sent with: nothing but the page's own
/// files, no script or style in its text, and no text that becomes markup.
inline constexpr std::string_view kPageSecurityPolicy =
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for "
    "'script'; "
    "trusted-types 'none'";

}  // namespace orthrus
