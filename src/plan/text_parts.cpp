#include "plan/text_parts.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>
#include <utility>

namespace harpe::plan_text {
namespace {

constexpr std::int64_t kMaxInt32 = std::numeric_limits<std::int32_t>::max();
constexpr std::int64_t kMaxInt64 = std::numeric_limits<std::int64_t>::max();

// Whether a name like `mm.A.st0.1` can be printed without quotes.
bool is_path(std::string_view name) {
  std::size_t begin = 0;
  while (true) {
    const std::size_t dot = std::min(name.find('.', begin), name.size());
    const std::string_view part = name.substr(begin, dot - begin);
    const bool number = begin > 0 && !part.empty() &&
                        part.find_first_not_of("0123456789") == std::string_view::npos;
    if (!number && !is_identifier(part)) return false;
    if (dot == name.size()) return true;
    begin = dot + 1;
  }
}

Checked<const BufferTable*> parse_buffer(Cursor& line, const Blocks& blocks,
                                         const std::string& program) {
  const Token token = line.peek();
  HP_TRY(const std::string name, line.expect_identifier("a buffer"));
  const int buffer = blocks.find_buffer(name);
  if (buffer >= 0) return &blocks.buffers()[static_cast<std::size_t>(buffer)];
  std::vector<std::string> known;
  for (const BufferTable& table : blocks.buffers()) known.push_back(table.name);
  return line.locate(make_diag(DiagCode::V104, {{"what", "buffer"},
                                                {"name", name},
                                                {"where", "program " + quote(program)},
                                                {"hint", suggestion(name, known)}}),
                     token);
}

Checked<std::vector<bool>> parse_holds(Cursor& line, const Blocks& blocks,
                                       const BufferTable& buffer) {
  const Token start = line.peek();
  HP_REQUIRE_OK(line.expect("["));
  std::vector<bool> holds;
  while (!line.at("]")) {
    if (!holds.empty()) HP_REQUIRE_OK(line.expect(","));
    if (!line.at("*") && !line.at(".")) return line.unexpected("`*` or `.`");
    holds.push_back(line.take().text == "*");
  }
  line.take();
  if (holds.size() == buffer.digits.size()) return holds;
  std::vector<std::string> names;
  for (const int digit : buffer.digits) {
    names.push_back(blocks.digits()[static_cast<std::size_t>(digit)].name);
  }
  return line.locate(make_diag(DiagCode::V105, {{"box", "holds"},
                                                {"owner", "buffer " + quote(buffer.name)},
                                                {"problem", wrong_length(holds.size(), names)}}),
                     start);
}

}  // namespace

std::string quote(std::string_view text) { return "`" + std::string(text) + "`"; }

void append(std::string& out, std::int64_t value) {
  std::array<char, 24> buffer{};
  out.append(buffer.data(), std::to_chars(buffer.data(), buffer.data() + 24, value).ptr);
}

bool is_identifier(std::string_view text) {
  const auto letter = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
  };
  const auto digit = [](char c) { return c >= '0' && c <= '9'; };
  if (text.empty() || !letter(text[0])) return false;
  return std::ranges::all_of(text, [&](char c) { return letter(c) || digit(c); });
}

void append_name(std::string& out, std::string_view name) {
  const std::string_view mark = is_path(name) ? "" : "\"";
  out += mark;
  out += name;
  out += mark;
}

void append_alloc(std::string& out, const Alloc& alloc) {
  out += "rank ";
  append(out, alloc.rank.value);
  out += ' ';
  append_name(out, alloc.name);
  out += " buffer " + alloc.buffer;
  out += " level ";
  out += print(alloc.level);
  out += " dtype ";
  out += print(alloc.dtype);
  out += " holds [";
  for (std::size_t digit = 0; digit < alloc.holds.size(); ++digit) {
    if (digit > 0) out += ", ";
    out += alloc.holds[digit] ? '*' : '.';
  }
  out += "] at ";
  append(out, alloc.offset);
  out += " bytes ";
  append(out, alloc.bytes);
}

Diag out_of_range(const Cursor& line, const Token& token, std::string_view what, std::int64_t found,
                  const std::string& expected) {
  return line.locate(
      make_diag(DiagCode::V103, {{"what", what}, {"found", found}, {"expected", expected}}), token);
}

Checked<std::int64_t> parse_count(Cursor& line, std::string_view what, std::int64_t largest) {
  const Token token = line.peek();
  HP_TRY(const std::int64_t value, line.expect_integer(what));
  if (value < 0 || value > largest) {
    return out_of_range(line, token, what, value, "within 0.." + std::to_string(largest));
  }
  return value;
}

