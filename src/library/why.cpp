#include "library/why.h"

#include "report/page_text.h"

namespace harpe::library {
namespace {

// The fastest other schedule that could have been chosen; null if there is none.
const Evaluated* find_runner_up(const SearchResult& result) {
  const Evaluated* next = nullptr;
  for (const auto* const list : {&result.top, &result.baselines}) {
    for (const Evaluated& one : *list) {
      if (!one.excluded.empty() || one.form == result.top.front().form) continue;
      if (next == nullptr || one.time() < next->time()) next = &one;
    }
  }
  return next;
}

v1::Why explain_auto(const AutoForm& choice) {
  if (choice.search) return explain_search(*choice.search, choice.machine);
  v1::Why why;
  if (choice.known_since) {
    why.origin = v1::Origin::Cache;
    why.text = "an equal search for " + choice.machine + " found it on " + *choice.known_since +
               ", and the cache kept it";
  } else {
    why.origin = v1::Origin::Rule;
    why.text = "the operator's rule chose it, since no search was possible";
  }
  return why;
}

}  // namespace

v1::Why explain_search(const SearchResult& result, const std::string& machine) {
  const Evaluated& best = result.top.front();
  v1::Why why{.origin = v1::Origin::Search,
              .text = "the best of " + page::print_count(result.candidates) + " schedules for " +
                      machine + ", " + page::print_time(best.time()) + " by prediction",
              .candidates = result.candidates,
              .unique = result.unique,
              .feasible = result.feasible,
              .simulated = result.simulated,
              .search_s = result.seconds,
              .runner_up = {},
              .runner_up_us = 0,
              .refits = {}};
  if (!result.complete) why.text += "; the search ended before it was done";
  if (const Evaluated* const next = find_runner_up(result)) {
    why.runner_up = next->label;
    why.runner_up_us = next->time().microseconds();
    const std::string ratio = page::print_figure(next->time().seconds() / best.time().seconds());
    why.text += next->time() < best.time()
                    ? "; `" + next->label + "`, which has no name, is predicted to take " + ratio +
                          " of that, within the error of predictions"
                    : "; the next, `" + next->label + "`, takes " + ratio + " times as long";
  }
  return why;
}

v1::Why explain_choice(const v1::Question& question, const Scheduled& scheduled) {
  if (scheduled.choice) return explain_auto(*scheduled.choice);
  v1::Why why;
  why.text =
      "the question " +
      std::string(scheduled.form.name == question.schedule ? "names it" : "gives its text or file");
  return why;
}

}  // namespace harpe::library
