#include "compile/describe.h"

#include <algorithm>

#include "ir/text.h"
#include "ops/registry.h"
#include "support/check.h"

namespace harpe {
namespace {

// A fraction of products of sizes, as texts. `kv_heads * (heads / kv_heads)` is `heads`.
struct Fraction {
  std::vector<std::string> above;
  std::vector<std::string> below;

  void multiply(const Poly& poly) {
    const bool is_sum = std::ranges::find(poly.rest, '+', &Poly::Term::op) != poly.rest.end();
    if (is_sum) {
      above.push_back("(" + print(poly) + ")");
      return;
    }
    above.push_back(print(poly.first));
    for (const Poly::Term& term : poly.rest) {
      (term.op == '*' ? above : below).push_back(print(term.value));
    }
  }

  [[nodiscard]] std::string text() {
    for (auto divisor = below.begin(); divisor != below.end();) {
      const auto equal = std::ranges::find(above, *divisor);
      if (equal == above.end()) {
        ++divisor;
        continue;
      }
      above.erase(equal);
      divisor = below.erase(divisor);
    }
    std::erase(above, "1");
    std::string out;
    for (const std::string& factor : above) out += (out.empty() ? "" : "*") + factor;
    if (out.empty()) out = "1";
    for (const std::string& divisor : below) out += "/" + divisor;
    return out;
  }
};

std::string print_extent(const Program& program, const Dim& dim) {
  if (const auto* opaque = std::get_if<std::int64_t>(&dim)) return std::to_string(*opaque);
  Fraction extent;
  const auto multiply = [&](const std::string& name) {
    const Axis* axis = find_axis(program, name);
    HP_CHECK(axis != nullptr, "no axis is called `" + name + "`");
    extent.multiply(axis->size);
  };
  if (const auto* name = std::get_if<std::string>(&dim)) multiply(*name);
  if (const auto* names = std::get_if<std::vector<std::string>>(&dim)) {
    for (const std::string& name : *names) multiply(name);
  }
  return extent.text();
}

// "attn_fwd(q, k, v)": the expression from which a `given` nest computes the buffer.
std::string print_derivation(const Program& program, const std::string& buffer) {
  for (const Nest& nest : program.given) {
    for (const Stmt& stmt : nest.stmts) {
      if (std::ranges::find(stmt.targets, buffer, &Access::buffer) == stmt.targets.end()) continue;
      std::string operands;
      for (const Access& operand : stmt.operands) {
        operands += (operands.empty() ? "" : ", ") + operand.buffer;
      }
      return stmt.leaf + "(" + operands + ")";
    }
  }
  return "";
}

}  // namespace

Description describe(const Program& program) {
  Description out;
  out.name = program.name;
  if (const Operator* op = find_operator(program.name)) out.summary = op->summary;
  for (const Param& param : program.params) {
    out.parameters.push_back({.name = param.name,
                              .kind = param.kind.empty() ? "integer" : param.kind,
                              .value = print(param.value)});
  }
  for (const Buffer* buffer : buffers_of(program)) {
    if (buffer->role == Role::Temp) continue;
    BufferText& text = out.buffers.emplace_back();
    text.name = buffer->name;
    text.role = print(buffer->role);
    text.dtype =
        buffer->dtype_param.empty() ? std::string(print(buffer->dtype)) : buffer->dtype_param;
    for (const Dim& dim : buffer->dims) text.shape.push_back(print_extent(program, dim));
    text.condition = buffer->condition;
    text.derived = print_derivation(program, buffer->name);
  }
  return out;
}

}  // namespace harpe
