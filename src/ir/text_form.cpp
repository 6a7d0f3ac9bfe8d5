#include "ir/text.h"

#include <algorithm>
#include <array>
#include <set>

#include "ir/text_parts.h"

namespace harpe {
namespace {

// The attributes of one line: each at most once, in any order.
class Attributes {
 public:
  Attributes(Cursor& cursor, std::string item, std::vector<std::string> keys)
      : cursor_(cursor), item_(std::move(item)), keys_(std::move(keys)) {}

  // The next attribute's key; nothing at the end of the line.
  // Errors: T006; T005 for a word that neither is a key nor starts a line.
  [[nodiscard]] Checked<std::optional<std::string>> take_key() {
    if (!cursor_.at(TokenKind::Identifier)) return std::optional<std::string>();
    const std::string word(cursor_.peek().text);
    if (std::ranges::find(kLineStarts, word) != kLineStarts.end()) {
      return std::optional<std::string>();
    }
    const Token token = cursor_.take();
    if (std::ranges::find(keys_, word) == keys_.end()) {
      return text::unknown_word(cursor_, token, "attribute", keys_);
    }
    if (!seen_.insert(word).second) return text::given_twice(cursor_, token, item_);
    return std::optional(word);
  }

 private:
  static constexpr std::array<std::string_view, 7> kLineStarts = {"par",  "for",  "stage", "drain",
                                                                  "leaf", "nest", "fuse"};
  Cursor& cursor_;
  std::string item_;
  std::vector<std::string> keys_;
  std::set<std::string> seen_;
};

class FormParser {
 public:
  explicit FormParser(Cursor& cursor) : cursor_(cursor) {}

  Checked<NormalForm> parse() {
    HP_REQUIRE_OK(cursor_.expect("commir"));
    HP_TRY(form_.name, cursor_.expect_identifier("the schedule's name"));
    HP_REQUIRE_OK(cursor_.expect("for"));
    HP_TRY(form_.program, cursor_.expect_identifier("the program's name"));
    HP_REQUIRE_OK(cursor_.expect("on"));
    HP_TRY(form_.mesh, cursor_.expect_identifier("the mesh's name"));
    HP_REQUIRE_OK(cursor_.expect("{"));
    for (std::size_t section = 0; section < kSections.size(); ++section) {
      while (cursor_.at(kSections[section].keyword)) {
        section_ = section;
        HP_REQUIRE_OK((this->*kSections[section].parse)());
      }
    }
    if (!cursor_.accept("}")) return unexpected_section();
    return std::move(form_);
  }

 private:
  struct Section {
    std::string_view keyword;
    Checked<Ok> (FormParser::*parse)();
  };
  static const std::array<Section, 6> kSections;

  // Lines must follow the order of the grammar, so the valid next lines depend on the last one.
  [[nodiscard]] Diag unexpected_section() const {
    std::string expected;
    for (std::size_t i = section_; i < kSections.size(); ++i) {
      expected += "`" + std::string(kSections[i].keyword) + "`";
      expected += i + 1 < kSections.size() ? ", " : " or `}`";
    }
    return cursor_.unexpected(expected);
  }

  // Parses an identifier that must not be in `seen`; otherwise reports `refusal` with the name as
  // its `argument`.
  Checked<std::string> parse_new_name(std::set<std::string>& seen, std::string_view what,
                                      DiagCode refusal, std::string_view argument,
                                      std::string_view verb = "") {
    const Token token = cursor_.peek();
    HP_TRY(std::string name, cursor_.expect_identifier(what));
    if (seen.insert(name).second) return name;
    Diag diag = make_diag(refusal, {{argument, name}});
    if (!verb.empty()) diag.args.emplace_back("verb", verb);
    return cursor_.locate(std::move(diag), token);
  }

  Checked<Ok> parse_refine() {
    cursor_.take();
    Refine refine;
    HP_TRY(refine.axis, parse_new_name(refined_, "a mesh axis", DiagCode::F108, "axis"));
    HP_REQUIRE_OK(cursor_.expect("="));
    do {
      MeshAxis part;
      HP_TRY(part.name, parse_new_name(parts_, "a new mesh axis", DiagCode::F108, "axis"));
      HP_REQUIRE_OK(cursor_.expect(":"));
      HP_TRY(part.size, cursor_.expect_integer("the part's size, an integer"));
      refine.parts.push_back(std::move(part));
    } while (cursor_.accept("*"));
    form_.refines.push_back(std::move(refine));
    return Ok{};
  }

