#include "io/npy_header.h"

#include <charconv>
#include <optional>

namespace harpe {
namespace {

// A reader of the few Python literals that a header may hold. It stops at the first problem.
class Reader {
 public:
  explicit Reader(std::string_view text) : text_(text) {}

  NpyHeader read() {
    if (!accept('{')) return fail("it is not a dictionary");
    while (header_.problem.empty() && !accept('}')) read_entry();
    skip_blank();
    if (header_.problem.empty() && at_ != text_.size()) fail("text follows the dictionary");
    if (header_.problem.empty() && !(has_descr_ && has_order_ && has_shape_)) {
      fail(std::string("it lacks `") +
           (!has_descr_   ? "descr"
            : !has_order_ ? "fortran_order"
                          : "shape") +
           "`");
    }
    return header_;
  }

 private:
  NpyHeader& fail(std::string problem) {
    if (header_.problem.empty()) header_.problem = std::move(problem);
    return header_;
  }

  void skip_blank() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n' || text_[at_] == '\t')) {
      ++at_;
    }
  }

  bool accept(char c) {
    skip_blank();
    if (at_ >= text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }

  bool accept_word(std::string_view word) {
    skip_blank();
    if (text_.substr(at_, word.size()) != word) return false;
    at_ += word.size();
    return true;
  }

  std::optional<std::string> accept_string() {
    skip_blank();
    if (at_ >= text_.size() || (text_[at_] != '\'' && text_[at_] != '"')) return std::nullopt;
    const std::size_t close = text_.find(text_[at_], at_ + 1);
    if (close == std::string_view::npos) return std::nullopt;
    std::string value(text_.substr(at_ + 1, close - at_ - 1));
    at_ = close + 1;
    return value;
  }

  void read_entry() {
    const std::optional<std::string> key = accept_string();
    if (!key || !accept(':')) {
      fail("a key is expected");
      return;
    }
    if (*key == "descr") {
      once(has_descr_, *key);
      read_descr();
    } else if (*key == "fortran_order") {
      once(has_order_, *key);
      header_.fortran_order = accept_word("True");
      if (!header_.fortran_order && !accept_word("False")) fail("`fortran_order` is no bool");
    } else if (*key == "shape") {
      once(has_shape_, *key);
      read_shape();
    } else {
      fail("unknown key `" + *key + "`");
    }
    skip_blank();
    if (!accept(',') && at_ < text_.size() && text_[at_] != '}') fail("a comma is expected");
    if (at_ >= text_.size()) fail("the dictionary is not closed");
  }

  void once(bool& seen, const std::string& key) {
    if (seen) fail("`" + key + "` is there twice");
    seen = true;
  }

  void read_descr() {
    if (const std::optional<std::string> descr = accept_string()) {
      header_.descr = *descr;
      return;
    }
    // A structured type is a list of fields. Its text is kept for the refusal that follows.
    const std::size_t close = text_.find(']', at_);
    if (!accept('[') || close == std::string_view::npos) {
      fail("`descr` is no string");
      return;
    }
    header_.descr = std::string(text_.substr(at_ - 1, close - at_ + 2));
    at_ = close + 1;
  }

  void read_shape() {
    if (!accept('(')) {
      fail("`shape` is no tuple");
      return;
    }
    while (!accept(')')) {
      std::int64_t extent = 0;
      skip_blank();
      const char* const begin = text_.data() + at_;
      const auto [end, error] = std::from_chars(begin, text_.data() + text_.size(), extent);
      if (error != std::errc() || extent < 0) {
        fail("`shape` holds something else than sizes");
        return;
      }
      at_ += static_cast<std::size_t>(end - begin);
      header_.shape.push_back(extent);
      if (!accept(',') && (at_ >= text_.size() || text_[at_] != ')')) {
        fail("`shape` is not closed");
        return;
      }
    }
  }

  std::string_view text_;
  std::size_t at_ = 0;
  NpyHeader header_;
  bool has_descr_ = false;
  bool has_order_ = false;
  bool has_shape_ = false;
};

}  // namespace

NpyHeader parse_npy_header(std::string_view text) { return Reader(text).read(); }

}  // namespace harpe
