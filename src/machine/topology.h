#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace harpe {

// A named figure of a capability record; a bare word such as `off` is kept as text.
using TopologyValue = std::variant<std::int64_t, double, std::string>;

// One line of a capability record: `level gpu kind=nvswitch size=8 …`.
struct TopologyLine {
  std::string subject;  // "gpu", "level"
  std::string name;     // "h200", "node"
  std::vector<std::pair<std::string, TopologyValue>> figures;
  friend bool operator==(const TopologyLine&, const TopologyLine&) = default;
};

// What the hardware can do, as data (commir.md 2.2). The simulator and the search interpret it.
struct Topology {
  std::string name;
  std::vector<TopologyLine> lines;
  friend bool operator==(const Topology&, const Topology&) = default;
};

}  // namespace harpe