  Checked<Ok> parse_split() {
    cursor_.take();
    Split split;
    HP_TRY(split.axis, parse_new_name(split_, "an axis", DiagCode::F102, "axis"));
    HP_REQUIRE_OK(cursor_.expect("="));
    do {
      Digit digit;
      HP_TRY(digit.name, parse_new_name(digits_, "a digit's name", DiagCode::F103, "digit"));
      HP_REQUIRE_OK(cursor_.expect(":"));
      if (!cursor_.accept("_")) {
        HP_TRY(digit.extent, cursor_.expect_integer("the digit's extent or `_`"));
      }
      split.digits.push_back(std::move(digit));
    } while (cursor_.accept("*"));
    form_.splits.push_back(std::move(split));
    return Ok{};
  }

  Checked<Ok> parse_layout() {
    cursor_.take();
    Layout layout;
    HP_TRY(layout.axis, parse_new_name(laid_out_, "an axis", DiagCode::F113, "item", "laid out"));
    HP_TRY(layout.map, parse_call(cursor_));
    form_.layouts.push_back(std::move(layout));
    return Ok{};
  }

  Checked<Placement> parse_placement() {
    Placement placement;
    HP_TRY(placement.digit, cursor_.expect_identifier("a digit"));
    HP_REQUIRE_OK(cursor_.expect("@"));
    HP_TRY(placement.axes, parse_mesh_ref(cursor_));
    return placement;
  }

  Checked<Ok> parse_place() {
    cursor_.take();
    Place place;
    HP_TRY(place.buffer, parse_new_name(placed_, "a buffer", DiagCode::F113, "item", "placed"));
    HP_REQUIRE_OK(cursor_.expect("["));
    if (!cursor_.at("]")) {
      HP_TRY(place.at, text::parse_list(cursor_, [&] { return parse_placement(); }));
    }
    HP_REQUIRE_OK(cursor_.expect("]"));
    while (cursor_.accept("partial")) {
      PartialHome partial;
      HP_TRY(partial.monoid, text::parse_monoid_word(cursor_));
      HP_REQUIRE_OK(cursor_.expect("@"));
      HP_TRY(partial.axes, parse_mesh_ref(cursor_));
      place.partial.push_back(std::move(partial));
    }
    form_.places.push_back(std::move(place));
    return Ok{};
  }

  Checked<Ok> parse_nest() {
    cursor_.take();
    NestForm nest;
    HP_TRY(nest.nest, parse_new_name(nests_, "a nest", DiagCode::F113, "item", "scheduled"));
    HP_REQUIRE_OK(cursor_.expect("{"));
    while (!cursor_.at("leaf")) {
      HP_TRY(NestItem item, parse_nest_item());
      nest.items.push_back(std::move(item));
    }
    HP_TRY(nest.leaf, parse_leaf(nest.nest));
    HP_REQUIRE_OK(cursor_.expect("}"));
    form_.nests.push_back(std::move(nest));
    return Ok{};
  }

  Checked<NestItem> parse_nest_item() {
    if (cursor_.at("par")) return parse_par();
    if (cursor_.at("for")) return parse_for();
    if (cursor_.at("stage") || cursor_.at("drain")) return parse_move();
    return cursor_.unexpected("`par`, `for`, `stage`, `drain` or the nest's `leaf` line");
  }

  Checked<NestItem> parse_par() {
    cursor_.take();
    Par par;
    HP_TRY(par.digit, cursor_.expect_identifier("a digit"));
    HP_REQUIRE_OK(cursor_.expect("on"));
    HP_TRY(par.axes, parse_mesh_ref(cursor_));
    return NestItem(std::move(par));
  }

  Checked<NestItem> parse_for() {
    cursor_.take();
    For loop;
    HP_TRY(loop.digit, cursor_.expect_identifier("a digit"));
    if (cursor_.accept("skew")) {
      HP_TRY(loop.skew, parse_mesh_ref(cursor_));
      if (cursor_.accept("+")) {
        HP_TRY(loop.offset, cursor_.expect_integer("the skew's offset, an integer"));
      }
    }
    loop.reverse = cursor_.accept("rev");
    return NestItem(std::move(loop));
  }

