#include "compile/library_operators.h"

#include <algorithm>

#include "compile/target.h"

namespace harpe {
namespace {

// Parameters that no library way supports.
bool is_special(const std::vector<std::string>& parameters) {
  static const std::vector<std::string> kSpecial = {
      "window=", "prefix=", "packed=", "page=", "ragged=", "v_head_dim=", "kv_seq="};
  return std::ranges::any_of(parameters, [](const std::string& word) {
    return std::ranges::any_of(kSpecial,
                               [&](const std::string& name) { return word.starts_with(name); });
  });
}

// True for 16-bit inputs, and for `router` and `lse` in f32.
bool is_known_input(const Buffer& buffer) {
  const bool is_half = buffer.dtype == DType::BF16 || buffer.dtype == DType::F16;
  return is_half ||
         (buffer.dtype == DType::F32 && (buffer.name == "router" || buffer.name == "lse"));
}

}  // namespace

const std::vector<std::string>& library_operators() {
  static const std::vector<std::string> kOperators = {
      "attention", "attention_bwd", "ag_gemm", "gemm_rs", "gemm_ar", "decode", "moe"};
  return kOperators;
}

Checked<Ok> check_library_ways(const Program& program, const std::vector<std::string>& parameters) {
  const std::vector<std::string>& known = library_operators();
  const auto refuse = [&](const std::string& reason) {
    return make_diag(DiagCode::G081, {{"what", "`" + program.name + "`"}, {"reason", reason}});
  };
  if (std::ranges::find(known, program.name) == known.end()) {
    return refuse("no combination of NCCL and libraries computes it");
  }
  const auto buffers = buffers_of(program);
  const bool is_known = std::ranges::all_of(buffers, [](const Buffer* buffer) {
    return buffer->role != Role::In || is_known_input(*buffer);
  });
  if (is_known && !is_special(parameters)) return Ok{};
  return refuse("the library baselines support no such sizes, masks or types");
}

Checked<Ok> check_library_ways(const Request& subject, const Program& program) {
  if (kind_of(subject.target) == TargetKind::Operator) {
    return check_library_ways(program, subject.parameters);
  }
  return make_diag(DiagCode::G081,
                   {{"what", "`" + subject.target + "`"},
                    {"reason", "library baselines exist for shipped operators only"}});
}

std::vector<std::string> library_outputs(const Program& program) {
  std::vector<std::string> names;
  for (const Buffer* const buffer : buffers_of(program)) {
    if (buffer->role == Role::Out && buffer->name != "lse") names.push_back(buffer->name);
  }
  return names;
}

}  // namespace harpe
