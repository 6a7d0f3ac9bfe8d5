#include "ir/program_check.h"

#include <algorithm>
#include <map>
#include <set>

#include "ir/instantiate.h"
#include "ir/text.h"
#include "leaves/leaf.h"

namespace harpe {
namespace {

// 2^50 elements of at most 8 bytes: sums of a thousand such buffers still fit 63 bits.
constexpr std::int64_t kMaxElements = std::int64_t{1} << 50;

Checked<Ok> check_is_ground(const Program& program) {
  if (is_ground(program)) return Ok{};
  std::string reason;
  for (const Param& param : program.params) {
    reason += (reason.empty() ? "parameter `" : "`, `") + param.name;
  }
  if (!reason.empty()) reason += "`";
  // In a program without parameters, check_items has refused every name that could be a parameter.
  // Only sizes written as expressions remain.
  for (const Axis* const axis : axes_of(program)) {
    if (!reason.empty()) break;
    if (!axis->size.rest.empty()) reason = "size `" + print(axis->size) + "`";
  }
  return make_diag(DiagCode::P011, {{"program", program.name}, {"name", reason}});
}

Checked<Ok> check_elements(const Program& program, const Buffer& buffer) {
  std::int64_t elements = 1;
  for (const std::int64_t extent : shape_of(program, buffer)) {
    if (__builtin_mul_overflow(elements, extent, &elements) || elements > kMaxElements) {
      return make_diag(DiagCode::P022, {{"name", buffer.name}, {"limit", kMaxElements}});
    }
  }
  return Ok{};
}

// `X[T=S]` runs along S in place of T: both axes have equal length. Of an operand that the leaf
// gets whole along S, S may also be shorter: then the leaf gets the first elements along T.
Checked<Ok> check_renames(const Program& program, const Nest& nest, const Stmt& stmt) {
  for (const std::vector<Access>* accesses : {&stmt.operands, &stmt.targets}) {
    for (const Access& access : *accesses) {
      for (const Rename& rename : access.renames) {
        if (!rename.member.empty()) continue;
        const std::int64_t size = size_of(*find_axis(program, rename.axis));
        const std::int64_t other = size_of(*find_axis(program, rename.source));
        const bool may_be_shorter =
            accesses == &stmt.operands &&
            std::ranges::find(nest.whole, rename.source) != nest.whole.end();
        if (size == other || (may_be_shorter && other < size)) continue;
        return make_diag(DiagCode::P061, {{"nest", nest.name},
                                          {"buffer", access.buffer},
                                          {"axis", rename.axis},
                                          {"source", rename.source},
                                          {"size", size},
                                          {"other", other}});
      }
    }
  }
  return Ok{};
}

// Every value that a leaf computes with has a type with kernels.
Checked<Ok> check_types(const Program& program, const Nest& nest, const Stmt& stmt,
                        const LeafContract& contract) {
  const auto check = [&](const std::vector<Access>& accesses, int except) -> Checked<Ok> {
    for (std::size_t i = 0; i < accesses.size(); ++i) {
      const Buffer& buffer = *find_buffer(program, accesses[i].buffer);
      if (static_cast<int>(i) == except || is_computed_in(buffer.dtype)) continue;
      return make_diag(DiagCode::P063, {{"nest", nest.name},
                                        {"leaf", stmt.leaf},
                                        {"wanted", "f32, bf16, f16 or f64"},
                                        {"buffer", buffer.name},
                                        {"found", print(buffer.dtype)}});
    }
    return Ok{};
  };
  if (!contract.computes) return Ok{};
  HP_REQUIRE_OK(check(stmt.operands, contract.index));
  return check(stmt.targets, contract.choices);
}

Checked<Ok> check_leaf(const Program& program, const Nest& nest, const Stmt& stmt) {
  const LeafContract* const contract = find_leaf_contract(stmt.leaf);
  if (contract == nullptr) {
    if (find_leaf(program, stmt.leaf) != nullptr) return Ok{};
    std::vector<std::string> known;
    for (const LeafContract& leaf : all_leaf_contracts()) known.emplace_back(leaf.name);
    for (const Decl& decl : program.decls) {
      if (const auto* const leaf = std::get_if<LeafDecl>(&decl)) known.push_back(leaf->name);
    }
    return make_diag(DiagCode::P002, {{"where", "nest `" + nest.name + "`"},
                                      {"kind", "leaf"},
                                      {"name", stmt.leaf},
                                      {"hint", suggestion(stmt.leaf, known)}});
  }
  if (stmt.operands.size() != static_cast<std::size_t>(contract->operands) ||
      stmt.targets.size() != static_cast<std::size_t>(contract->targets)) {
    return make_diag(DiagCode::P017, {{"nest", nest.name},
                                      {"name", stmt.leaf},
                                      {"operands", contract->operands},
                                      {"targets", contract->targets},
                                      {"found_operands", stmt.operands.size()},
                                      {"found_targets", stmt.targets.size()}});
  }
  if (stmt.monoid != contract->monoid) {
    return make_diag(DiagCode::P018, {{"nest", nest.name},
                                      {"name", stmt.leaf},
                                      {"monoid", print(contract->monoid)},
                                      {"found", print(stmt.monoid)}});
  }
  if (!contract->takes_masks && !stmt.masks.empty()) {
    return make_diag(DiagCode::P019,
                     {{"nest", nest.name}, {"name", stmt.leaf}, {"found", stmt.masks.size()}});
  }
  return check_types(program, nest, stmt, *contract);
}

// A sum adds only what its own statement produces, and each result of a statement has its own
// target. Targets with a monoid, and all targets of one statement, have no earlier value.
Checked<Ok> check_targets(const Nest& nest, const Stmt& stmt,
                          std::map<std::string, std::string>& writers) {
  std::set<std::string> own;
  for (const Access& target : stmt.targets) {
    const bool is_repeated = !own.insert(target.buffer).second;
    const auto writer = writers.find(target.buffer);
    if (is_repeated || (stmt.monoid != Monoid::Store && writer != writers.end())) {
      return make_diag(DiagCode::P026,
                       {{"nest", nest.name},
                        {"name", target.buffer},
                        {"by", is_repeated ? "this statement" : "nest `" + writer->second + "`"}});
    }
  }
  for (const std::string& buffer : own) writers.insert_or_assign(buffer, nest.name);
  return Ok{};
}

// Nests run in order, so every value is written before it is read.
Checked<Ok> check_flow(const Program& program) {
  std::map<std::string, std::string> writers;  // of each buffer: the last nest
  for (const Nest& nest : program.nests) {
    for (const Stmt& stmt : nest.stmts) {
      for (const Access& operand : stmt.operands) {
        const Role role = find_buffer(program, operand.buffer)->role;
        if (role != Role::In && !writers.contains(operand.buffer)) {
          return make_diag(DiagCode::P016, {{"nest", nest.name}, {"name", operand.buffer}});
        }
      }
      HP_REQUIRE_OK(check_targets(nest, stmt, writers));
    }
  }
  for (const Buffer* const buffer : buffers_of(program)) {
    if (buffer->role != Role::In && !writers.contains(buffer->name)) {
      return make_diag(DiagCode::P015, {{"name", buffer->name}, {"role", print(buffer->role)}});
    }
  }
  return Ok{};
}

}  // namespace

Checked<Ok> check_items(const Program& program) {
  for (std::size_t i = 0; i < program.params.size(); ++i) HP_REQUIRE_OK(check_param(program, i));
  for (std::size_t i = 0; i < program.decls.size(); ++i) HP_REQUIRE_OK(check_decl(program, i));
  for (std::size_t i = 0; i < program.nests.size(); ++i) {
    const Nest& nest = program.nests[i];
    HP_REQUIRE_OK(check_nest(program, i));
    for (const Stmt& stmt : nest.stmts) HP_REQUIRE_OK(check_stmt(program, nest, stmt));
  }
  for (const Nest& nest : program.given) {
    for (const Stmt& stmt : nest.stmts) HP_REQUIRE_OK(check_given(program, nest, stmt));
  }
  return program.given.empty() ? Checked<Ok>(Ok{}) : check_items(preparation_of(program));
}

Checked<Ok> check_program(const Program& program) {
  HP_REQUIRE_OK(check_items(program));
  HP_REQUIRE_OK(check_is_ground(program));
  for (const Buffer* const buffer : buffers_of(program)) {
    HP_REQUIRE_OK(check_elements(program, *buffer));
  }
  for (const Nest& nest : program.nests) {
    if (nest.stmts.empty()) return make_diag(DiagCode::P021, {{"nest", nest.name}});
    for (const Stmt& stmt : nest.stmts) {
      HP_REQUIRE_OK(check_renames(program, nest, stmt));
      HP_REQUIRE_OK(check_leaf(program, nest, stmt));
      HP_REQUIRE_OK(check_mask_sizes(program, nest, stmt));
    }
  }
  HP_REQUIRE_OK(check_flow(program));
  HP_REQUIRE_OK(check_routing(program));
  return program.given.empty() ? Checked<Ok>(Ok{}) : check_program(preparation_of(program));
}

}  // namespace harpe
