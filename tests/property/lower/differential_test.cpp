#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <map>
#include <optional>
#include <string>

#include "lower/lower.h"
#include "tests/property/lower/oracle.h"
#include "tests/support/internal_error.h"

// The lowering against the executable model: both accept and refuse the same forms and make the
// same transfers, and the lowering needs no more synchronization.
namespace harpe {
namespace {

using oracle::Record;
using oracle::Transfer;

struct Counts {
  int accepted = 0;
  int refused = 0;
  int beyond = 0;  // the model supports the program, the compiler does not yet
  oracle::Edges ours;
  oracle::Edges models;
};

// True if the compiler refuses the form as unsupported.
bool is_beyond(const Checked<Plan>& plan) {
  return !plan.ok() && info(plan.error().code).verdict == Verdict::Unsupported;
}

std::string describe(const Record& record) {
  return record.name + "\n" + record.mesh + "\n" + record.form;
}

std::string describe(const std::vector<Transfer>& transfers) {
  std::map<std::string, int> lines;
  for (const Transfer& transfer : transfers) {
    std::string line = transfer.buffer + " " + std::to_string(transfer.source) + " -> " +
                       std::to_string(transfer.destination) + " blocks";
    for (const std::int64_t block : transfer.blocks) line += " " + std::to_string(block);
    ++lines[line];
  }
  std::string text;
  for (const auto& [line, count] : lines) text += std::to_string(count) + "x " + line + "\n";
  return text;
}

void compare(const Record& record, Counts& counts) {
  const Program program = oracle::parse_program_text(record.program);
  const Checked<Plan> plan =
      lower(program, oracle::parse_mesh_text(record.mesh), oracle::parse_form_text(record.form),
            {.space_time_only = true, .after_stage = {}});
  if (is_beyond(plan)) {
    ++counts.beyond;
    return;
  }
  if (!plan.ok()) {
    ++counts.refused;
    EXPECT_FALSE(record.accepted) << render(plan.error()) << "\n" << describe(record);
    return;
  }
  ++counts.accepted;
  ASSERT_TRUE(record.accepted) << "the model: " << record.reason << "\n" << describe(record);
  const std::vector<Transfer> transfers = oracle::transfers_of(*plan);
  if (transfers != record.transfers) {
    ADD_FAILURE() << describe(record) << "\nours\n"
                  << describe(transfers) << "the model's\n"
                  << describe(record.transfers);
  }
  // Compiler and model order independent tasks of a queue differently, so a single form may need an
  // edge more or fewer.
  const oracle::Edges edges = oracle::edges_of(*plan);
  EXPECT_LE(edges.inner, 2 * record.syncs) << describe(record);
  counts.ours.inner += edges.inner;
  counts.ours.boundary += edges.boundary;
  counts.models.inner += record.syncs;
  counts.models.boundary += record.boundary;
}

Counts compare_all(const std::string& arguments) {
  Counts counts;
  for (const Record& record : oracle::read_records(arguments)) {
    const std::optional<std::string> broken =
        testing_support::internal_error_of([&] { compare(record, counts); });
    EXPECT_FALSE(broken) << *broken << "\n" << describe(record);
    if (testing::Test::HasFailure()) break;  // the first difference is the most useful
  }
  std::printf(
      "%s: %d accepted, %d refused, %d beyond the compiler; edges %lld + %lld at the "
      "boundary, in the model %lld + %lld\n",
      arguments.c_str(), counts.accepted, counts.refused, counts.beyond,
      static_cast<long long>(counts.ours.inner), static_cast<long long>(counts.ours.boundary),
      static_cast<long long>(counts.models.inner), static_cast<long long>(counts.models.boundary));
  EXPECT_LE(counts.ours.inner, counts.models.inner);
  // Boundary edges are not compared: the default lowering folds them into one barrier.
  return counts;
}

TEST(Differential, every_example_of_the_model_lowers_to_the_same_transfers) {
  const Counts counts = compare_all("--examples");
  EXPECT_EQ(counts.accepted, 30);
}

TEST(Differential, independently_drawn_forms_lower_as_in_the_model) {
  const Counts counts = compare_all("--fuzz 1700 --seed 11");
  EXPECT_EQ(counts.beyond, 0);
  EXPECT_GE(counts.accepted, 300);
  EXPECT_GE(counts.refused, 300);
}

TEST(Differential, sensible_forms_lower_as_in_the_model) {
  const Counts counts = compare_all("--tied 1500 --seed 12");
  EXPECT_EQ(counts.beyond, 0);
  EXPECT_GE(counts.accepted, 1500 / 3);
  EXPECT_GE(counts.refused, 100);
}

}  // namespace
}  // namespace harpe
