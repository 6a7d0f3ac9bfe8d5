#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include "ir/program.h"

namespace harpe {

// A statement that writes a buffer, and the index of the buffer among its targets.
struct Producer {
  const Nest* nest = nullptr;
  const Stmt* stmt = nullptr;
  std::size_t target = 0;
  int ordinal = 0;  // the statement's index in the program
};

// The last one that writes the buffer.
[[nodiscard]] Producer producer_of(const Program& program, const std::string& buffer);
// The last one before the statement with this ordinal; none if the buffer is still an input there.
[[nodiscard]] std::optional<Producer> find_producer(const Program& program,
                                                    const std::string& buffer, int before);

}  // namespace harpe
