#include <algorithm>
#include <array>
#include <cmath>
#include <string>

#include "sim/fabric.h"
#include "support/check.h"

namespace harpe {
namespace {

constexpr std::array<std::int64_t, 9> kPublishedTokens = {256,  512,   1024,  2048, 4096,
                                                          8192, 16384, 32768, 65536};
constexpr std::array<std::int64_t, 4> kNodes = {2, 4, 8, 16};
constexpr Burst kMicrobenchmark{.messages = 96, .destinations = 12, .bytes = 4096};

const ExpertModel& model_of(std::string_view name) {
  const auto models = all_expert_models();
  const auto found = std::ranges::find(models, name, &ExpertModel::name);
  HP_CHECK(found != models.end(), "a model that is listed");
  return *found;
}
const PutPolicy& policy_of(std::string_view name) {
  const PutPolicy* const policy = find_put_policy(name);
  HP_CHECK(policy != nullptr, "a policy that is listed");
  return *policy;
}

// Collects rows of one machine.
class PublishedRows {
 public:
  explicit PublishedRows(FabricRuns& runs) : runs_(runs) {}

  void add(std::string what, std::string unit, FigureRole role, double published,
           double simulated) {
    add_range(std::move(what), std::move(unit), role, published, published, simulated);
  }
  void add_range(std::string what, std::string unit, FigureRole role, double least, double most,
                 double simulated) {
    rows_.push_back({.what = std::move(what),
                     .unit = std::move(unit),
                     .role = role,
                     .least = least,
                     .most = most,
                     .simulated = simulated});
  }

  // Percent of the speed of puts without signals.
  [[nodiscard]] double share(std::int64_t nodes, std::string_view policy, const Burst& burst) {
    return 100 * runs_.burst(nodes, policy_of("puts"), burst).total.seconds() /
           runs_.burst(nodes, policy_of(policy), burst).total.seconds();
  }
  [[nodiscard]] double fences_ms(std::int64_t nodes, std::string_view policy) {
    return 1e3 * runs_.burst(nodes, policy_of(policy), kMicrobenchmark).fences.seconds();
  }
  [[nodiscard]] double seconds(std::int64_t nodes, std::string_view policy, std::string_view model,
                               std::int64_t tokens) {
    return runs_.layer(nodes, policy_of(policy), model_of(model), tokens).total.seconds();
  }
  [[nodiscard]] MessageLine line(std::int64_t nodes, std::string_view policy,
                                 std::string_view model) {
    return runs_.line(nodes, policy_of(policy), model_of(model), kPublishedTokens);
  }
  // The time of Qwen3-30B for vanishing messages, fitted to messages of at most one tile.
  [[nodiscard]] double alpha_ms(std::int64_t nodes, std::string_view policy) {
    return 1e3 * runs_
                     .line(nodes, policy_of(policy), model_of("qwen3-30b"),
                           std::span(kPublishedTokens).first(4))
                     .alpha_seconds;
  }
  // The largest speed-up of one policy over another, over nodes and tokens.
  [[nodiscard]] double most(std::string_view slow, std::string_view fast, std::string_view model,
                            std::int64_t most_nodes) {
    double best = 0;
    for (const std::int64_t nodes : kNodes) {
      if (nodes > most_nodes) continue;
      for (const std::int64_t tokens : kPublishedTokens) {
        best = std::max(best,
                        seconds(nodes, slow, model, tokens) / seconds(nodes, fast, model, tokens));
      }
    }
    return best;
  }

  [[nodiscard]] FabricRuns& runs() { return runs_; }
  [[nodiscard]] std::vector<PublishedRow> take() { return std::move(rows_); }

