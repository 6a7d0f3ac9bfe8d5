#include "support/check.h"

namespace harpe {

void raise_internal_error(const char* condition, const char* file, int line,
                          const std::string& detail) {
  throw InternalError(std::string(file) + ":" + std::to_string(line) + ": `" + condition +
                      "` does not hold: " + detail);
}

}  // namespace harpe
