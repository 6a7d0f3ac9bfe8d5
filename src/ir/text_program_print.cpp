#include "ir/text.h"

#include "ir/text_parts.h"

namespace harpe {
namespace {

std::string print_axis_list(const std::vector<std::string>& axes) {
  return "(" + text::print_names(axes) + ")";
}

std::string print_dim(const Dim& dim) {
  if (const auto* const axis = std::get_if<std::string>(&dim)) return *axis;
  if (const auto* const extent = std::get_if<std::int64_t>(&dim)) return std::to_string(*extent);
  return print_axis_list(std::get<std::vector<std::string>>(dim));
}

std::string print_condition(const std::string& condition) {
  return condition.empty() ? "" : " if " + condition;
}

std::string print_item(const Axis& axis) {
  std::string out = "axis " + axis.name + " = " + (axis.dynamic ? "dyn " : "") + print(axis.size);
  if (!axis.of.empty()) out += " of " + axis.of;
  if (axis.align != 1) out += " grain " + std::to_string(axis.align);
  return out;
}

std::string print_item(const Buffer& buffer) {
  const std::string_view dtype =
      buffer.dtype_param.empty() ? print(buffer.dtype) : std::string_view(buffer.dtype_param);
  return "buffer " + buffer.name + " : " + std::string(dtype) + "[" +
         text::join(buffer.dims, ", ", print_dim) + "] " + std::string(print(buffer.role)) +
         print_condition(buffer.condition);
}

std::string print_item(const Route& route) {
  std::string out = "route " + route.name + " : " + print_axis_list(route.slots) + " <- " +
                    print_axis_list(route.choices) + " by " + route.by;
  if (route.policy != "exact") out += " " + route.policy;
  if (route.load) out += " load " + print(*route.load);
  return out;
}

std::string print_item(const LeafDecl& leaf) {
  std::string out = "leaf " + leaf.name;
  if (leaf.flops) out += " flops " + print(*leaf.flops);
  if (leaf.bytes) out += " bytes " + print(*leaf.bytes);
  if (leaf.kernel) out += " kernel " + text::quote(*leaf.kernel);
  return out;
}

std::string print_rename(const Rename& rename) {
  return rename.axis + "=" + rename.source + (rename.member.empty() ? "" : "." + rename.member);
}

std::string print_access(const Access& access) {
  if (access.renames.empty()) return access.buffer;
  return access.buffer + "[" + text::join(access.renames, ", ", print_rename) + "]";
}

std::string print_mask(const Mask& mask) {
  return print(mask.call) + print_condition(mask.condition);
}

std::string print_stmt(const Stmt& stmt) {
  const std::string targets = text::join(stmt.targets, ", ", print_access);
  std::string out = stmt.targets.size() == 1 ? targets : "(" + targets + ")";
  out += " " + std::string(print(stmt.monoid)) + "= " + stmt.leaf + "(" +
         text::join(stmt.operands, ", ", print_access);
  if (!stmt.attrs.empty()) {
    out += "; " + text::join(stmt.attrs, ", ", [](const auto& attr) {
             return attr.first + "=" + print(attr.second);
           });
  }
  out += ")";
  if (!stmt.masks.empty()) out += " where " + text::join(stmt.masks, " and ", print_mask);
  return out;
}

std::string print_param(const Param& param) {
  return "param " + param.name + (param.kind.empty() ? "" : " : " + param.kind) + " = " +
         print(param.value);
}

std::string print_nest(const Nest& nest) {
  std::string out = "nest " + nest.name + " over " + print_axis_list(nest.over);
  if (!nest.whole.empty()) out += " whole " + print_axis_list(nest.whole);
  if (!nest.seq.empty()) out += " seq " + print_axis_list(nest.seq);
  out += " {\n";
  for (const Stmt& stmt : nest.stmts) out += "    " + print_stmt(stmt) + "\n";
  return out + "  }\n";
}

}  // namespace

std::string print(const Program& program) {
  std::string out = "program " + program.name + " {\n";
  for (const Param& param : program.params) out += "  " + print_param(param) + "\n";
  for (const Decl& decl : program.decls) {
    out += "  " + std::visit([](const auto& item) { return print_item(item); }, decl) + "\n";
  }
  for (const Nest& nest : program.given) out += "  given " + print_nest(nest);
  for (const Nest& nest : program.nests) out += "  " + print_nest(nest);
  return out + "}\n";
}

}  // namespace harpe
