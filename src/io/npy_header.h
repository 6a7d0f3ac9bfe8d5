#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace harpe {

// The dictionary at the start of a `.npy` file. `problem` is "" if and only if the other fields
// hold.
struct NpyHeader {
  std::string descr;  // "<f4"; for a structured type, its text as written
  bool fortran_order = false;
  std::vector<std::int64_t> shape;
  std::string problem;
};

// {'descr': '<f4', 'fortran_order': False, 'shape': (4, 128), }: each key once, in any order.
[[nodiscard]] NpyHeader parse_npy_header(std::string_view text);

}  // namespace harpe
