#include "ir/program.h"

#include <algorithm>
#include <array>

#include "support/check.h"

namespace harpe {
namespace {

constexpr std::array<std::string_view, 4> kMonoids = {"", "sum", "max", "lse"};
constexpr std::array<std::string_view, 3> kRoles = {"in", "out", "temp"};

template <class Kind>
std::vector<const Kind*> decls_of(const Program& program) {
  std::vector<const Kind*> found;
  for (const Decl& decl : program.decls) {
    if (const auto* const item = std::get_if<Kind>(&decl)) found.push_back(item);
  }
  return found;
}

template <class Kind>
const Kind* find_decl(const Program& program, std::string_view name) {
  for (const Decl& decl : program.decls) {
    const auto* const item = std::get_if<Kind>(&decl);
    if (item != nullptr && item->name == name) return item;
  }
  return nullptr;
}

bool is_integer(const Poly& poly) {
  return poly.rest.empty() && std::holds_alternative<std::int64_t>(poly.first);
}

bool is_ground_decl(const Decl& decl) {
  if (const auto* const axis = std::get_if<Axis>(&decl)) return is_integer(axis->size);
  if (const auto* const buffer = std::get_if<Buffer>(&decl)) {
    return buffer->dtype_param.empty() && buffer->condition.empty();
  }
  return true;
}

}  // namespace

double attribute_of(const Stmt& stmt, std::string_view name, double otherwise) {
  for (const auto& [key, value] : stmt.attrs) {
    if (key != name) continue;
    if (const auto* const real = std::get_if<double>(&value)) return *real;
    if (const auto* const whole = std::get_if<std::int64_t>(&value)) {
      return static_cast<double>(*whole);
    }
  }
  return otherwise;
}

const Axis* find_axis(const Program& program, std::string_view name) {
  return find_decl<Axis>(program, name);
}

const Buffer* find_buffer(const Program& program, std::string_view name) {
  return find_decl<Buffer>(program, name);
}

const Route* find_route(const Program& program, std::string_view name) {
  return find_decl<Route>(program, name);
}

const LeafDecl* find_leaf(const Program& program, std::string_view name) {
  return find_decl<LeafDecl>(program, name);
}

const Nest* find_nest(const Program& program, std::string_view name) {
  const auto found = std::ranges::find(program.nests, name, &Nest::name);
  return found == program.nests.end() ? nullptr : &*found;
}

std::vector<const Axis*> axes_of(const Program& program) { return decls_of<Axis>(program); }

std::vector<const Buffer*> buffers_of(const Program& program) { return decls_of<Buffer>(program); }

Program preparation_of(const Program& program) {
  Program out{.name = program.name, .params = program.params, .decls = {}, .nests = program.given};
  const auto is_made = [&](const Buffer& buffer) {
    return std::ranges::any_of(program.given, [&](const Nest& nest) {
      return std::ranges::any_of(nest.stmts, [&](const Stmt& stmt) {
        return std::ranges::find(stmt.targets, buffer.name, &Access::buffer) != stmt.targets.end();
      });
    });
  };
  for (Decl decl : program.decls) {
    if (auto* const buffer = std::get_if<Buffer>(&decl)) {
      if (buffer->role != Role::In) continue;
      if (is_made(*buffer)) buffer->role = Role::Out;
    }
    out.decls.push_back(std::move(decl));
  }
  return out;
}

std::vector<std::string> axis_names(const Buffer& buffer) {
  std::vector<std::string> names;
  for (const Dim& dim : buffer.dims) {
    if (const auto* const name = std::get_if<std::string>(&dim)) names.push_back(*name);
    if (const auto* const product = std::get_if<std::vector<std::string>>(&dim)) {
      names.insert(names.end(), product->begin(), product->end());
    }
  }
  return names;
}

bool is_ground(const Program& program) {
  if (!program.params.empty()) return false;
  if (!std::ranges::all_of(program.decls, is_ground_decl)) return false;
  for (const Nest& nest : program.nests) {
    for (const Stmt& stmt : nest.stmts) {
      const auto is_plain = [](const Mask& mask) { return mask.condition.empty(); };
      if (!std::ranges::all_of(stmt.masks, is_plain)) return false;
    }
  }
  return true;
}

std::int64_t size_of(const Axis& axis) {
  HP_CHECK(is_integer(axis.size), "axis `" + axis.name + "` has no integer size");
  return std::get<std::int64_t>(axis.size.first);
}

std::vector<std::int64_t> shape_of(const Program& program, const Buffer& buffer) {
  const auto extent_of = [&](const std::string& name) {
    const Axis* const axis = find_axis(program, name);
    HP_CHECK(axis != nullptr, "buffer `" + buffer.name + "` has unknown axis `" + name + "`");
    return size_of(*axis);
  };
  std::vector<std::int64_t> shape;
  for (const Dim& dim : buffer.dims) {
    std::int64_t extent = 1;
    if (const auto* const name = std::get_if<std::string>(&dim)) extent = extent_of(*name);
    if (const auto* const opaque = std::get_if<std::int64_t>(&dim)) extent = *opaque;
    if (const auto* const product = std::get_if<std::vector<std::string>>(&dim)) {
      for (const std::string& name : *product) extent *= extent_of(name);
    }
    shape.push_back(extent);
  }
  return shape;
}

std::string_view print(Monoid monoid) { return kMonoids.at(static_cast<std::size_t>(monoid)); }

std::optional<Monoid> parse_monoid(std::string_view text) {
  const auto found = std::ranges::find(kMonoids, text);
  // Store is the absence of a keyword, so an empty text does not parse.
  if (found == kMonoids.end() || text.empty()) return std::nullopt;
  return static_cast<Monoid>(found - kMonoids.begin());
}

std::string_view print(Role role) { return kRoles.at(static_cast<std::size_t>(role)); }

std::optional<Role> parse_role(std::string_view text) {
  const auto found = std::ranges::find(kRoles, text);
  if (found == kRoles.end()) return std::nullopt;
  return static_cast<Role>(found - kRoles.begin());
}

}  // namespace harpe
