#pragma once

#include <string>
#include <string_view>

namespace harpe {

// "0.1.0+3fa29c41d7e0": a version and the build id of the program or shared library that contains
// this code, equal for equal binaries. Different builds may find different schedules. The version
// alone if the linker left no build id.
[[nodiscard]] std::string identify_build(std::string_view version);

}  // namespace harpe
