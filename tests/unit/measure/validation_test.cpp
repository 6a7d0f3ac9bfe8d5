#include "measure/validation.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "compile/machines.h"
#include "tests/support/scratch.h"

namespace harpe {
namespace {

constexpr std::string_view kPeers =
    R"({"kind": "gemm", "m": 64, "n": 64, "k": 64, "us": 1.5}
{"kind": "ag_gemm", "name": "a", "M": 512, "N": 10240, "K": 8192, "nccl_us": 80.0}

{"kind": "gemm_rs", "M": 8192, "N": 8192, "K": 8192, "nccl_us": 580, "gemm_ar_nccl_us": 910.0}
{"kind": "attn_fwd", "b": 1, "S": 8192, "h": 32, "kh": 8, "causal": true, "ulysses_graph": null}
{"kind": "attn_fwd", "b": 1, "S": 8192, "h": 32, "kh": 8, "causal": false, )"
    R"("allgather_kv_graph": 350, "ulysses_graph": 400}
{"kind": "decode", "B": 1, "kv": 8192, "h": 64, "kh": 8, "nccl_graph_us": 67.0}
)";
constexpr std::string_view kOverlap =
    R"({"m":2048,"n_local":1280,"k":8192,"variant":0,"us_single":75.8}
{"m":2048,"n_local":1280,"k":8192,"variant":1,"us_single":169.5}
)";

TEST(Validation, reads_what_can_be_predicted) {
  const Scratch scratch;
  scratch.write("a_peers.jsonl", std::string(kPeers));
  scratch.write("b_overlap.jsonl", std::string(kOverlap));
  scratch.write("c_ceilings.jsonl", "not for us");
  const Checked<std::vector<MeasuredCase>> cases = read_measurements(scratch.path("."));
  ASSERT_TRUE(cases.ok()) << render(cases.error());
  std::vector<std::string> labels;
  for (const MeasuredCase& one : *cases) {
    labels.push_back(one.family + " " + *one.request.schedule + " " + *one.request.mesh + " " +
                     one.label + (one.counts ? "" : " -"));
  }
  EXPECT_EQ(labels,
            (std::vector<std::string>{
                "ag_gemm bulk tp=8 m=512 n=10240 k=8192", "gemm_rs bulk tp=8 m=8192 n=8192 k=8192",
                "gemm_ar bulk tp=8 m=8192 n=8192 k=8192 -",
                "attention allgather cp=8 batch=1 seq=8192 heads=32 kv_heads=8 head_dim=128 "
                "causal=false",
                "ulysses ulysses cp=8 batch=1 seq=8192 heads=32 kv_heads=8 head_dim=128 "
                "causal=false -",
                "decode bulk cp=8 batch=1 kv=8192 heads=64 kv_heads=8 head_dim=128 -",
                "overlap fetch tp=4 m=2048 n=5120 k=8192 -"}));
  EXPECT_EQ(cases->front().microseconds, 80.0);
}

TEST(Validation, compares_every_case_and_sums_up_those_that_count) {
  const Scratch scratch;
  scratch.write("a_peers.jsonl", std::string(kPeers));
  Session session(true);
  const Machine machine = load_machine("h200x8").value();
  const Checked<Validation> validation = validate(session, scratch.path("."), machine);
  ASSERT_TRUE(validation.ok()) << render(validation.error());
  EXPECT_EQ(validation->predictions.size(), 6U);
  for (const Prediction& one : validation->predictions) {
    // These requests are near a measured one; a wrong request would be far off.
    EXPECT_GT(one.ratio(), 0.6) << one.measured.label;
    EXPECT_LT(one.ratio(), 1.7) << one.measured.label;
  }
  EXPECT_EQ(validation->agreements.back().family, "all that are shown");
  EXPECT_EQ(validation->agreements.back().count, 6);
  const Agreement& all = *(validation->agreements.end() - 2);
  EXPECT_EQ(all.family, "all");
  EXPECT_EQ(all.count, 3);
  EXPECT_EQ(all.spearman, 1);
  EXPECT_LE(all.median_error, all.error_90);
  const auto ulysses = std::ranges::find(validation->agreements, "ulysses", &Agreement::family);
  ASSERT_NE(ulysses, validation->agreements.end());
  EXPECT_FALSE(ulysses->counts);
  EXPECT_EQ(ulysses->count, 1);
  EXPECT_NEAR(ulysses->median_error, std::abs(ulysses->mean_ratio - 1), 1e-12);

  // Lines for the machine file: one per operator with plans that count.
  const std::vector<PredictionError> errors = errors_of(*validation, "here");
  ASSERT_EQ(errors.size(), 3U);
  EXPECT_EQ(errors[0].family, "ag_gemm");
  EXPECT_EQ(errors[1].family, "gemm_rs");
  EXPECT_EQ(errors[2].family, "attention");
  EXPECT_EQ(errors[0].plans, 1);
  const double error = std::abs(validation->predictions.front().ratio() - 1);
  EXPECT_NEAR(errors[0].median, error, 5e-5);
  EXPECT_EQ(errors[0].from.note, "here");
}

