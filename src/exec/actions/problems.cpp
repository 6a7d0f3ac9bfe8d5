#include "exec/actions/problems.h"

#include <array>
#include <utility>

#include "leaves/leaf.h"

namespace harpe {
namespace {

constexpr std::array<std::pair<Leaf, Pointwise>, 7> kFunctions = {{
    {Leaf::Silu, Pointwise::Silu},
    {Leaf::Relu, Pointwise::Relu},
    {Leaf::Gelu, Pointwise::Gelu},
    {Leaf::Add, Pointwise::Add},
    {Leaf::Mul, Pointwise::Mul},
    {Leaf::SiluMul, Pointwise::SiluMul},
    {Leaf::RmsScale, Pointwise::RmsScale},
}};

}  // namespace

std::optional<Pointwise> find_pointwise(std::string_view leaf) {
  for (const auto& [computed, function] : kFunctions) {
    if (is_leaf(leaf, computed)) return function;
  }
  return std::nullopt;
}

}  // namespace harpe
