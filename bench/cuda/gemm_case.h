#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "bench/cuda/draw.h"
#include "exec/cuda/kernels/gemm/device/gemm_config.h"

namespace harpe::bench {

// A K chunk of A, which arrives as one.
struct KChunkCut {
  std::int64_t k_begin = 0;
  std::int64_t k_count = 0;
};

// A row panel of A and C, with its K chunks in the order of use.
struct PanelCut {
  std::int64_t row_begin = 0;
  std::int64_t rows = 0;
  std::vector<KChunkCut> k_chunks;
  std::int64_t group = 0;  // an index into GemmCase::groups
};

// A GEMM problem: its shape and types, and how it is cut.
struct GemmCase {
  std::string name;
  std::int64_t m = 0;
  std::int64_t n = 0;
  std::int64_t k = 0;
  device::Element in = device::Element::BF16;
  device::Element out = device::Element::BF16;
  device::GemmLayout layout = device::GemmLayout::NMajor;
  bool m_major = false;  // A is stored as its transpose
  device::GemmStore store = device::GemmStore::Bulk;
  std::vector<PanelCut> panels;            // in the order of use
  bool packed = false;                     // rows without padding between them
  std::vector<device::GemmMap> maps = {};  // applied to C
  std::int64_t groups = 0;  // number of B's, in one array; 0: a GEMM that is not grouped

  [[nodiscard]] std::size_t k_chunks() const {
    std::size_t count = 0;
    for (const PanelCut& panel : panels) count += panel.k_chunks.size();
    return count;
  }
};

// One panel with one K chunk.
[[nodiscard]] std::vector<PanelCut> uncut(std::int64_t m, std::int64_t k);
// Panels of one K chunk each and of as many rows, or one row more or less; none is empty.
[[nodiscard]] std::vector<PanelCut> equal_panels(std::int64_t m, std::int64_t k, int panels);
// Panels of any rows in any order, with K chunks of any multiple of 64 columns in any order. Panels
// begin at multiples of `row_unit`.
[[nodiscard]] std::vector<PanelCut> random_cuts(Draw& draw, std::int64_t m, std::int64_t k,
                                                int most_panels, int most_k_chunks,
                                                std::int64_t row_unit = 1);
// The same for a variant, which may need fewer rows, K chunks in order, or panels of one chunk,
// which then get random groups.
void cut_at_random(Draw& draw, const device::GemmConfig& config, GemmCase& what, int most_panels,
                   int most_k_chunks);
// The next number of columns that a variant's store supports.
[[nodiscard]] std::int64_t columns_for(const device::GemmConfig& config, std::int64_t n);

// The next depth that the variant supports.
[[nodiscard]] std::int64_t depth_for(const device::GemmConfig& config, std::int64_t k);

// The maps of a variant.
[[nodiscard]] std::vector<device::GemmMap> maps_of(const device::GemmConfig& config);

// Types, layout and maps of the variant; sizes up to `most`, including odd ones.
[[nodiscard]] GemmCase random_case(Draw& draw, const device::GemmConfig& config, std::int64_t most);

// "128x256x64s4c2 nk bf16->f32 add"
[[nodiscard]] std::string describe(const device::GemmConfig& config);
[[nodiscard]] std::string_view name_of(device::Element element);

}  // namespace harpe::bench
