#include "exec/cuda/jit/kernel_source.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

#include "exec/cuda/kernels/shipped_variants.h"

namespace harpe::cuda {
namespace {

KernelVariant variant_of(std::string source) {
  return {.name = "one", .family = "test", .tile = "", .source = std::move(source)};
}

const std::vector<HeaderText> kHeaders = {
    {"a.cuh", "#include \"b.cuh\"\nint a;\n"},
    {"b.cuh", "  #  include  \"c.cuh\"\n"},
    {"c.cuh", "#pragma once\n#include \"a.cuh\""},
    {"unused.cuh", ""},
};

TEST(KernelSource, holds_what_is_included_once_in_order_of_first_inclusion) {
  const auto source =
      assemble(variant_of("#include <cstdint>\n// #include \"no\"\n#include \"a.cuh\""), kHeaders);
  ASSERT_TRUE(source.ok());
  EXPECT_EQ(source->headers, (std::vector<HeaderText>{kHeaders[0], kHeaders[1], kHeaders[2]}));
}

TEST(KernelSource, names_an_include_that_is_no_header_of_device_code) {
  const auto source = assemble(variant_of("#include \"a.cuh\"\n#include \"d.cuh\""), kHeaders);
  ASSERT_FALSE(source.ok());
  EXPECT_EQ(source.error().code, DiagCode::G010);
  EXPECT_EQ(render_message(source.error()),
            "`one` includes `d.cuh`, which is no header of device code");
}

TEST(KernelSource, prints_differently_where_texts_are_cut_differently) {
  const KernelSource one{.name = "k", .text = "ab", .headers = {{"h", "c"}}};
  const KernelSource other{.name = "k", .text = "a", .headers = {{"h", "bc"}}};
  EXPECT_NE(print(one), print(other));
}

TEST(DeviceHeaders, are_named_by_their_paths_and_find_each_other) {
  for (const HeaderText& header : device_headers()) {
    // The layout that kernels and the transport share belongs to the transport.
    const bool is_shared = header.name == "transport/descriptor_layout.h";
    EXPECT_TRUE(is_shared || header.name.find("/device/") != std::string::npos) << header.name;
    const auto source = assemble(variant_of(std::string(header.text)), device_headers());
    EXPECT_TRUE(source.ok()) << render(source.error());
  }
}

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
