#include "support/lexer.h"

#include <array>
#include <charconv>
#include <cmath>

#include "support/printable.h"

namespace harpe {
namespace {

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }

class Scanner {
 public:
  Scanner(std::string_view source, const std::string& file) : source_(source), file_(file) {}

  Checked<std::vector<Token>> scan() {
    std::vector<Token> tokens;
    while (true) {
      skip_blank();
      const std::size_t begin = i_;
      const std::int64_t column = static_cast<std::int64_t>(begin - line_start_) + 1;
      if (i_ == source_.size()) {
        tokens.push_back({TokenKind::End, {}, line_, column});
        return tokens;
      }
      HP_TRY(const TokenKind kind, scan_token(column));
      std::string_view text = source_.substr(begin, i_ - begin);
      if (kind == TokenKind::String) text = text.substr(1, text.size() - 2);
      tokens.push_back({kind, text, line_, column});
    }
  }

 private:
  [[nodiscard]] char at(std::size_t i) const { return i < source_.size() ? source_[i] : '\0'; }

  void skip_blank() {
    while (i_ < source_.size()) {
      const char c = source_[i_];
      if (c == '\n') {
        ++line_;
        line_start_ = ++i_;
      } else if (c == ' ' || c == '\t' || c == '\r') {
        ++i_;
      } else if (c == '/' && at(i_ + 1) == '/') {
        while (i_ < source_.size() && source_[i_] != '\n') ++i_;
      } else {
        return;
      }
    }
  }

  Checked<TokenKind> scan_token(std::int64_t column) {
    const char c = source_[i_];
    if (is_letter(c)) {
      while (is_letter(at(i_)) || is_digit(at(i_))) ++i_;
      return TokenKind::Identifier;
    }
    if (is_digit(c) || (c == '-' && is_digit(at(i_ + 1)))) return scan_number();
    if (c == '"') {
      ++i_;
      while (at(i_) != '"') {
        if (i_ >= source_.size() || source_[i_] == '\n') return fail(DiagCode::T004, column, "");
        HP_REQUIRE_OK(take_character());
      }
      ++i_;
      return TokenKind::String;
    }
    if ((c == '<' && at(i_ + 1) == '-') || (c == '-' && at(i_ + 1) == '>') ||
        (c == '.' && at(i_ + 1) == '.')) {
      i_ += 2;
      return TokenKind::Punctuation;
    }
    if (std::string_view("{}[]():;,=@*+./-|").find(c) != std::string_view::npos) {
      ++i_;
      return TokenKind::Punctuation;
    }
    return fail(DiagCode::T002, column, printable(c));
  }

  // Takes one character of a string; only characters that can be shown are allowed.
  Checked<Ok> take_character() {
    const std::size_t length = source_[i_] == '\t' ? 1 : shown_length(source_, i_);
    if (length > 0) {
      i_ += length;
      return Ok{};
    }
    Diag diag = make_diag(DiagCode::T001, {{"expected", "a character that can be shown"},
                                           {"found", printable(source_[i_])}});
    diag.where = SourcePosition{file_, line_, static_cast<std::int64_t>(i_ - line_start_) + 1};
    return diag;
  }

  TokenKind scan_number() {
    TokenKind kind = TokenKind::Integer;
    ++i_;
    while (is_digit(at(i_))) ++i_;
    if (at(i_) == '.' && is_digit(at(i_ + 1))) {
      kind = TokenKind::Float;
      ++i_;
      while (is_digit(at(i_))) ++i_;
    }
    const std::size_t sign = at(i_ + 1) == '+' || at(i_ + 1) == '-' ? 1 : 0;
    if ((at(i_) == 'e' || at(i_) == 'E') && is_digit(at(i_ + 1 + sign))) {
      kind = TokenKind::Float;
      i_ += 1 + sign;
      while (is_digit(at(i_))) ++i_;
    }
    return kind;
  }

