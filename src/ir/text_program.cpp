#include "ir/text.h"

#include <algorithm>
#include <array>

#include "ir/program_check.h"
#include "ir/text_parts.h"

namespace harpe {
namespace {

constexpr std::array<std::string_view, 3> kPolicies = {"exact", "drop", "pad"};

// The identifiers of one item in textual order, to locate a refused name.
using ItemNames = std::vector<Token>;

class ProgramParser {
 public:
  explicit ProgramParser(Cursor& cursor) : cursor_(cursor) {}

  Checked<Program> parse() {
    HP_REQUIRE_OK(cursor_.expect("program"));
    HP_TRY(program_.name, cursor_.expect_identifier("the program's name"));
    HP_REQUIRE_OK(cursor_.expect("{"));
    while (cursor_.at("param")) HP_REQUIRE_OK(parse_param());
    while (cursor_.at("axis") || cursor_.at("buffer") || cursor_.at("route") ||
           cursor_.at("leaf")) {
      HP_REQUIRE_OK(parse_decl());
    }
    while (cursor_.accept("given")) {
      if (!cursor_.at("nest")) return cursor_.unexpected("`nest`");
      HP_REQUIRE_OK(parse_nest(program_.given));
    }
    while (cursor_.at("nest")) HP_REQUIRE_OK(parse_nest(program_.nests));
    if (!cursor_.accept("}")) return unexpected_item();
    HP_REQUIRE_OK(check());
    return std::move(program_);
  }

 private:
  [[nodiscard]] Diag unexpected_item() const {
    if (!program_.nests.empty()) return cursor_.unexpected("`nest` or `}`");
    if (!program_.given.empty()) return cursor_.unexpected("`given`, `nest` or `}`");
    const std::string_view param = program_.decls.empty() ? "`param`, " : "";
    return cursor_.unexpected(std::string(param) +
                              "`axis`, `buffer`, `route`, `leaf`, `given`, `nest` or `}`");
  }

  // The name of a declared or referenced item.
  Checked<std::string> parse_name(std::string_view what) {
    if (cursor_.at(TokenKind::Identifier)) names_.push_back(cursor_.peek());
    return cursor_.expect_identifier(what);
  }

  // Ends an item: returns the names read since the previous item.
  ItemNames take_names() { return std::exchange(names_, {}); }

  Checked<Scalar> parse_value() {
    if (!cursor_.at(TokenKind::End)) names_.push_back(cursor_.peek());
    return parse_scalar(cursor_);
  }

  Checked<std::vector<std::string>> parse_axis_list() {
    HP_REQUIRE_OK(cursor_.expect("("));
    std::vector<std::string> axes;
    if (cursor_.accept(")")) return axes;
    HP_TRY(axes, text::parse_list(cursor_, [&] { return parse_name("an axis"); }));
    HP_REQUIRE_OK(cursor_.expect(")"));
    return axes;
  }

  Checked<Poly> parse_poly() {
    Poly poly;
    HP_TRY(poly.first, parse_value());
    while (cursor_.at("*") || cursor_.at("+") || cursor_.at("/")) {
      const char op = cursor_.take().text.front();
      HP_TRY(Scalar value, parse_value());
      poly.rest.push_back({op, std::move(value)});
    }
    return poly;
  }

  Checked<Call> parse_named_call() {
    if (cursor_.at(TokenKind::Identifier)) names_.push_back(cursor_.peek());
    return text::parse_call_of(cursor_, [&] { return parse_value(); });
  }

  Checked<Ok> parse_param() {
    cursor_.take();
    Param param;
    HP_TRY(param.name, parse_name("the parameter's name"));
    if (cursor_.accept(":")) {
      const std::vector<std::string> kinds = {"bool", "dtype", "float"};
      if (!cursor_.at(TokenKind::Identifier)) return cursor_.unexpected("a parameter kind");
      const Token kind = cursor_.take();
      if (std::ranges::find(kinds, kind.text) == kinds.end()) {
        return text::unknown_word(cursor_, kind, "parameter kind", kinds);
      }
      param.kind = kind.text;
    }
    HP_REQUIRE_OK(cursor_.expect("="));
    HP_TRY(param.value, parse_value());
    program_.params.push_back(std::move(param));
    param_names_.push_back(take_names());
    return Ok{};
  }

