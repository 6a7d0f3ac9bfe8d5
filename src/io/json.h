#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

namespace harpe {

// Members keep the order in which they are added, so that equal results are equal texts. A .cpp
// file that makes or reads values includes <nlohmann/json.hpp> itself.
using Json = nlohmann::ordered_json;

// A text as UTF-8, other bytes replaced by U+FFFD; numbers that are not finite are null. Indented
// by two, without a newline at the end; or all on one line.
[[nodiscard]] std::string print_json(const Json& json);
[[nodiscard]] std::string print_json_line(const Json& json);

}  // namespace harpe
