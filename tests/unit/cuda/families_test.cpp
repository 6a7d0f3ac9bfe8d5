#include <gtest/gtest.h>

#include <set>

#include "exec/cuda/jit/kernel_source.h"
#include "exec/cuda/kernels/shipped_variants.h"

namespace harpe::cuda {
namespace {

TEST(KernelFamilies, ship_variants_whose_headers_are_embedded) {
  std::set<std::string> names;
  for (const KernelVariant& variant : shipped_variants()) {
    EXPECT_TRUE(names.insert(variant.name).second) << variant.name;
    const auto source = assemble(variant, device_headers());
    EXPECT_TRUE(source.ok()) << render(source.error());
  }
  for (const char* name : {"plain_move", "plain_join_parts", "signal_raise"}) {
    EXPECT_TRUE(names.contains(name)) << name;
  }
}

}  // namespace
}  // namespace harpe::cuda
