#include "exec/processes/launch_environment.h"

#include <gtest/gtest.h>

#include <map>

namespace harpe::processes {
namespace {

using Variables = std::map<std::string, std::string>;

auto find_in(const Variables& variables) {
  return find_launch([&](const std::string& name) -> std::optional<std::string> {
    const auto found = variables.find(name);
    if (found == variables.end()) return std::nullopt;
    return found->second;
  });
}

void expect_launch(const Variables& variables, const Launch& launch) {
  const auto found = find_in(variables);
  ASSERT_TRUE(found.ok()) << found.error().variable << " " << found.error().reason;
  ASSERT_TRUE(found->has_value());
  EXPECT_EQ(**found, launch);
}

void expect_error(const Variables& variables, const std::string& variable,
                  const std::string& reason) {
  const auto found = find_in(variables);
  ASSERT_FALSE(found.ok());
  EXPECT_EQ(found.error().variable, variable);
  EXPECT_EQ(found.error().reason, reason);
}

const Variables kTorchrun = {{"RANK", "3"},
                             {"WORLD_SIZE", "8"},
                             {"LOCAL_RANK", "1"},
                             {"MASTER_ADDR", "127.0.0.1"},
                             {"MASTER_PORT", "29500"}};

TEST(Launch, is_none_where_nobody_launched) {
  const auto found = find_in({{"HOME", "/"}});
  ASSERT_TRUE(found.ok());
  EXPECT_FALSE(found->has_value());
}

TEST(Launch, is_what_torchrun_says) {
  expect_launch(
      kTorchrun,
      {.rank = 3, .ranks = 8, .local_rank = 1, .local_ranks = 8, .address = "127.0.0.1:29500"});
  Variables agent = kTorchrun;
  agent["TORCHELASTIC_USE_AGENT_STORE"] = "True";
  expect_launch(
      agent,
      {.rank = 3, .ranks = 8, .local_rank = 1, .local_ranks = 8, .address = "127.0.0.1:29501"});
}

TEST(Launch, meets_where_the_user_says) {
  Variables elsewhere = kTorchrun;
  elsewhere.erase("MASTER_ADDR");
  elsewhere["HARPE_ADDRESS"] = "unix:@here";
  expect_launch(
      elsewhere,
      {.rank = 3, .ranks = 8, .local_rank = 1, .local_ranks = 8, .address = "unix:@here"});
}

TEST(Launch, says_how_many_processes_each_host_has) {
  Variables hosts = kTorchrun;
  hosts["RANK"] = "5";
  hosts["LOCAL_WORLD_SIZE"] = "4";
  hosts["HARPE_INTERFACE"] = "eth1";
  hosts["HARPE_SECRET"] = "sesame";
  const Launch launch{.rank = 5,
                      .ranks = 8,
                      .local_rank = 1,
                      .local_ranks = 4,
                      .address = "127.0.0.1:29500",
                      .interface = "eth1",
                      .secret = "sesame"};
  expect_launch(hosts, launch);
  EXPECT_EQ(launch.hosts(), 2);
  EXPECT_EQ(launch.host(), 1);
  hosts["LOCAL_RANK"] = "2";
  expect_error(
      hosts, "LOCAL_WORLD_SIZE",
      "is 4, and process 5 of 8 is number 2 of its host: hosts must have equally many, one "
      "after the other");
}

TEST(Launch, is_what_open_mpi_says) {
  const Variables mpi = {{"OMPI_COMM_WORLD_RANK", "1"},
                         {"OMPI_COMM_WORLD_SIZE", "2"},
                         {"OMPI_COMM_WORLD_LOCAL_RANK", "1"},
                         {"PMIX_NAMESPACE", "17.1"}};
  expect_launch(mpi, {.rank = 1,
                      .ranks = 2,
                      .local_rank = 1,
                      .local_ranks = 2,
                      .address = "unix:@harpe-mpi-17.1",
                      .ranks_by = "OMPI_COMM_WORLD_SIZE",
                      .local_ranks_by = "OMPI_COMM_WORLD_LOCAL_SIZE"});
}

TEST(Launch, is_what_a_slurm_step_says_and_no_batch_script) {
  Variables slurm = {
      {"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "4"}, {"SLURM_LOCALID", "0"}, {"SLURM_JOB_ID", "9"}};
  const auto batch = find_in(slurm);
  ASSERT_TRUE(batch.ok());
  EXPECT_FALSE(batch->has_value());
  slurm["SLURM_STEP_ID"] = "2";
  expect_launch(slurm, {.rank = 0,
                        .ranks = 4,
                        .local_rank = 0,
                        .local_ranks = 4,
                        .address = "unix:@harpe-slurm-9-2",
                        .ranks_by = "SLURM_NTASKS",
                        .local_ranks_by = "SLURM_STEP_TASKS_PER_NODE"});
  slurm["SLURM_STEP_NUM_TASKS"] = "2";
  slurm["SLURM_STEP_TASKS_PER_NODE"] = "1(x2)";
  slurm["MASTER_ADDR"] = "node";
  slurm["MASTER_PORT"] = "5000";
  expect_launch(slurm, {.rank = 0,
                        .ranks = 2,
                        .local_rank = 0,
                        .local_ranks = 1,
                        .address = "node:5000",
                        .ranks_by = "SLURM_STEP_NUM_TASKS",
                        .local_ranks_by = "SLURM_STEP_TASKS_PER_NODE"});
}

TEST(Launch, with_variables_that_are_wrong_is_refused) {
  const auto with = [](const std::string& name, const std::string& value) {
    Variables variables = kTorchrun;
    variables[name] = value;
    return variables;
  };
  expect_error(with("RANK", "8"), "RANK", "is 8, and there are 8 ranks");
  expect_error(with("RANK", "-1"), "RANK", "is `-1`, which is no number");
  expect_error(with("LOCAL_RANK", "1x"), "LOCAL_RANK", "is `1x`, which is no number");
  expect_error(with("MASTER_PORT", "0"), "MASTER_PORT", "leaves no port to meet at");
  Variables without = kTorchrun;
  without.erase("RANK");
  expect_error(without, "RANK", "is not set");
  without = kTorchrun;
  without.erase("MASTER_ADDR");
  expect_error(without, "MASTER_ADDR", "is not set");
}

}  // namespace
}  // namespace harpe::processes
