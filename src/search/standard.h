#pragma once

#include <optional>
#include <string>

#include "search/search.h"

namespace harpe {

// Parts beyond the mesh's axes: more make more candidates than a search of a second can look at.
[[nodiscard]] int cuts_for(const Mesh& mesh, const SearchOptions& options);

// The form whose homes are the operator's own: that of its first schedule.
[[nodiscard]] std::optional<NormalForm> standard_form(const std::string& family,
                                                      const Program& program, const Mesh& mesh);

// S703 where there is no such form.
[[nodiscard]] Diag no_homes(const Program& program);

}  // namespace harpe
