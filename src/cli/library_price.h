#pragma once

#include "cli/report.h"
#include "compile/library_price.h"

namespace harpe::cli {

// Adds a row with both times and a remedy if libraries are predicted to be faster.
void add_libraries(const std::optional<LibraryPrice>& price, Rows& rows);
// The prediction; null if there is none.
[[nodiscard]] Json price_to_json(const std::optional<LibraryPrice>& price);

}  // namespace harpe::cli