 private:
  FabricRuns& runs_;
  std::vector<PublishedRow> rows_;
};

// Perseus (arXiv 2605.00686) on Perlmutter: libfabric's proxy on Slingshot-11, 4 A100 a node.
void compare_slingshot(PublishedRows& rows) {
  using enum FigureRole;
  rows.add("put of puts alone, 96 x 4 KiB, 8 nodes", "%", Fitted, 2,
           rows.share(8, "put", kMicrobenchmark));
  rows.add("batch of puts alone, 96 x 4 KiB, 8 nodes", "%", Fitted, 74,
           rows.share(8, "batch", kMicrobenchmark));
  rows.add("time in 96 drains, 4 KiB, 2 nodes", "ms", Fitted, 0.96, rows.fences_ms(2, "put"));
  rows.add("time in 96 drains, 4 KiB, 8 nodes", "ms", Formed, 6.1, rows.fences_ms(8, "put"));
  Burst large = kMicrobenchmark;
  large.bytes = 4 << 20;
  rows.add("batch of puts alone, 96 x 4 MiB, 8 nodes", "%", HeldOut, 100,
           rows.share(8, "batch", large));
  rows.add("alpha of put, Qwen3-30B, 16 nodes, to 2048 tokens", "ms", HeldOut, 22.28,
           rows.alpha_ms(16, "put"));
  rows.add("alpha of put, Qwen3-30B, 16 nodes, to 65536 tokens", "ms", Formed, 22.28,
           1e3 * rows.line(16, "put", "qwen3-30b").alpha_seconds);
  rows.add("alpha of batch, Qwen3-30B, 16 nodes, to 2048 tokens", "ms", Fitted, 2.21,
           rows.alpha_ms(16, "batch"));
  rows.add("alpha of batch, Qwen3-30B, 16 nodes, to 65536 tokens", "ms", Fitted, 2.21,
           1e3 * rows.line(16, "batch", "qwen3-30b").alpha_seconds);
  rows.add("time of batch, Qwen3-30B, 16 nodes, 256 tokens", "ms", HeldOut, 2.21,
           1e3 * rows.seconds(16, "batch", "qwen3-30b", 256));
  rows.add("put / batch at most, Qwen3-30B", "x", HeldOut, 10.3,
           rows.most("put", "batch", "qwen3-30b", 16));
  for (const auto& [model, published] :
       {std::pair("gpt-oss-120b", 2.8), std::pair("deepseek-v3", 2.2)}) {
    for (const std::int64_t nodes : {16, 8}) {
      rows.add("put / batch at most, " + std::string(model_of(model).title) + ", to " +
                   std::to_string(nodes) + " nodes",
               "x", HeldOut, published, rows.most("put", "batch", model, nodes));
    }
  }
  // The publication does not state the number of tokens.
  for (const std::int64_t tokens : {1024, 2048}) {
    const std::string assumed = " (" + std::to_string(tokens) + " tokens assumed)";
    const auto grown = [&](std::int64_t nodes, std::string_view policy) {
      return rows.seconds(nodes, policy, "qwen3-30b", tokens) /
             rows.seconds(1, policy, "qwen3-30b", tokens);
    };
    rows.add("put, 8 nodes over 1, Qwen3-30B" + assumed, "x", HeldOut, 10, grown(8, "put"));
    rows.add("put, 16 nodes over 1, Qwen3-30B" + assumed, "x", Fitted, 19, grown(16, "put"));
    rows.add("batch, 16 nodes over 1, Qwen3-30B" + assumed, "x", HeldOut, 3.5, grown(16, "batch"));
    rows.add_range("put, per doubling from 2 to 16 nodes, GPT-OSS-120B" + assumed, "x", HeldOut,
                   1.3, 1.7,
                   std::cbrt(rows.seconds(16, "put", "gpt-oss-120b", tokens) /
                             rows.seconds(2, "put", "gpt-oss-120b", tokens)));
  }
  for (const auto& [model, policy, published] :
       {std::tuple("qwen3-30b", "put", 31.0), std::tuple("qwen3-30b", "batch", 95.0),
        std::tuple("gpt-oss-120b", "put", 75.0), std::tuple("gpt-oss-120b", "batch", 98.0)}) {
    rows.add("tensor cores with " + std::string(policy) + ", " +
                 std::string(model_of(model).title) + ", 4 nodes (256 tokens assumed)",
             "%", HeldOut, published,
             100 * rows.runs().layer(4, policy_of(policy), model_of(model), 256).busy);
  }
}

// A dispatch of 128 tokens to 8 experts each, as one library does it. The traffic to other nodes is
// a burst; launches, packing and everything else are one constant of the library.
struct Dispatch {
  std::string_view policy;
  bool by_token = false;  // one put per token and expert; otherwise one put per GPU
};
double dispatch_us(PublishedRows& rows, const Dispatch& dispatch, std::int64_t nodes,
                   double token_bytes) {
  constexpr double kRows = 128.0 * 8;
  const auto fabric = find_fabric(rows.runs().machine(), nodes);
  HP_CHECK(fabric.ok(), "as many nodes as the machine has");
  const std::int64_t others = fabric->ranks() - fabric->gpus;
  const double crossing =
      kRows * static_cast<double>(others) / static_cast<double>(fabric->ranks());
  const auto messages = dispatch.by_token ? static_cast<std::int64_t>(crossing) : others;
  const Burst burst{.messages = messages,
                    .destinations = others,
                    .bytes = crossing * token_bytes / static_cast<double>(messages)};
  return rows.runs().burst(nodes, policy_of(dispatch.policy), burst).total.microseconds();
}

constexpr double kTokenFp8 = 7392;    // 7168 values and their scales
constexpr double kTokenBf16 = 14336;  // the same in bf16

struct PublishedDispatch {
  std::int64_t nodes = 2;
  bool combine = false;  // in bf16
  double microseconds = 0;
};
// The library's constant is fitted to the first row.
void compare_library(PublishedRows& rows, const std::string& library, const Dispatch& dispatch,
                     const std::vector<PublishedDispatch>& published) {
  double constant = 0;
  for (const PublishedDispatch& one : published) {
    const double bytes = one.combine ? kTokenBf16 : kTokenFp8;
    const double burst = dispatch_us(rows, dispatch, one.nodes, bytes);
    const bool first = &one == &published.front();
    if (first) constant = one.microseconds - burst;
    rows.add(library + (one.combine ? " combine, " : " dispatch, ") +
                 std::to_string(8 * one.nodes) + " GPUs",
             "us", first ? FigureRole::Fitted : FigureRole::HeldOut, one.microseconds,
             constant + burst);
  }
}

// The model that FlashMoE's authors time on one node (its issue 21).
constexpr ExpertModel kFlashMoe{"flashmoe-21", "FlashMoE #21", 2048, 2048, 32, 2};

// Perseus on 8 H100 a node with ConnectX-7, IBRC with several queue pairs; and libraries.
void compare_connectx7(PublishedRows& rows) {
  using enum FigureRole;
  const double slow = rows.seconds(4, "put", "qwen3-30b", 65536);
  const double fast = rows.seconds(4, "batch", "qwen3-30b", 65536);
  rows.add("put / batch, Qwen3-30B, 64K tokens, 4 nodes", "x", Fitted, 2.47, slow / fast);
  rows.add("put / batch at most, Qwen3-30B, to 4 nodes", "x", HeldOut, 2.47,
           rows.most("put", "batch", "qwen3-30b", 4));
  const MessageLine put = rows.line(4, "put", "qwen3-30b");
  const MessageLine batch = rows.line(4, "batch", "qwen3-30b");
  rows.add("beta that batch saves, Qwen3-30B, 4 nodes", "%", HeldOut, 60,
           100 * (1 - batch.beta_seconds / put.beta_seconds));
  for (const std::int64_t nodes : {2, 4}) {
    rows.add_range("alpha of put, Qwen3-30B, " + std::to_string(nodes) + " nodes, to 2048 tokens",
                   "ms", HeldOut, 1, 5, rows.alpha_ms(nodes, "put"));
  }
  rows.add("gpu / batch at most, Qwen3-30B", "x", HeldOut, 1.2,
           rows.most("gpu", "batch", "qwen3-30b", 4));
  rows.add("FlashMoE itself, 8192 tokens, 8 GPUs (H100 assumed)", "ms", HeldOut, 3.93,
           1e3 * rows.runs().layer(1, policy_of("batch"), kFlashMoe, 8192).total.seconds());
  const double at_16 = dispatch_us(rows, {"nic", true}, 2, kTokenFp8);
  rows.add("pplx-kernels by IBRC, dispatch, 16 GPUs", "us", Fitted, 687, at_16);
  rows.add("pplx-kernels by IBRC, dispatch, 64 GPUs", "us", Fitted, 1669,
           dispatch_us(rows, {"nic", true}, 8, kTokenFp8));
  compare_library(rows, "DeepEP (GPU-direct)", {"gpu", true},
                  {{2, false, 118}, {2, true, 195}, {8, false, 173}, {8, true, 314}});
  compare_library(rows, "fabric-lib (imm)", {"imm", false},
                  {{4, false, 154},
                   {4, true, 266},
                   {2, false, 110},
                   {2, true, 186},
                   {8, false, 188},
                   {8, true, 309}});
}

void compare_efa(PublishedRows& rows) {
  compare_library(rows, "fabric-lib (imm)", {"imm", false},
                  {{4, false, 229},
                   {4, true, 335},
                   {2, false, 215},
                   {2, true, 242},
                   {8, false, 267},
                   {8, true, 391}});
  compare_library(rows, "UCCL-EP (imm)", {"imm", true},
                  {{2, false, 226}, {2, true, 293}, {4, false, 465}, {4, true, 694}});
}

}  // namespace

std::vector<PublishedRow> compare_published(FabricRuns& runs) {
  PublishedRows rows(runs);
  const std::string& name = runs.machine().name;
  if (name == "slingshot_a100x4x16") compare_slingshot(rows);
  if (name == "connectx7_h100x8x16") compare_connectx7(rows);
  if (name == "efa_h200x8x16") compare_efa(rows);
  return rows.take();
}

}  // namespace harpe
