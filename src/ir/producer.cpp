#include "ir/producer.h"

#include <limits>

#include "support/check.h"

namespace harpe {

std::optional<Producer> find_producer(const Program& program, const std::string& buffer,
                                      int before) {
  std::optional<Producer> last;
  int ordinal = 0;
  for (const Nest& nest : program.nests) {
    for (const Stmt& stmt : nest.stmts) {
      if (ordinal == before) return last;
      for (std::size_t i = 0; i < stmt.targets.size(); ++i) {
        if (stmt.targets[i].buffer != buffer) continue;
        last = Producer{.nest = &nest, .stmt = &stmt, .target = i, .ordinal = ordinal};
      }
      ++ordinal;
    }
  }
  return last;
}

Producer producer_of(const Program& program, const std::string& buffer) {
  const auto producer = find_producer(program, buffer, std::numeric_limits<int>::max());
  HP_CHECK(producer.has_value(), "no statement writes `" + buffer + "`");
  return *producer;
}

}  // namespace harpe
