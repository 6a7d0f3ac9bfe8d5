#include "schedule/primitive.h"

#include <algorithm>
#include <array>

namespace harpe {
namespace {

template <class P>
constexpr bool kHasForms = requires(const Step& step) { P::selects(step); };

template <class P, class Visitor>
void visit_fields(Visitor visitor) {
  std::apply([&](const auto&... field) { (visitor(field), ...); }, P::fields());
}

template <class Struct, class Member>
constexpr bool is_required(const Field<Struct, Member>&) {
  return !kMayBeAbsent<Member>;
}

// "stage(nest, buffers, over=, how=[, at=, by=])": optional arguments last, in brackets.
template <class P>
std::string usage_of() {
  std::string required;
  std::string optional;
  std::string results;
  visit_fields<P>([&](const auto& field) {
    if (field.slot == Slot::Output) {
      results = " -> " + std::string(field.name);
      return;
    }
    std::string& out = is_required(field) ? required : optional;
    if (!out.empty()) out += ", ";
    out += field.name;
    if (field.slot == Slot::Keyword) out += "=";
  });
  if (!optional.empty()) optional = (required.empty() ? "[" : "[, ") + optional + "]";
  return std::string(P::kName) + "(" + required + optional + ")" + results;
}

template <class P>
std::vector<std::string> argument_names() {
  std::vector<std::string> names;
  visit_fields<P>([&](const auto& field) {
    if (field.slot != Slot::Output) names.emplace_back(field.name);
  });
  return names;
}

// The argument of a field: the `index`-th by position, or the one with its name.
template <class P, class FieldType>
Checked<const Value*> find_argument(const Step& step, const FieldType& field, std::size_t index) {
  const Value* found = nullptr;
  std::size_t position = 0;
  for (const Argument& argument : step.arguments) {
    const bool by_position = argument.keyword.empty();
    const bool fits = by_position ? field.slot == Slot::Positional && position == index
                                  : argument.keyword == field.name;
    if (by_position) ++position;
    if (!fits) continue;
    if (found != nullptr) {
      return make_diag(DiagCode::S006, {{"primitive", P::kName}, {"argument", field.name}});
    }
    found = &argument.value;
  }
  return found;
}

template <class P, class FieldType>
Checked<Ok> read_field(const Step& step, const FieldType& field, std::size_t index, P& primitive) {
  using Member = std::remove_cvref_t<decltype(primitive.*(field.member))>;
  if constexpr (std::is_same_v<Member, std::vector<std::string>>) {
    if (field.slot == Slot::Output) {
      primitive.*(field.member) = step.outputs;
      return Ok{};
    }
  }
  HP_TRY(const Value* value, find_argument<P>(step, field, index));
  if (value == nullptr) {
    if (!is_required(field)) return Ok{};
    return make_diag(DiagCode::S002,
                     {{"primitive", P::kName}, {"argument", field.name}, {"usage", usage_of<P>()}});
  }
  std::optional<Member> decoded = Codec<Member>::decode(*value);
  if (!decoded) {
    return make_diag(DiagCode::S004, {{"primitive", P::kName},
                                      {"argument", field.name},
                                      {"expected", Codec<Member>::expected()},
                                      {"found", "`" + print(*value) + "`"}});
  }
  primitive.*(field.member) = std::move(*decoded);
  return Ok{};
}

// Refuses arguments that match no field.
template <class P>
Checked<Ok> check_arguments(const Step& step) {
  std::size_t by_position = 0;
  std::size_t positional = 0;
  bool has_outputs = false;
  visit_fields<P>([&](const auto& field) {
    positional += field.slot == Slot::Positional ? 1 : 0;
    has_outputs = has_outputs || field.slot == Slot::Output;
  });
  const std::vector<std::string> names = argument_names<P>();
  for (const Argument& argument : step.arguments) {
    by_position += argument.keyword.empty() ? 1 : 0;
    if (argument.keyword.empty() || contains(names, argument.keyword)) continue;
    return make_diag(DiagCode::S003, {{"primitive", P::kName},
                                      {"argument", argument.keyword},
                                      {"hint", suggestion(argument.keyword, names)},
                                      {"usage", usage_of<P>()}});
  }
  if (by_position > positional) {
    return make_diag(DiagCode::S005, {{"primitive", P::kName},
                                      {"most", positional},
                                      {"given", by_position},
                                      {"usage", usage_of<P>()}});
  }
  if (!has_outputs && !step.outputs.empty()) {
    return make_diag(DiagCode::S007, {{"primitive", P::kName}, {"outputs", step.outputs[0]}});
  }
  return Ok{};
}

template <class P>
Checked<Primitive> read_as(const Step& step) {
  HP_REQUIRE_OK(check_arguments<P>(step));
  P primitive;
  std::size_t index = 0;
  std::optional<Diag> refusal;
  visit_fields<P>([&](const auto& field) {
    if (refusal) return;
    auto status = read_field(step, field, index, primitive);
    if (!status.ok()) refusal = std::move(status).error();
    index += field.slot == Slot::Positional ? 1 : 0;
  });
  if (refusal) return std::move(*refusal);
  return Primitive(std::move(primitive));
}

using Reader = Checked<Primitive> (*)(const Step&);

template <class P>
Reader find_reader(const Step& step) {
  if (step.primitive != P::kName) return nullptr;
  if constexpr (kHasForms<P>) {
    if (!P::selects(step)) return nullptr;
  }
  return &read_as<P>;
}

}  // namespace

std::vector<PrimitiveInfo> all_primitives() {
  return {
#define HP_PRIMITIVE(TYPE, SUMMARY) PrimitiveInfo{TYPE::kName, SUMMARY, usage_of<TYPE>()},
#include "schedule/primitives.def"
#undef HP_PRIMITIVE
  };
}

Checked<Primitive> read_step(const Step& step) {
  const std::array readers = {
#define HP_PRIMITIVE(TYPE, SUMMARY) find_reader<TYPE>(step),
#include "schedule/primitives.def"
#undef HP_PRIMITIVE
  };
  for (const Reader reader : readers) {
    if (reader != nullptr) return reader(step);
  }
  std::vector<std::string> names;
  for (const PrimitiveInfo& primitive : all_primitives()) names.emplace_back(primitive.name);
  return make_diag(DiagCode::S001,
                   {{"name", step.primitive}, {"hint", suggestion(step.primitive, names)}});
}

Step to_step(const Primitive& primitive) {
  return std::visit(
      [](const auto& typed) {
        using P = std::remove_cvref_t<decltype(typed)>;
        Step step{std::string(P::kName), {}, {}};
        visit_fields<P>([&](const auto& field) {
          using Member = std::remove_cvref_t<decltype(typed.*(field.member))>;
          if constexpr (std::is_same_v<Member, std::vector<std::string>>) {
            if (field.slot == Slot::Output) {
              step.outputs = typed.*(field.member);
              return;
            }
          }
          std::optional<Value> value = Codec<Member>::encode(typed.*(field.member), field.list);
          if (!value) return;
          const bool keyword = field.slot == Slot::Keyword;
          step.arguments.push_back({keyword ? std::string(field.name) : "", std::move(*value)});
        });
        return step;
      },
      primitive);
}

Checked<ScheduleState> run(ScheduleState state, const Primitive& primitive) {
  return std::visit(
      [&](const auto& typed) -> Checked<ScheduleState> {
        HP_TRY(const auto facts, check(state, typed));
        return apply(std::move(state), facts);
      },
      primitive);
}

}  // namespace harpe