  static std::string printable(char c) {
    if (c >= 0x20 && c < 0x7f) return std::string("`") + c + "`";
    constexpr std::string_view kHex = "0123456789abcdef";
    const auto byte = static_cast<unsigned char>(c);
    return std::string("0x") + kHex[byte >> 4U] + kHex[byte & 15U];
  }

  Diag fail(DiagCode code, std::int64_t column, const std::string& found) const {
    Diag diag = make_diag(code, {{"found", found}});
    diag.where = SourcePosition{file_, line_, column};
    return diag;
  }

  std::string_view source_;
  const std::string& file_;
  std::size_t i_ = 0;
  std::size_t line_start_ = 0;
  std::int64_t line_ = 1;
};

std::string describe(const Token& token) {
  if (token.kind == TokenKind::End) return "the end of the text";
  if (token.kind == TokenKind::String) return "\"" + std::string(token.text) + "\"";
  return "`" + std::string(token.text) + "`";
}

}  // namespace

Checked<Cursor> Cursor::open(std::string_view source, std::string file) {
  HP_TRY(std::vector<Token> tokens, Scanner(source, file).scan());
  return Cursor(std::move(tokens), std::move(file));
}

const Token& Cursor::peek(std::size_t ahead) const {
  return tokens_[std::min(next_ + ahead, tokens_.size() - 1)];
}

bool Cursor::at(std::string_view text) const {
  const Token& token = peek();
  return token.text == text &&
         (token.kind == TokenKind::Identifier || token.kind == TokenKind::Punctuation);
}

Token Cursor::take() {
  const Token token = peek();
  if (next_ + 1 < tokens_.size()) ++next_;
  return token;
}

bool Cursor::accept(std::string_view text) {
  if (!at(text)) return false;
  take();
  return true;
}

Checked<Ok> Cursor::expect(std::string_view text) {
  if (accept(text)) return Ok{};
  return unexpected("`" + std::string(text) + "`");
}

Checked<std::string> Cursor::expect_identifier(std::string_view what) {
  if (!at(TokenKind::Identifier)) return unexpected(what);
  return std::string(take().text);
}

Checked<std::int64_t> Cursor::expect_integer(std::string_view what) {
  if (!at(TokenKind::Integer)) return unexpected(what);
  const Token token = take();
  std::int64_t value = 0;
  const char* const end = token.text.data() + token.text.size();
  if (std::from_chars(token.text.data(), end, value).ec != std::errc()) {
    return locate(make_diag(DiagCode::T003, {{"text", token.text}, {"bits", 64}}), token);
  }
  return value;
}

Checked<double> Cursor::expect_number(std::string_view what) {
  if (!at(TokenKind::Integer) && !at(TokenKind::Float)) return unexpected(what);
  const Token token = take();
  double value = 0;
  const char* const end = token.text.data() + token.text.size();
  if (std::from_chars(token.text.data(), end, value).ec != std::errc() || !std::isfinite(value)) {
    return locate(make_diag(DiagCode::T003, {{"text", token.text}, {"bits", 64}}), token);
  }
  return value;
}

Checked<std::string> Cursor::expect_string(std::string_view what) {
  if (!at(TokenKind::String)) return unexpected(what);
  return std::string(take().text);
}

Diag Cursor::unexpected(std::string_view expected) const {
  return locate(make_diag(DiagCode::T001, {{"expected", expected}, {"found", describe(peek())}}),
                peek());
}

SourcePosition Cursor::position() const { return {file_, peek().line, peek().column}; }

Diag Cursor::locate(Diag diag, const Token& token) const {
  diag.where = SourcePosition{file_, token.line, token.column};
  return diag;
}

std::string print_double(double value) {
  std::array<char, 32> buffer{};
  const auto end = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value).ptr;
  std::string text(buffer.data(), end);
  if (text.find_first_of(".en") == std::string::npos) text += ".0";
  return text;
}

}  // namespace harpe
