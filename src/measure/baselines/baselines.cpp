#include "measure/baselines/baselines.h"

namespace harpe::library {

std::vector<Candidate> make_baselines(const std::shared_ptr<Team>& team, const Subject& subject) {
  const std::string& op = subject.op;
  std::vector<Candidate> all;
  const auto add = [&](const char* name, auto make) {
    all.push_back({name, [team, subject, make] { return make(team, subject); }});
  };
  if (op == "ag_gemm") add("all-gather, GEMM", make_gemm_baseline);
  if (op == "gemm_rs") add("GEMM, reduce-scatter", make_gemm_baseline);
  if (op == "gemm_ar") add("GEMM, all-reduce", make_gemm_baseline);
  if (op == "attention") {
    add("all-to-all of heads", make_ulysses_baseline);
    add("all-gather of keys", make_gathered_baseline);
  }
  if (op == "attention_bwd") {
    add("all-to-all of heads", make_ulysses_backward_baseline);
    add("all-gather of keys, reduce-scatter", make_gathered_backward_baseline);
  }
  if (op == "decode") {
    const auto with = [](LocalDecode kernel) {
      return [kernel](const auto& members, const Subject& s) {
        return make_decode_baseline(members, s, kernel);
      };
    };
    add("split keys, all-gather", with(LocalDecode::Parts));
    add("shares of keys, all-gather", with(LocalDecode::Shares));
  }
  if (op == "moe") {
    add("all-to-all of rows, GEMMs by expert", make_sorted_moe_baseline);
    add("messages by expert, GEMMs by expert", make_direct_moe_baseline);
  }
  return all;
}

Checked<std::int64_t> share_of(std::string_view what, std::int64_t size, int ranks) {
  if (size % ranks == 0) return size / ranks;
  return make_diag(DiagCode::G081,
                   {{"what", std::to_string(size) + " " + std::string(what)},
                    {"reason", "they are not multiples of " + std::to_string(ranks)}});
}

device::Element element_of(DType dtype) {
  if (dtype == DType::F32) return device::Element::F32;
  return dtype == DType::F16 ? device::Element::F16 : device::Element::BF16;
}

}  // namespace harpe::library
