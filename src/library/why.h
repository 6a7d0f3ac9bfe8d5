#pragma once

#include <optional>
#include <string>
#include <vector>

#include "compile/session.h"
#include "harpe/plan.h"
#include "search/search.h"

namespace harpe::library {

// Explains why a question's plan has its schedule.
[[nodiscard]] v1::Why explain_choice(const v1::Question& question, const Scheduled& scheduled);
[[nodiscard]] v1::Why explain_search(const SearchResult& result, const std::string& machine);

}  // namespace harpe::library