  Checked<NestItem> parse_move() {
    Move move;
    move.kind = cursor_.take().text == "stage" ? MoveKind::Stage : MoveKind::Drain;
    HP_TRY(move.buffer, cursor_.expect_identifier("a buffer"));
    HP_REQUIRE_OK(cursor_.expect("over"));
    HP_TRY(move.over, parse_mesh_ref(cursor_));
    HP_TRY(move.how, text::parse_word(cursor_, "movement", parse_how, How::OneShot));
    Attributes attributes(cursor_,
                          "the " + std::string(print(move.kind)) + " of `" + move.buffer + "`",
                          {"by", "depth", "grain", "wire", "via", "signal", "fence", "sm"});
    while (true) {
      HP_TRY(const std::optional<std::string> key, attributes.take_key());
      if (!key) return NestItem(std::move(move));
      HP_REQUIRE_OK(parse_move_attribute(*key, move));
    }
  }

  Checked<Ok> parse_move_attribute(std::string_view key, Move& move) {
    if (key == "by") {
      HP_TRY(move.by, text::parse_word(cursor_, "side", parse_initiator, Initiator::Dst));
    } else if (key == "depth") {
      HP_TRY(move.depth, cursor_.expect_integer("the number of slots"));
    } else if (key == "grain") {
      HP_TRY(move.chunk, cursor_.expect_identifier("a digit"));
    } else if (key == "wire") {
      HP_TRY(move.wire, text::parse_dtype_word(cursor_));
    } else if (key == "via") {
      HP_TRY(move.via, text::parse_word(cursor_, "transport", parse_via, Via::Multimem));
    } else if (key == "signal") {
      HP_TRY(move.signal, text::parse_word(cursor_, "signal", parse_signal, Signal::Batched));
    } else if (key == "fence") {
      HP_TRY(move.fence, text::parse_word(cursor_, "fence", parse_fence, Fence::Immediate));
    } else {
      HP_TRY(move.sm, cursor_.expect_integer("the number of multiprocessors"));
    }
    return Ok{};
  }

  Checked<LeafChoice> parse_leaf(const std::string& nest) {
    cursor_.take();
    LeafChoice leaf;
    Attributes attributes(cursor_, "the leaf of nest `" + nest + "`",
                          {"kernel", "sm", "chunk", "order"});
    while (true) {
      HP_TRY(const std::optional<std::string> key, attributes.take_key());
      if (!key) return leaf;
      if (key == "kernel") {
        HP_TRY(leaf.kernel, cursor_.expect_string("the kernel's name in quotes"));
      } else if (key == "sm") {
        HP_TRY(leaf.sm, cursor_.expect_integer("the number of multiprocessors"));
      } else if (key == "chunk") {
        HP_TRY(leaf.chunk, cursor_.expect_identifier("a digit"));
      } else {
        HP_TRY(leaf.order, parse_call(cursor_));
      }
    }
  }

  Checked<Ok> parse_fuse() {
    cursor_.take();
    Fuse fuse;
    HP_TRY(fuse.name,
           parse_new_name(fused_, "the kernel group's name", DiagCode::F113, "item", "fused"));
    HP_REQUIRE_OK(cursor_.expect("="));
    HP_TRY(fuse.nests,
           text::parse_list(cursor_, [&] { return cursor_.expect_identifier("a nest"); }));
    Attributes attributes(cursor_, "fuse `" + fuse.name + "`", {"persistent", "sm", "warps"});
    while (true) {
      HP_TRY(const std::optional<std::string> key, attributes.take_key());
      if (!key) break;
      if (key == "persistent") {
        fuse.persistent = true;
      } else if (key == "sm") {
        HP_TRY(fuse.sm, cursor_.expect_integer("the number of multiprocessors"));
      } else {
        HP_TRY(fuse.warps, cursor_.expect_integer("the number of warps"));
      }
    }
    form_.fuses.push_back(std::move(fuse));
    return Ok{};
  }

  Cursor& cursor_;
  NormalForm form_;
  std::size_t section_ = 0;  // of the last line parsed
  // Names in use, per kind.
  std::set<std::string> refined_, parts_, split_, digits_, laid_out_, placed_, nests_, fused_;
};

constexpr std::array<FormParser::Section, 6> FormParser::kSections = {{
    {"refine", &FormParser::parse_refine},
    {"split", &FormParser::parse_split},
    {"layout", &FormParser::parse_layout},
    {"place", &FormParser::parse_place},
    {"nest", &FormParser::parse_nest},
    {"fuse", &FormParser::parse_fuse},
}};

}  // namespace

Checked<NormalForm> parse_form(Cursor& cursor) { return FormParser(cursor).parse(); }

}  // namespace harpe
