#include "io/json.h"

#include <nlohmann/json.hpp>

namespace harpe {
namespace {

constexpr int kOneLine = -1;

std::string dump(const Json& json, int indent) {
  return json.dump(indent, ' ', false, Json::error_handler_t::replace);
}

}  // namespace

std::string print_json(const Json& json) { return dump(json, 2); }

std::string print_json_line(const Json& json) { return dump(json, kOneLine); }

}  // namespace harpe
