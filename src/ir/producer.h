#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include "ir/program.h"

namespace harpe {

// A statement that writes a buffer, and which of its targets the buffer is.
struct Producer {
  const Nest* nest = nullptr;
  const Stmt* stmt = nullptr;
  std::size_t target = 0;
  int ordinal = 0;  // of the statement in the program
};

// The last of them.
[[nodiscard]] Producer producer_of(const Program& program, const std::string& buffer);
// The last before the statement with this ordinal; none if the buffer is an input there.
[[nodiscard]] std::optional<Producer> find_producer(const Program& program,
                                                    const std::string& buffer, int before);

}  // namespace harpe