Checked<std::int32_t> parse_small(Cursor& line, std::string_view what) {
  HP_TRY(const std::int64_t value, parse_count(line, what, kMaxInt32));
  return static_cast<std::int32_t>(value);
}

Checked<std::int64_t> parse_reference(Cursor& line, std::string_view what, std::size_t count) {
  const Token token = line.peek();
  HP_TRY(const std::int64_t value, line.expect_integer(what));
  if (value >= 0 && std::cmp_less(value, count)) return value;
  return out_of_range(line, token, what, value,
                      count == 0 ? "one of those above, and there is none"
                                 : "within 0.." + std::to_string(count - 1));
}

Checked<Ok> expect_id(Cursor& line, std::string_view kind, std::size_t next) {
  const Token token = line.peek();
  const std::string what = std::string(kind) + " id";
  HP_TRY(const std::int64_t id, line.expect_integer(what));
  if (std::cmp_equal(id, next)) return Ok{};
  return out_of_range(line, token, what, id, std::to_string(next) + ", the next one");
}

Checked<RankId> parse_rank(Cursor& line, const Blocks& blocks) {
  HP_REQUIRE_OK(line.expect("rank"));
  HP_TRY(const std::int64_t rank,
         parse_reference(line, "rank", static_cast<std::size_t>(blocks.ranks())));
  return RankId(rank);
}

// The scanner reads two numbers with a dot as one float, so the parts are taken from the text.
Checked<StatementName> parse_statement(Cursor& line, const Program& program) {
  StatementName name;
  const Token token = line.peek();
  HP_TRY(name.nest, line.expect_identifier("a nest"));
  HP_REQUIRE_OK(line.expect("."));
  HP_TRY(name.stmt, parse_small(line, "statement"));
  const Nest* nest = find_nest(program, name.nest);
  if (nest == nullptr) {
    std::vector<std::string> known;
    for (const Nest& each : program.nests) known.push_back(each.name);
    return line.locate(make_diag(DiagCode::V104, {{"what", "nest"},
                                                  {"name", name.nest},
                                                  {"where", "program " + quote(program.name)},
                                                  {"hint", suggestion(name.nest, known)}}),
                       token);
  }
  if (std::cmp_less(name.stmt, nest->stmts.size())) return name;
  return line.locate(
      make_diag(DiagCode::V104, {{"what", "statement"},
                                 {"name", name.nest + "." + std::to_string(name.stmt)},
                                 {"where", "nest " + quote(name.nest) + " of " +
                                               std::to_string(nest->stmts.size()) + " statements"},
                                 {"hint", ""}}),
      token);
}

Checked<std::string> parse_name(Cursor& line) {
  if (line.at(TokenKind::String)) return std::string(line.take().text);
  HP_TRY(std::string name, line.expect_identifier("a name"));
  while (line.accept(".")) {
    if (!line.at(TokenKind::Identifier) && !line.at(TokenKind::Integer) &&
        !line.at(TokenKind::Float)) {
      return line.unexpected("the next part of the name");
    }
    name += '.';
    name += line.take().text;
  }
  return name;
}

Checked<Alloc> parse_alloc(Cursor& line, const Blocks& blocks, const std::string& program) {
  Alloc alloc;
  HP_TRY(alloc.rank, parse_rank(line, blocks));
  HP_TRY(alloc.name, parse_name(line));
  HP_REQUIRE_OK(line.expect("buffer"));
  HP_TRY(const BufferTable* const buffer, parse_buffer(line, blocks, program));
  alloc.buffer = buffer->name;
  HP_REQUIRE_OK(line.expect("level"));
  HP_TRY(alloc.level, parse_word(line, "a level", Level::Pack));
  HP_REQUIRE_OK(line.expect("dtype"));
  HP_TRY(alloc.dtype, parse_word(line, "a dtype", DType::Bool));
  HP_REQUIRE_OK(line.expect("holds"));
  HP_TRY(alloc.holds, parse_holds(line, blocks, *buffer));
  HP_REQUIRE_OK(line.expect("at"));
  HP_TRY(alloc.offset, parse_count(line, "offset", kMaxInt64));
  HP_REQUIRE_OK(line.expect("bytes"));
  // Offset plus size must also fit the integer type.
  HP_TRY(alloc.bytes, parse_count(line, "bytes", kMaxInt64 - alloc.offset));
  return alloc;
}

std::string wrong_length(std::size_t length, const std::vector<std::string>& names) {
  std::string text =
      "has length " + std::to_string(length) + ", must have " + std::to_string(names.size());
  for (std::size_t i = 0; i < names.size(); ++i) {
    text += (i == 0 ? " (" : ", ") + quote(names[i]);
  }
  return names.empty() ? text : text + ")";
}

}  // namespace harpe::plan_text
