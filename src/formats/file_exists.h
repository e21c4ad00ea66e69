#pragma once

#include <string>

namespace orthrus {

/// Whether there is something at `path`. False only where there is nothing: a link that leads
/// nowhere or in a circle, and a folder that may not be searched, are an Error(kInput), so that an
/// optional file is never taken for absent because it cannot be read.
bool file_exists(const std::string& path);

}  // namespace orthrus
