#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <string>

#include "support/diag.h"

namespace harpe::golden {
namespace {

namespace fs = std::filesystem;

// Diagnostics that no command line can provoke, each with its test. Verifier findings need a wrong
// plan, which the plan file's hash excludes; the others are refusals of library calls.
const std::map<std::string, std::string> kCoveredElsewhere = {
    {"P011", "tests/unit/ir/program_test.cpp"},
    {"P201", "tests/unit/ir/interpret_test.cpp"},
    {"P202", "tests/unit/ir/interpret_test.cpp"},
    {"P203", "tests/unit/ir/interpret_test.cpp"},
    {"P204", "tests/unit/ir/interpret_test.cpp"},
    {"P205", "tests/unit/ir/interpret_test.cpp"},
    {"G041", "tests/unit/cuda/gemm_test.cpp"},
    {"G042", "tests/unit/cuda/gemm_test.cpp"},
    {"G060", "tests/unit/cuda/attention_plan_test.cpp"},
    {"G062", "tests/unit/cuda/attention_plan_test.cpp"},
    {"G063", "tests/unit/cuda/attention_plan_test.cpp"},
    {"G070", "tests/unit/cuda/executor_checks_test.cpp"},
    {"G071", "tests/unit/cuda/peers_test.cpp"},
    {"G072", "tests/unit/cuda/actions_test.cpp"},
    {"G073", "tests/unit/cuda/peers_test.cpp"},
    {"G074", "tests/unit/cuda/executor_checks_test.cpp"},
    {"G075", "tests/unit/cuda/actions_test.cpp"},
    {"G076", "tests/unit/cuda/device_test.cpp"},
    {"X016", "tests/multihost/executor/refusals_test.cpp"},
    {"X017", "tests/multihost/executor/refusals_test.cpp"},
    {"G090", "tests/unit/cuda/executor_checks_test.cpp"},
    {"G091", "tests/unit/cuda/executor_checks_test.cpp"},
    {"N001", "tests/unit/transport/fabric_test.cpp"},
    {"N002", "tests/unit/transport/fabric_test.cpp"},
    {"N003", "tests/unit/transport/ordering_test.cpp"},
    {"N010", "tests/unit/transport/rendezvous_test.cpp"},
    {"N011", "tests/unit/transport/rendezvous_test.cpp"},
    {"N012", "tests/unit/transport/rendezvous_test.cpp"},
    {"N013", "tests/unit/transport/rendezvous_test.cpp"},
    {"N014", "tests/unit/transport/rendezvous_test.cpp"},
    {"N015", "tests/unit/processes/process_group_test.cpp"},
    {"N017", "tests/unit/processes/process_group_test.cpp"},
    {"N020", "tests/unit/transport/sender_test.cpp"},
    {"N021", "tests/unit/transport/fabric_test.cpp"},
    {"N022", "tests/unit/transport/sender_test.cpp"},
    {"I310", "tests/unit/library/run_test.cpp"},
    {"I412", "tests/unit/search/cache_folder_test.cpp"},
    {"M101", "tests/unit/machine/mesh_test.cpp"},
    {"U133", "tests/unit/compile/machines_test.cpp"},
    {"S010", "tests/unit/schedule/primitive_test.cpp"},
    {"S027", "tests/unit/schedule/source_file_test.cpp"},
    {"S601", "tests/unit/schedule/named_test.cpp"},
    {"S705", "tests/golden/tune_budget.comm"},
    {"V106", "tests/unit/plan/refusals_test.cpp"},
    {"V108", "tests/unit/plan/launch_refusals_test.cpp"},
    {"V109", "tests/unit/plan/launch_refusals_test.cpp"},
    {"V201", "tests/unit/verify/model_test.cpp"},
    {"V203", "tests/unit/verify/model_test.cpp"},
    {"V204", "tests/unit/verify/structure_test.cpp"},
    {"V205", "tests/unit/verify/structure_test.cpp"},
    {"V206", "tests/unit/verify/structure_test.cpp"},
    {"V208", "tests/unit/verify/memory_test.cpp"},
    {"V210", "tests/unit/verify/memory_test.cpp"},
    {"V211", "tests/unit/verify/structure_test.cpp"},
    {"V212", "tests/unit/verify/structure_test.cpp"},
    {"V213", "tests/unit/verify/execution_test.cpp"},
    {"V214", "tests/unit/verify/memory_test.cpp"},
    {"V215", "tests/unit/verify/routes_test.cpp"},
    {"V220", "tests/unit/verify/structure_test.cpp"},
    {"V221", "tests/unit/verify/structure_test.cpp"},
    {"V222", "tests/unit/verify/structure_test.cpp"},
    {"V223", "tests/unit/verify/structure_test.cpp"},
    {"V224", "tests/unit/verify/structure_test.cpp"},
    {"V225", "tests/unit/verify/groups_test.cpp"},
    {"V226", "tests/unit/verify/structure_test.cpp"},
    {"V227", "tests/unit/verify/structure_test.cpp"},
    {"V228", "tests/unit/verify/structure_test.cpp"},
    {"V229", "tests/unit/verify/structure_test.cpp"},
    {"V230", "tests/unit/verify/structure_test.cpp"},
    {"V231", "tests/unit/verify/groups_test.cpp"},
    {"V232", "tests/unit/verify/groups_test.cpp"},
    {"V233", "tests/unit/verify/structure_test.cpp"},
    {"V240", "tests/unit/verify/groups_test.cpp"},
    {"V241", "tests/unit/verify/groups_test.cpp"},
    {"V242", "tests/unit/verify/groups_test.cpp"},
    {"V402", "tests/unit/verify/races_test.cpp"},
    {"V403", "tests/unit/verify/races_test.cpp"},
    {"V406", "tests/unit/verify/races_test.cpp"},
    {"V502", "tests/unit/verify/execution_test.cpp"},
    {"V503", "tests/unit/verify/execution_test.cpp"},
    {"V504", "tests/unit/verify/execution_test.cpp"},
    {"V505", "tests/unit/verify/execution_test.cpp"},
    {"V506", "tests/unit/verify/execution_test.cpp"},
    {"V507", "tests/unit/verify/execution_test.cpp"},
    {"V508", "tests/unit/verify/execution_test.cpp"},
    {"V509", "tests/unit/verify/execution_test.cpp"},
    {"V510", "tests/unit/verify/execution_test.cpp"},
    {"V511", "tests/unit/verify/execution_test.cpp"},
    {"V512", "tests/unit/verify/execution_test.cpp"},
    {"V513", "tests/unit/verify/execution_test.cpp"},
    {"V514", "tests/unit/verify/routes_test.cpp"},
    {"V520", "tests/unit/verify/execution_test.cpp"},
    {"V521", "tests/unit/verify/execution_test.cpp"},
    {"V522", "tests/unit/verify/execution_test.cpp"},
    {"V523", "tests/unit/verify/execution_test.cpp"},
    {"V524", "tests/unit/verify/execution_test.cpp"},
    {"V701", "tests/property/launches/planted_faults_test.cpp"},
    {"V702", "tests/property/launches/planted_faults_test.cpp"},
    {"V704", "tests/property/launches/planted_faults_test.cpp"},
    {"V705", "tests/property/launches/planted_faults_test.cpp"},
    {"V706", "tests/property/launches/planted_faults_test.cpp"},
    {"V707", "tests/property/launches/planted_faults_test.cpp"},
    {"V708", "tests/property/launches/planted_faults_test.cpp"},
    {"V709", "tests/property/launches/planted_faults_test.cpp"},
    {"V710", "tests/property/launches/planted_faults_test.cpp"},
    {"V711", "tests/property/launches/planted_faults_test.cpp"},
    {"V712", "tests/property/launches/planted_faults_test.cpp"},
    {"V720", "tests/property/launches/planted_faults_test.cpp"},
    {"V721", "tests/property/launches/planted_faults_test.cpp"},
    {"V722", "tests/property/launches/planted_faults_test.cpp"},
    {"V730", "tests/property/launches/in_data_faults_test.cpp"},
    {"V740", "tests/property/launches/bounds_faults_test.cpp"},
    {"X002", "tests/unit/exec/refusals_test.cpp"},
    {"X003", "tests/unit/exec/refusals_test.cpp"},
    {"X004", "tests/unit/exec/refusals_test.cpp"},
    {"X005", "tests/unit/exec/refusals_test.cpp"},
    {"X006", "tests/unit/exec/refusals_test.cpp"},
    {"X007", "tests/unit/exec/refusals_test.cpp"},
    {"X008", "tests/unit/exec/refusals_test.cpp"},
    {"X010", "tests/unit/exec/refusals_test.cpp"},
    {"G004", "tests/unit/nvrtc/nvrtc_test.cpp"},
    {"G005", "tests/unit/cuda/device_test.cpp"},
    {"G006", "tests/unit/cuda/device_test.cpp"},
    {"G007", "tests/unit/cuda/device_test.cpp"},
    {"G008", "tests/unit/cuda/device_test.cpp"},
    {"G010", "tests/unit/cuda/kernel_source_test.cpp"},
    {"G011", "tests/unit/cuda/kernel_cache_test.cpp"},
    {"G030", "tests/unit/cuda/resources_test.cpp"},
    {"G031", "tests/unit/cuda/resources_test.cpp"},
    {"G032", "tests/unit/cuda/resources_test.cpp"},
    {"G033", "tests/unit/cuda/resources_test.cpp"},
    {"G034", "tests/unit/cuda/resources_test.cpp"},
    {"G035", "tests/unit/cuda/resources_test.cpp"},
    {"G037", "tests/unit/cuda/resources_test.cpp"},
    {"G036", "tests/unit/cuda/resources_test.cpp"},
    {"G080", "tests/unit/cuda/libraries_test.cpp"},
    {"G082", "tests/unit/cuda/communicators_test.cpp"},
    {"G083", "tests/unit/cuda/leaves_test.cpp"},
    {"G084", "tests/unit/cuda/leaves_test.cpp"},
    {"G092", "tests/unit/cuda/bind_test.cpp"},
    {"I504", "tests/unit/lower/refusals_test.cpp"},
    {"I505", "tests/unit/lower/refusals_test.cpp"},
    {"F224", "tests/unit/lower/routes_test.cpp"},
    {"F302", "tests/unit/lower/refusals_test.cpp"},
    {"F306", "tests/unit/lower/routes_test.cpp"},
};

std::string read(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

// The codes that some `fail_*.comm` shows: "error[S102]".
std::set<std::string> codes_in_goldens() {
  constexpr std::string_view kMark = "error[";
  std::set<std::string> codes;
  const fs::path root = fs::path(HARPE_SOURCE_DIR) / "tests" / "golden";
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(root)) {
    if (entry.path().extension() != ".comm" ||
        !entry.path().filename().string().starts_with("fail_")) {
      continue;
    }
    const std::string text = read(entry.path());
    for (std::size_t at = text.find(kMark); at != std::string::npos;
         at = text.find(kMark, at + 1)) {
      codes.insert(text.substr(at + kMark.size(), text.find(']', at) - at - kMark.size()));
    }
  }
  return codes;
}

TEST(Diagnostics, are_each_shown_by_a_golden_or_provoked_by_a_named_test) {
  const std::set<std::string> shown = codes_in_goldens();
  for (const DiagInfo& diag : all_diags()) {
    const std::string code(diag.name);
    const auto exception = kCoveredElsewhere.find(code);
    if (exception == kCoveredElsewhere.end()) {
      EXPECT_TRUE(shown.contains(code)) << code << " has no fail_*.comm: " << diag.message;
      continue;
    }
    EXPECT_FALSE(shown.contains(code)) << code << " is in a golden: no exception is needed";
    const std::string test = read(fs::path(HARPE_SOURCE_DIR) / exception->second);
    EXPECT_NE(test.find(code), std::string::npos)
        << code << " is said to be covered by " << exception->second;
  }
}

TEST(Diagnostics, that_are_excepted_exist) {
  for (const auto& [code, test] : kCoveredElsewhere) {
    EXPECT_TRUE(find_diag(code).has_value()) << code;
  }
}

}  // namespace
}  // namespace harpe::golden
