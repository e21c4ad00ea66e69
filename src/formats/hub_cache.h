#pragma once

#include <string>
#include <string_view>

#include "formats/hub_name.h"

namespace orthrus {

// The cache that Python's huggingface_hub keeps, which `pull` shares: a folder models--OWNER--NAME
// a repository, in it blobs/ETAG (contents), refs/REVISION (a commit's hash) and
// snapshots/COMMIT/PATH (relative links to blobs).

/// $HF_HOME, or huggingface/ in the user's cache folder.
std::string hub_home();

/// $HF_HUB_CACHE, else $HUGGINGFACE_HUB_CACHE, else hub/ in hub_home().
std::string hub_cache_folder();

/// "~" and "~/..." with the home directory in its place, as the hub's Python package has it.
std::string expand_home(const std::string& path);

/// Name of a repository's folder: "models--OWNER--NAME".
std::string hub_folder_name(const std::string& repository);

/// The commit that refs/REVISION names, or "" where there is none. Error(kInput) for a file that
/// holds something else.
std::string hub_cached_commit(const std::string& repository, const std::string& revision);

/// Where a snapshot's files lie, whether they are there or not.
std::string hub_snapshot_folder(const std::string& repository, const std::string& commit);

/// What `-m OWNER/NAME[:QUANT]` opens: the snapshot of revision main where it is a whole model or
/// adapter, else the GGUF file in it that choose_gguf() takes. "" where it is not in the cache.
/// Never asks the network.
std::string find_hub_model(const HubName& name);

}  // namespace orthrus