  Checked<Ok> parse_decl() {
    const Token keyword = cursor_.take();
    if (keyword.text == "axis") HP_REQUIRE_OK(parse_axis());
    if (keyword.text == "buffer") HP_REQUIRE_OK(parse_buffer());
    if (keyword.text == "route") HP_REQUIRE_OK(parse_route());
    if (keyword.text == "leaf") HP_REQUIRE_OK(parse_leaf_decl());
    decl_names_.push_back(take_names());
    return Ok{};
  }

  Checked<Ok> parse_axis() {
    Axis axis;
    HP_TRY(axis.name, parse_name("the axis' name"));
    HP_REQUIRE_OK(cursor_.expect("="));
    axis.dynamic = cursor_.accept("dyn");
    HP_TRY(axis.size, parse_poly());
    if (cursor_.accept("of")) {
      HP_TRY(axis.of, parse_name("an axis"));
    }
    if (cursor_.accept("grain")) {
      HP_TRY(axis.align, cursor_.expect_integer("the grain, an integer"));
    }
    program_.decls.emplace_back(std::move(axis));
    return Ok{};
  }

  Checked<Dim> parse_dim() {
    if (cursor_.at(TokenKind::Integer)) {
      HP_TRY(const std::int64_t extent, cursor_.expect_integer("an extent"));
      return Dim(extent);
    }
    if (cursor_.at("(")) {
      HP_TRY(std::vector<std::string> axes, parse_axis_list());
      return Dim(std::move(axes));
    }
    HP_TRY(std::string axis, parse_name("an axis, `(` or an extent"));
    return Dim(std::move(axis));
  }

  // `if packed`, or an empty string.
  Checked<std::string> parse_condition() {
    if (!cursor_.accept("if")) return std::string();
    return parse_name("a bool or integer parameter");
  }

  Checked<Ok> parse_buffer() {
    Buffer buffer;
    HP_TRY(buffer.name, parse_name("the buffer's name"));
    HP_REQUIRE_OK(cursor_.expect(":"));
    HP_TRY(std::string dtype, parse_name("a dtype"));
    if (const std::optional<DType> known = parse_dtype(dtype)) {
      buffer.dtype = *known;
    } else {
      buffer.dtype_param = std::move(dtype);
    }
    HP_REQUIRE_OK(cursor_.expect("["));
    if (!cursor_.at("]")) {
      HP_TRY(buffer.dims, text::parse_list(cursor_, [&] { return parse_dim(); }));
    }
    HP_REQUIRE_OK(cursor_.expect("]"));
    if (cursor_.peek().text == "inout") {
      return cursor_.locate(make_diag(DiagCode::P027, {{"name", buffer.name}}), cursor_.peek());
    }
    HP_TRY(buffer.role, text::parse_word(cursor_, "role", parse_role, Role::Temp));
    HP_TRY(buffer.condition, parse_condition());
    program_.decls.emplace_back(std::move(buffer));
    return Ok{};
  }

  Checked<Ok> parse_route() {
    Route route;
    HP_TRY(route.name, parse_name("the route's name"));
    HP_REQUIRE_OK(cursor_.expect(":"));
    HP_TRY(route.slots, parse_axis_list());
    HP_REQUIRE_OK(cursor_.expect("<-"));
    HP_TRY(route.choices, parse_axis_list());
    HP_REQUIRE_OK(cursor_.expect("by"));
    HP_TRY(route.by, parse_name("a buffer"));
    if (std::ranges::find(kPolicies, cursor_.peek().text) != kPolicies.end()) {
      route.policy = cursor_.take().text;
    }
    if (cursor_.accept("load")) {
      HP_TRY(route.load, parse_named_call());
    }
    program_.decls.emplace_back(std::move(route));
    return Ok{};
  }

