#include "verify/types.h"

#include <algorithm>
#include <span>

namespace harpe::verifier {
namespace {

bool has_target(const StatementModel& statement, int buffer) {
  return std::ranges::count(statement.targets, buffer, &AccessModel::buffer) > 0;
}

// The types that one nest of the form gives to its moves.
class NestTypes {
 public:
  NestTypes(const Model& model, const NestModel& nest, const NestForm& form)
      : model_(model),
        form_(form),
        statements_(std::span(model.statements)
                        .subspan(static_cast<std::size_t>(nest.first_statement),
                                 static_cast<std::size_t>(nest.statement_count))) {}

  void add_to(std::vector<BufferTypes>& types) const {
    for (const NestItem& item : form_.items) {
      const auto* const move = std::get_if<Move>(&item);
      const int buffer = move == nullptr ? -1 : model_.find_buffer(move->buffer);
      if (buffer < 0) continue;
      BufferTypes& own = types[static_cast<std::size_t>(buffer)];
      if (move->kind == MoveKind::Stage) {
        own.staged.push_back(move->wire.value_or(dtype_of(buffer)));
        continue;
      }
      for (const StatementModel& statement : statements_) {
        if (!has_target(statement, buffer)) continue;
        own.drained.push_back(move->wire.value_or(unsaid_wire(*move, statement, buffer)));
      }
    }
    for (const StatementModel& statement : statements_) {
      for (const AccessModel& target : statement.targets) {
        types[static_cast<std::size_t>(target.buffer)].states.push_back(
            state_of(statement, target.buffer));
      }
    }
  }

 private:
  [[nodiscard]] DType dtype_of(int buffer) const {
    return model_.buffers[static_cast<std::size_t>(buffer)].dtype;
  }

  // All targets of a tied state are combined in one type. A Store result has the buffer's type.
  [[nodiscard]] DType state_of(const StatementModel& statement, int buffer) const {
    if (statement.monoid == Monoid::Store) return dtype_of(buffer);
    const bool wide =
        statement.tied && std::ranges::any_of(statement.targets, [&](const AccessModel& target) {
          return state_dtype(dtype_of(target.buffer)) == DType::F64;
        });
    return wide ? DType::F64 : state_dtype(dtype_of(buffer));
  }

  // The wire type of a move that states none. Sums and values travel in the buffer's type. Other
  // states keep their type, unless the move only changes their owner and makes their single
  // rounding.
  [[nodiscard]] DType unsaid_wire(const Move& move, const StatementModel& statement,
                                  int buffer) const {
    const bool as_result = statement.monoid == Monoid::Sum || statement.monoid == Monoid::Store ||
                           changes_hands(move, statement, buffer);
    return as_result ? dtype_of(buffer) : state_of(statement, buffer);
  }

  // The number of loops around a move.
  [[nodiscard]] std::ptrdiff_t position_of(const Move& move) const {
    const auto at = std::ranges::find_if(
        form_.items, [&](const NestItem& item) { return std::get_if<Move>(&item) == &move; });
    return std::count_if(form_.items.begin(), at,
                         [](const NestItem& item) { return std::holds_alternative<For>(item); });
  }

  // Drains run deepest first; drains at the same depth run in the order of the text.
  [[nodiscard]] bool is_last_drain(const Move& move) const {
    bool behind = false;
    return std::ranges::none_of(form_.items, [&](const NestItem& item) {
      const auto* const other = std::get_if<Move>(&item);
      if (other == &move) behind = true;
      if (other == nullptr || other == &move || other->kind != MoveKind::Drain) return false;
      if (other->buffer != move.buffer) return false;
      return behind ? position_of(*other) <= position_of(move)
                    : position_of(*other) < position_of(move);
    });
  }

  // The last drain, after every loop, over mesh axes that divide no reduction: one rank sends each
  // block whole.
  [[nodiscard]] bool changes_hands(const Move& move, const StatementModel& statement,
                                   int buffer) const {
    const std::ptrdiff_t outermost = move.how == How::Relay ? 1 : 0;
    if (move.how == How::Inline || position_of(move) != outermost || !is_last_drain(move)) {
      return false;
    }
    return std::ranges::all_of(form_.items, [&](const NestItem& item) {
      const auto* const par = std::get_if<Par>(&item);
      if (par == nullptr) return true;
      const bool meets = std::ranges::any_of(par->axes, [&](const std::string& axis) {
        return std::ranges::count(move.over, axis) > 0;
      });
      return !meets || is_digit_of_state(par->digit, statement, buffer);
    });
  }

  [[nodiscard]] bool is_digit_of_state(const std::string& digit, const StatementModel& statement,
                                       int buffer) const {
    const int id = model_.find_digit(digit);
    return std::ranges::all_of(statement.targets, [&](const AccessModel& target) {
      if (!statement.tied && target.buffer != buffer) return true;
      const Radix& radix = model_.buffers[static_cast<std::size_t>(target.buffer)].radix;
      return std::ranges::count(radix.digits, id) > 0;
    });
  }

  const Model& model_;
  const NestForm& form_;
  std::span<const StatementModel> statements_;
};

}  // namespace

std::vector<BufferTypes> types_of(const NormalForm& form, const Model& model) {
  std::vector<BufferTypes> types(model.buffers.size());
  for (const NestForm& nest : form.nests) {
    const int id = model.find_nest(nest.nest);
    if (id < 0) continue;
    NestTypes(model, model.nests[static_cast<std::size_t>(id)], nest).add_to(types);
  }
  return types;
}

std::vector<DType> types_at(Level level, const BufferModel& buffer, const BufferTypes& types) {
  std::vector<DType> found;
  switch (level) {
    case Level::Home:
      break;
    case Level::Stage:
      found = types.staged;
      break;
    case Level::Inbox:
      found = types.drained;
      break;
    case Level::Acc:
    case Level::Drain:
    case Level::Sum:
      found = types.states;
      break;
    case Level::Pack:  // the type of where it is sent
      found = types.staged;
      found.insert(found.end(), types.drained.begin(), types.drained.end());
      found.push_back(buffer.dtype);
      break;
  }
  if (found.empty()) found.push_back(buffer.dtype);
  return found;
}

std::string print_types(const std::vector<DType>& types) {
  std::vector<DType> once;
  for (const DType type : types) {
    if (std::ranges::find(once, type) == once.end()) once.push_back(type);
  }
  std::string text;
  for (std::size_t i = 0; i < once.size(); ++i) {
    if (i > 0) text += i + 1 == once.size() ? " or " : ", ";
    text += print(once[i]);
  }
  return text;
}

}  // namespace harpe::verifier
