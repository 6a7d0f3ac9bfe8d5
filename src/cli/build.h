#pragma once

#include <string>
#include <string_view>

namespace harpe::cli {

// "0.1.0+3fa29c41d7e0": a version and which build of it this is, equal for equal binaries.
// Schedules that one build found are not those that another would. The version alone where the
// linker left no build id.
[[nodiscard]] std::string identify_build(std::string_view version);

}  // namespace harpe::cli
