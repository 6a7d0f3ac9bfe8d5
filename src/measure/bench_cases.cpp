#include "measure/bench_cases.h"
#include "compile/library_operators.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace harpe {
namespace {

// The shapes for which libraries were measured on 8 H200 (docs/cli.md, bench).
struct AttentionShape {
  int batch;
  int seq;
  int heads;
  int kv_heads;
};
constexpr std::array kAttention = {
    AttentionShape{1, 8192, 32, 8},   AttentionShape{1, 32768, 32, 8},
    AttentionShape{1, 131072, 32, 8}, AttentionShape{1, 8192, 32, 32},
    AttentionShape{1, 32768, 32, 32}, AttentionShape{1, 131072, 32, 32},
    AttentionShape{4, 4096, 32, 32},  AttentionShape{1, 65536, 64, 8},
};

struct GemmSize {
  const char* name;
  int m;
  int n;
  int k;
};
constexpr std::array kGathered = {
    GemmSize{"llama70b_qkv", 512, 10240, 8192},    GemmSize{"llama70b_qkv", 2048, 10240, 8192},
    GemmSize{"llama70b_qkv", 8192, 10240, 8192},   GemmSize{"llama70b_ffn1", 512, 57344, 8192},
    GemmSize{"llama70b_ffn1", 2048, 57344, 8192},  GemmSize{"llama70b_ffn1", 8192, 57344, 8192},
    GemmSize{"llama70b_ffn1", 16384, 57344, 8192}, GemmSize{"square", 4096, 4096, 4096},
    GemmSize{"wide", 8192, 28672, 8192},
};
constexpr std::array kReduced = {
    GemmSize{"llama70b_o", 512, 8192, 8192},       GemmSize{"llama70b_o", 2048, 8192, 8192},
    GemmSize{"llama70b_o", 8192, 8192, 8192},      GemmSize{"llama70b_ffn2", 512, 8192, 28672},
    GemmSize{"llama70b_ffn2", 2048, 8192, 28672},  GemmSize{"llama70b_ffn2", 8192, 8192, 28672},
    GemmSize{"llama70b_ffn2", 16384, 8192, 28672},
};

struct DecodeShape {
  int batch;
  int kv;
};
constexpr std::array kDecode = {
    DecodeShape{1, 8192},  DecodeShape{1, 32768},  DecodeShape{1, 131072},  DecodeShape{1, 524288},
    DecodeShape{8, 8192},  DecodeShape{8, 32768},  DecodeShape{8, 131072},  DecodeShape{8, 524288},
    DecodeShape{32, 8192}, DecodeShape{32, 32768}, DecodeShape{32, 131072},
};

struct MoeShape {
  const char* name;
  int hidden;
  int experts;
  int topk;
  int inter;
};
constexpr std::array kMoe = {
    MoeShape{"deepseek_v3", 7168, 256, 8, 2048},
    MoeShape{"qwen3_235b", 4096, 128, 8, 1536},
    MoeShape{"mixtral_8x7b", 4096, 8, 2, 14336},
};
constexpr std::array kTokens = {128, 1024, 4096};  // per rank

std::string of(std::string_view name, std::int64_t value) {
  return fmt::format("{}={}", name, value);
}

BenchCase attention_case(const AttentionShape& s, int head_dim, bool causal) {
  return {.name = fmt::format("{}x{} heads {}/{}{}", s.batch, s.seq, s.heads, s.kv_heads,
                              causal ? " causal" : ""),
          .parameters = {of("batch", s.batch), of("seq", s.seq), of("heads", s.heads),
                         of("kv_heads", s.kv_heads), of("head_dim", head_dim),
                         std::string("causal=") + (causal ? "true" : "false")}};
}

BenchCase gemm_case(const GemmSize& s) {
  return {.name = fmt::format("{} {}x{}x{}", s.name, s.m, s.n, s.k),
          .parameters = {of("m", s.m), of("n", s.n), of("k", s.k)}};
}

BenchCase decode_case(const DecodeShape& s, int heads, int kv_heads, int head_dim) {
  return {.name = fmt::format("{}x{} heads {}/{}", s.batch, s.kv, heads, kv_heads),
          .parameters = {of("batch", s.batch), of("kv", s.kv), of("heads", heads),
                         of("kv_heads", kv_heads), of("head_dim", head_dim)}};
}

BenchCase moe_case(const MoeShape& s, std::int64_t tokens, std::int64_t ranks) {
  return {.name = fmt::format("{} {} tokens a rank", s.name, tokens),
          .parameters = {of("tokens", tokens * ranks), of("hidden", s.hidden),
                         of("experts", s.experts), of("topk", s.topk), of("inter", s.inter)}};
}

std::vector<BenchCase> model_cases(const std::string& suite, std::int64_t ranks) {
  std::vector<BenchCase> cases;
  if (suite.starts_with("attention")) {
    for (const AttentionShape& shape : kAttention) {
      for (const bool causal : {false, true}) cases.push_back(attention_case(shape, 128, causal));
    }
  } else if (suite == "ag_gemm") {
    std::ranges::transform(kGathered, std::back_inserter(cases), gemm_case);
  } else if (suite.starts_with("gemm_")) {
    std::ranges::transform(kReduced, std::back_inserter(cases), gemm_case);
  } else if (suite == "decode") {
    for (const DecodeShape& shape : kDecode) cases.push_back(decode_case(shape, 64, 8, 128));
  } else {
    for (const MoeShape& shape : kMoe) {
      for (const int tokens : kTokens) cases.push_back(moe_case(shape, tokens, ranks));
    }
  }
  return cases;
}

std::vector<BenchCase> small_cases(const std::string& suite, std::int64_t ranks) {
  if (suite.starts_with("attention")) {
    const AttentionShape shape{1, 512, 8, 4};
    return {attention_case(shape, 64, false), attention_case(shape, 64, true)};
  }
  if (suite == "decode") return {decode_case({4, 2048}, 8, 4, 64)};
  if (suite == "moe") return {moe_case({"small", 64, 16, 2, 128}, 64, ranks)};
  return {gemm_case({"small", 256, 256, 256}), gemm_case({"small", 512, 512, 512})};
}

}  // namespace

std::string bench_axis(std::string_view suite) {
  if (suite == "moe") return "ep";
  return suite.find("gemm") == std::string_view::npos ? "cp" : "tp";
}

Checked<std::vector<BenchCase>> bench_cases(const std::string& suite, Backend backend,
                                            std::int64_t ranks) {
  const std::vector<std::string>& known = library_operators();
  if (std::ranges::find(known, suite) == known.end()) {
    std::string names;
    for (const std::string& name : known) names += (names.empty() ? "" : ", ") + name;
    return make_diag(DiagCode::U160,
                     {{"name", suite}, {"hint", suggestion(suite, known)}, {"known", names}});
  }
  return backend == Backend::Cuda ? model_cases(suite, ranks) : small_cases(suite, ranks);
}

}  // namespace harpe
