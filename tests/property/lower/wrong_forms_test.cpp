#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "lower/lower.h"
#include "tests/property/lower/oracle.h"

// The examples, each damaged in one place. The damaged form is refused with the expected reason, or
// accepted if it is another legal schedule, as the model decides (tests/oracle/neg.py).
namespace harpe {
namespace {

using oracle::Record;

struct Case {
  std::string title;
  std::string example;
  std::vector<std::pair<std::string, std::string>> replace;  // every occurrence
  std::string drop;                                          // lines with this prefix
  std::string refusal;                                       // the full text; "" if accepted
};

std::string damage(std::string text, const Case& test) {
  for (const auto& [from, to] : test.replace) {
    HP_CHECK(text.find(from) != std::string::npos, "`" + from + "` is not in " + test.example);
    for (std::size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size()) {
      text.replace(at, from.size(), to);
    }
  }
  if (test.drop.empty()) return text;
  std::istringstream lines(text);
  std::string kept;
  for (std::string line; std::getline(lines, line);) {
    const std::size_t start = line.find_first_not_of(' ');
    if (line.compare(start, test.drop.size(), test.drop) != 0) kept += line + "\n";
  }
  HP_CHECK(kept.size() < text.size(), "no line starts with `" + test.drop + "`");
  return kept;
}

const std::vector<Case> kCases = {
    {"relay without a shift",
     "ring",
     {{" skew gpu", ""}},
     "",
     "error[F209]: relay of `K` over gpu: loop `k0` is not skewed by exactly these axes; use "
     "`direct`, or skew the loop over gpu"},
    {"relay with one slot",
     "ring",
     {{"depth 2", "depth 1"}},
     "",
     "error[F210]: relay of `K` over gpu has depth 1; it needs at least 2; set `depth 2`"},
    {"a remote operand never staged",
     "ring",
     {},
     "stage K",
     "error[F214]: operand `K` is not local at rank 0: block [0, 1, 0, 0, 0] of nest `fwd` is in "
     "none of its copies; stage `K` over the mesh axes it is placed on, at the loop that selects "
     "the block or above"},
    {"keys parallel, output not drained",
     "ring",
     {{"par q0 on gpu", "par k0 on gpu"}, {"for k0 skew gpu", "for q0 skew gpu"}},
     "",
     "error[F207]: output `O`: digit `k0` runs over gpu, but its home does not follow and no "
     "drain covers them; add `drain O over gpu …` or place the digit there"},
    {"a travelling sum that starts at its owner", "rs_ring", {{" + 1", ""}}, "", ""},
    {"partial sums never drained",
     "rs_ring",
     {},
     "drain",
     "error[F207]: output `C`: digit `c0` runs over gpu, but its home does not follow and no "
     "drain covers them; add `drain C over gpu …` or place the digit there"},
    {"a digit that does not fit the mesh",
     "ag_ring",
     {{"m0:8", "m0:4"}},
     "",
     "error[F111]: digit `m0` has extent 4, but mesh axes gpu hold 8 ranks; tile the axis by the "
     "number of ranks"},
    {"a mesh axis used twice by one home",
     "usp_ring4_uly2",
     {{"place Q[q0@ring, q1@uly]", "place Q[q0@ring, q1@ring]"}},
     "",
     "error[F112]: home of `Q` uses mesh axis `ring` twice"},
    {"a double ring whose outer skew is on the inner axis",
     "double_ring",
     {{"for k0 skew node", "for k0 skew gpu"}},
     "",
     "error[F209]: relay of `K` over node: loop `k0` is not skewed by exactly these axes; use "
     "`direct`, or skew the loop over node"},
    {"a double ring whose outer loop is not skewed",
     "double_ring",
     {{"for k0 skew node", "for k0"}},
     "",
     "error[F209]: relay of `K` over node: loop `k0` is not skewed by exactly these axes; use "
     "`direct`, or skew the loop over node"},
    {"relay in place of direct", "hybrid_gather_ring", {{"direct by dst", "relay by src"}}, "", ""},
    {"a reversed loop under a forward relay",
     "ring",
     {{"for k0 skew gpu", "for k0 skew gpu rev"}},
     "",
     "error[F209]: relay of `K` over gpu: loop `k0` runs in reverse; use `direct`, or skew the "
     "loop over gpu"},
    {"a fetch without a shift", "ag_fetch", {{"for m0 skew gpu", "for m0"}}, "", ""},
    {"heads parallel, output not returned",
     "ulysses",
     {},
     "drain O",
     "error[F207]: output `O`: digit `h0` runs over gpu, but its home does not follow and no "
     "drain covers them; add `drain O over gpu …` or place the digit there"},
    {"zigzag on queries alone", "ring_zigzag", {{"layout Skv zigzag(k0, kh)\n", "\n"}}, "", ""},
};

TEST(WrongForms, each_is_refused_with_its_reason_or_accepted_as_in_the_model) {
  const std::vector<Record> records = oracle::read_records("--examples");
  for (const Case& test : kCases) {
    const auto record = std::ranges::find(records, test.example, &Record::name);
    ASSERT_NE(record, records.end()) << test.example;
    const Checked<Plan> plan =
        lower(oracle::parse_program_text(record->program), oracle::parse_mesh_text(record->mesh),
              oracle::parse_form_text(damage(record->form, test)),
              {.space_time_only = true, .after_stage = {}});
    EXPECT_EQ(plan.ok() ? "" : render(plan.error()), test.refusal) << test.title;
  }
}

}  // namespace
}  // namespace harpe