// A row of a plan of gemm_rs on four H200, with `more` fields.
std::string plan_row(const std::string& schedule, const std::string& more) {
  std::string text = "commir " + schedule + " for gemm_rs on tp4 {" +
                     R"(\n  split M = m0:4 * m1:_\n  split K = k0:4 * k1:_\n  place a[k0@tp]\n)"
                     R"(  place b[k0@tp]\n  place c[m0@tp]\n  nest mm {\n    par k0 on tp\n)";
  text += schedule == "fetch"
              ? R"(    for m0 skew tp + 1\n    drain c over tp direct by dst depth 2 )"
                R"(via ce signal event\n)"
              : R"(    drain c over tp bulk via nccl\n)";
  return R"({"kind": "plan", "operator": "gemm_rs", "parameters": ["m=2048", "n=8192", "k=8192"], )"
         R"("mesh": "tp=4", "processor": "NVIDIA H200", "measured_us": 300, "label": ")" +
         schedule + "\", " + more + R"("schedule": ")" + text + R"(    leaf\n  }\n}\n"})" + "\n";
}

TEST(Validation, rows_say_how_they_ran) {
  const Scratch scratch;
  scratch.write("a_plans.jsonl",
                plan_row("fetch", "") +
                    plan_row("fetch", R"("collectives": "pull", "partials16": false, )") +
                    plan_row("fetch", R"("partials16": true, )") + plan_row("bulk", "") +
                    plan_row("bulk", R"("collectives": "nccl", )"));
  const auto cases = read_measurements(scratch.path("."));
  ASSERT_TRUE(cases.ok()) << render(cases.error());
  EXPECT_EQ(cases->front().collectives, CollectiveEngine::Pull);
  EXPECT_FALSE(cases->front().has_partials16);
  EXPECT_EQ(cases->back().collectives, CollectiveEngine::Nccl);
  Session session(true);
  const auto validation = validate(session, scratch.path("."), load_machine("h200x8").value());
  ASSERT_TRUE(validation.ok()) << render(validation.error());
  const std::vector<Prediction>& of = validation->predictions;
  EXPECT_EQ(of[0].predicted, of[1].predicted) << "what a row without the fields means";
  EXPECT_LT(of[2].predicted, of[0].predicted) << "half the bytes cross";
  EXPECT_NE(of[4].predicted, of[3].predicted) << "sums by NCCL and by pulls";
}

TEST(Validation, launch_plans_may_lack_a_pass) {
  const Scratch scratch;
  scratch.write("a_peers.jsonl",
                R"({"kind": "ag_gemm", "M": 512, "N": 10240, "K": 8192, "nccl_us": 80.0})");
  Session session(true);
  const Machine machine = load_machine("h200x8").value();
  const auto predicted = [&](const std::string& without) {
    return validate(session, scratch.path("."), machine, {.without = without})
        ->predictions.front()
        .predicted;
  };
  EXPECT_GT(predicted("store_at_home"), predicted("")) << "a pass rounds what the kernel made";
  EXPECT_EQ(predicted("fuse_copies"), predicted("")) << "there are none";
  EXPECT_GE(predicted(std::string(kAllPasses)), predicted("store_at_home"));
}

}  // namespace
}  // namespace harpe
