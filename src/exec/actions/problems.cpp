#include "exec/actions/problems.h"

#include <array>
#include <utility>

namespace harpe {
namespace {

constexpr std::array<std::pair<std::string_view, Pointwise>, 7> kNames = {{
    {"silu", Pointwise::Silu},
    {"relu", Pointwise::Relu},
    {"gelu", Pointwise::Gelu},
    {"add", Pointwise::Add},
    {"mul", Pointwise::Mul},
    {"silu_mul", Pointwise::SiluMul},
    {"rms_scale", Pointwise::RmsScale},
}};

}  // namespace

std::optional<Pointwise> find_pointwise(std::string_view leaf) {
  for (const auto& [name, function] : kNames) {
    if (name == leaf) return function;
  }
  return std::nullopt;
}

}  // namespace harpe
