#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "machine/figures.h"
#include "machine/machine.h"

namespace harpe {

// One line of a machine's text, bound to the value that it is read into or printed from.
struct Line {
  std::string head;  // "transport ce at nvlink"
  std::vector<Figure> figures;
  std::size_t keys = 0;  // leading figures that distinguish lines with the same head
  Provenance* from = nullptr;

  // "collective all_gather at nvlink ranks=8 bytes=64kib": unique within a machine.
  [[nodiscard]] std::string name() const;
};

[[nodiscard]] Line line_of(Processor& processor);
[[nodiscard]] Line line_of(MachineLevel& level);
[[nodiscard]] Line line_of(TransportRate& transport);
[[nodiscard]] Line line_of(CompletionSample& completion);
[[nodiscard]] Line line_of(CollectiveSample& collective);
[[nodiscard]] Line line_of(LeafRate& rate);
[[nodiscard]] Line line_of(LeafSample& sample);
[[nodiscard]] Line line_of(PredictionError& error);

// The lines of a machine in the order of its text. They refer to the machine.
[[nodiscard]] std::vector<Line> lines_of(Machine& machine);

// The transports that a schedule may name.
[[nodiscard]] std::span<const std::string_view> all_transport_names();

}  // namespace harpe
