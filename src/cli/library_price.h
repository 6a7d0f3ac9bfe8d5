#pragma once

#include "cli/report.h"
#include "compile/library_price.h"

namespace harpe::cli {

// Where libraries are predicted to be faster, a row with both times that says what to do.
void add_libraries(const std::optional<LibraryPrice>& price, Rows& rows);
// The prediction; null where there is none.
[[nodiscard]] Json price_to_json(const std::optional<LibraryPrice>& price);

}  // namespace harpe::cli
