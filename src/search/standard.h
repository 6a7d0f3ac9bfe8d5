#pragma once

#include <optional>
#include <string>

#include "search/search.h"

namespace harpe {

// The number of parts beyond the mesh's axes. More parts make too many candidates for a search of
// about a second.
[[nodiscard]] int cuts_for(const Mesh& mesh, const SearchOptions& options);

// The form whose homes are the operator's own: that of its first schedule.
[[nodiscard]] std::optional<NormalForm> standard_form(const std::string& family,
                                                      const Program& program, const Mesh& mesh);

// S703 if there is no such form.
[[nodiscard]] Diag no_homes(const Program& program);

}  // namespace harpe