  Checked<Ok> parse_leaf_decl() {
    LeafDecl leaf;
    HP_TRY(leaf.name, parse_name("the leaf's name"));
    const std::string item = "leaf `" + leaf.name + "`";
    while (cursor_.at("flops") || cursor_.at("bytes") || cursor_.at("kernel")) {
      const Token key = cursor_.take();
      const bool given = key.text == "flops"   ? leaf.flops.has_value()
                         : key.text == "bytes" ? leaf.bytes.has_value()
                                               : leaf.kernel.has_value();
      if (given) return text::given_twice(cursor_, key, item);
      if (key.text == "kernel") {
        HP_TRY(leaf.kernel, cursor_.expect_string("the kernel's name in quotes"));
      } else {
        HP_TRY((key.text == "flops" ? leaf.flops : leaf.bytes), parse_poly());
      }
    }
    program_.decls.emplace_back(std::move(leaf));
    return Ok{};
  }

  Checked<Ok> parse_nest(std::vector<Nest>& nests) {
    cursor_.take();
    Nest nest;
    HP_TRY(nest.name, parse_name("the nest's name"));
    HP_REQUIRE_OK(cursor_.expect("over"));
    HP_TRY(nest.over, parse_axis_list());
    if (cursor_.accept("whole")) {
      HP_TRY(nest.whole, parse_axis_list());
    }
    if (cursor_.accept("seq")) {
      HP_TRY(nest.seq, parse_axis_list());
    }
    HP_REQUIRE_OK(cursor_.expect("{"));
    nest_names_.push_back(take_names());
    stmt_names_.emplace_back();
    while (!cursor_.accept("}")) {
      HP_TRY(Stmt stmt, parse_stmt());
      nest.stmts.push_back(std::move(stmt));
      stmt_names_.back().push_back(take_names());
    }
    nests.push_back(std::move(nest));
    return Ok{};
  }

  Checked<Rename> parse_rename() {
    Rename rename;
    HP_TRY(rename.axis, parse_name("an axis of the buffer"));
    HP_REQUIRE_OK(cursor_.expect("="));
    HP_TRY(rename.source, parse_name("an axis or a route"));
    if (cursor_.accept(".")) {
      HP_TRY(rename.member, parse_name("an axis of the route"));
    }
    return rename;
  }

  Checked<Access> parse_access() {
    Access access;
    HP_TRY(access.buffer, parse_name("a buffer"));
    if (cursor_.accept("[")) {
      HP_TRY(access.renames, text::parse_list(cursor_, [&] { return parse_rename(); }));
      HP_REQUIRE_OK(cursor_.expect("]"));
    }
    return access;
  }

  Checked<Ok> parse_targets(Stmt& stmt) {
    if (!cursor_.accept("(")) {
      HP_TRY(Access target, parse_access());
      stmt.targets.push_back(std::move(target));
      return Ok{};
    }
    HP_TRY(stmt.targets, text::parse_list(cursor_, [&] { return parse_access(); }));
    return cursor_.expect(")");
  }

  Checked<Ok> parse_attr(Stmt& stmt) {
    const Token key = cursor_.peek();
    HP_TRY(std::string name, cursor_.expect_identifier("an attribute's name"));
    const auto is_name = [&](const auto& attr) { return attr.first == name; };
    if (std::ranges::any_of(stmt.attrs, is_name)) {
      return text::given_twice(cursor_, key, "leaf `" + stmt.leaf + "`");
    }
    HP_REQUIRE_OK(cursor_.expect("="));
    HP_TRY(Scalar value, parse_value());
    stmt.attrs.emplace_back(std::move(name), std::move(value));
    return Ok{};
  }

