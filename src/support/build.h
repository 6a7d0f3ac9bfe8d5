#pragma once

#include <string>
#include <string_view>

namespace harpe {

// "0.1.0+3fa29c41d7e0": a version and which build of it this is, equal for equal binaries: of the
// program or the shared library that this code is in.
// Schedules that one build found are not those that another would. The version alone where the
// linker left no build id.
[[nodiscard]] std::string identify_build(std::string_view version);

}  // namespace harpe
