#pragma once

#include <string>
#include <string_view>

#include "support/diag.h"

namespace harpe {

// Files in a folder that any number of processes share, also over NFS. Nothing is locked: a file
// appears whole, by rename, or not at all; of two writers the last one wins.

// What a file is called until it is whole begins with this.
constexpr std::string_view kUnfinishedPrefix = ".writing-";

// Errors: I101.
[[nodiscard]] Checked<std::string> read_whole(const std::string& path);

// Flushed to where the folder is kept before it gets its name. Makes the folder where it is
// missing. Errors: I102.
[[nodiscard]] Checked<Ok> write_whole(const std::string& folder, const std::string& name,
                                      std::string_view text);

}  // namespace harpe