  Checked<Ok> parse_arguments(Stmt& stmt) {
    HP_REQUIRE_OK(cursor_.expect("("));
    if (!cursor_.at(")") && !cursor_.at(";")) {
      HP_TRY(stmt.operands, text::parse_list(cursor_, [&] { return parse_access(); }));
    }
    if (cursor_.accept(";")) {
      do {
        HP_REQUIRE_OK(parse_attr(stmt));
      } while (cursor_.accept(","));
    }
    return cursor_.expect(")");
  }

  Checked<Stmt> parse_stmt() {
    Stmt stmt;
    HP_REQUIRE_OK(parse_targets(stmt));
    if (!cursor_.at("=") && cursor_.at(TokenKind::Identifier)) {
      HP_TRY(stmt.monoid, text::parse_monoid_word(cursor_));
    }
    HP_REQUIRE_OK(cursor_.expect("="));
    HP_TRY(stmt.leaf, parse_name("a leaf"));
    HP_REQUIRE_OK(parse_arguments(stmt));
    if (!cursor_.accept("where")) return stmt;
    do {
      Mask mask;
      HP_TRY(mask.call, parse_named_call());
      HP_TRY(mask.condition, parse_condition());
      stmt.masks.push_back(std::move(mask));
    } while (cursor_.accept("and"));
    return stmt;
  }

  // Moves a diagnostic to the name that it concerns, or else to the item's own name.
  [[nodiscard]] Checked<Ok> locate(Checked<Ok> checked, const ItemNames& names) const {
    if (checked.ok()) return checked;
    Diag diag = std::move(checked).error();
    const auto arg = std::ranges::find(diag.args, std::string_view("name"), &DiagArg::name);
    HP_CHECK(!names.empty(), "an item without a name");
    const Token* place = &names.front();
    if (arg != diag.args.end()) {
      if (const auto* const refused = std::get_if<std::string>(&arg->value)) {
        const auto token = std::ranges::find(names, *refused, &Token::text);
        if (token != names.end()) place = &*token;
      }
    }
    return cursor_.locate(std::move(diag), *place);
  }

  [[nodiscard]] Checked<Ok> check() const {
    for (std::size_t i = 0; i < program_.params.size(); ++i) {
      HP_REQUIRE_OK(locate(check_param(program_, i), param_names_[i]));
    }
    for (std::size_t i = 0; i < program_.decls.size(); ++i) {
      HP_REQUIRE_OK(locate(check_decl(program_, i), decl_names_[i]));
    }
    for (std::size_t i = 0; i < program_.given.size(); ++i) {
      const Nest& nest = program_.given[i];
      for (std::size_t s = 0; s < nest.stmts.size(); ++s) {
        HP_REQUIRE_OK(locate(check_given(program_, nest, nest.stmts[s]), stmt_names_[i][s]));
      }
    }
    HP_REQUIRE_OK(check_nests(preparation_of(program_), 0));
    return check_nests(program_, program_.given.size());
  }

  // `first`: index in the text of the program's first nest.
  [[nodiscard]] Checked<Ok> check_nests(const Program& program, std::size_t first) const {
    for (std::size_t i = 0; i < program.nests.size(); ++i) {
      const Nest& nest = program.nests[i];
      HP_REQUIRE_OK(locate(check_nest(program, i), nest_names_[first + i]));
      for (std::size_t s = 0; s < nest.stmts.size(); ++s) {
        HP_REQUIRE_OK(locate(check_stmt(program, nest, nest.stmts[s]), stmt_names_[first + i][s]));
      }
    }
    return Ok{};
  }

  Cursor& cursor_;
  Program program_;
  ItemNames names_;  // of the current item
  std::vector<ItemNames> param_names_;
  std::vector<ItemNames> decl_names_;
  std::vector<ItemNames> nest_names_;               // `given` nests first
  std::vector<std::vector<ItemNames>> stmt_names_;  // by nest
};

}  // namespace

Checked<Program> parse_program(Cursor& cursor) { return ProgramParser(cursor).parse(); }

}  // namespace harpe
