#include <algorithm>
#include <set>

#include "ir/mask_contract.h"
#include "ir/program_check.h"
#include "ir/text.h"
#include "support/check.h"

namespace harpe {
namespace {

// "B, S": a buffer's dimensions as text.
std::string print_dims(const Buffer& buffer) {
  std::string out;
  for (const Dim& dim : buffer.dims) {
    if (!out.empty()) out += ", ";
    if (const auto* const axis = std::get_if<std::string>(&dim)) out += *axis;
    if (const auto* const extent = std::get_if<std::int64_t>(&dim)) out += std::to_string(*extent);
    if (const auto* const axes = std::get_if<std::vector<std::string>>(&dim)) {
      out += "(" + axes->front() + ", …)";
    }
  }
  return out;
}

class MaskChecker {
 public:
  MaskChecker(const Program& program, const Nest& nest, const Stmt& stmt)
      : program_(program), nest_(nest), stmt_(stmt), where_("nest `" + nest.name + "`") {}

  Checked<Ok> check() const {
    for (const Mask& mask : stmt_.masks) HP_REQUIRE_OK(check_mask(mask));
    return check_together();
  }

 private:
  [[nodiscard]] Diag unknown(std::string_view kind, const std::string& name,
                             const std::vector<std::string>& candidates) const {
    return make_diag(DiagCode::P002, {{"where", where_},
                                      {"kind", kind},
                                      {"name", name},
                                      {"hint", suggestion(name, candidates)}});
  }

  [[nodiscard]] Checked<Ok> check_mask(const Mask& mask) const {
    const std::string& function = mask.call.function;
    const MaskContract* const contract = find_mask_contract(function);
    if (contract == nullptr) {
      std::vector<std::string> masks;
      for (const MaskContract& known : all_mask_contracts()) masks.emplace_back(known.name);
      return unknown("mask", function, masks);
    }
    const std::vector<Scalar>& args = mask.call.args;
    if (args.size() != contract->arguments()) {
      return make_diag(DiagCode::P007, {{"nest", nest_.name},
                                        {"name", function},
                                        {"expected", contract->arguments()},
                                        {"found", args.size()}});
    }
    for (std::size_t i = 0; i < contract->axes(); ++i) {
      const auto* const axis = std::get_if<Name>(&args[i]);
      if (axis != nullptr &&
          (is_listed(nest_.over, axis->text) || is_listed(nest_.whole, axis->text))) {
        continue;
      }
      return make_diag(DiagCode::P008, {{"nest", nest_.name},
                                        {"position", i + 1},
                                        {"mask", function},
                                        {"name", print(args[i])}});
    }
    if (contract->number) HP_REQUIRE_OK(check_number(mask, args[contract->axes()]));
    HP_REQUIRE_OK(check_condition(program_, where_, mask.condition));
    return contract->data ? check_data(mask, *contract) : Checked<Ok>(Ok{});
  }

  // A number of a mask; in a template it may be an integer parameter.
  [[nodiscard]] Checked<Ok> check_number(const Mask& mask, const Scalar& value) const {
    if (const auto* const number = std::get_if<std::int64_t>(&value)) {
      if (*number >= 1) return Ok{};
      return make_diag(DiagCode::P020, {{"where", where_},
                                        {"what", "the length in mask `" + mask.call.function + "`"},
                                        {"value", *number}});
    }
    const auto* const name = std::get_if<Name>(&value);
    const Param* const param = name == nullptr ? nullptr : find_param(program_, name->text);
    if (param != nullptr && param->kind.empty()) return Ok{};
    if (param != nullptr) return misused(where_, *param, "an integer");
    return make_diag(DiagCode::P010,
                     {{"where", where_},
                      {"name", print(value)},
                      {"expected", "a length, a whole number or an integer parameter"}});
  }

  // The buffer that a mask reads is an input of integers that exists whenever the mask does.
  [[nodiscard]] Checked<Ok> check_data(const Mask& mask, const MaskContract& contract) const {
    const auto* const name = std::get_if<Name>(&mask.call.args.back());
    if (name == nullptr) {
      return make_diag(DiagCode::P033, {{"nest", nest_.name},
                                        {"position", mask.call.args.size()},
                                        {"mask", mask.call.function},
                                        {"name", print(mask.call.args.back())}});
    }
    const Buffer* const buffer = find_buffer(program_, name->text);
    if (buffer == nullptr) {
      std::vector<std::string> buffers;
      for (const Buffer* const known : buffers_of(program_)) buffers.push_back(known->name);
      return unknown("buffer", name->text, buffers);
    }
    if (!buffer->condition.empty() && buffer->condition != mask.condition) {
      return make_diag(
          DiagCode::P032,
          {{"nest", nest_.name},
           {"name", buffer->name},
           {"condition", buffer->condition},
           {"mask", mask.call.function},
           {"found", mask.condition.empty() ? "always" : "if `" + mask.condition + "`"}});
    }
    const bool is_index = buffer->dtype_param.empty() && buffer->dtype == DType::I32;
    if (!is_index || buffer->role != Role::In) {
      return make_diag(DiagCode::P034, {{"nest", nest_.name},
                                        {"mask", mask.call.function},
                                        {"name", buffer->name},
                                        {"dtype", buffer->dtype_param.empty()
                                                      ? print(buffer->dtype)
                                                      : std::string_view(buffer->dtype_param)},
                                        {"role", print(buffer->role)}});
    }
    return check_dims(mask, contract, *buffer);
  }

  // Dimensions [batch axes …], followed by a table's own axis.
  [[nodiscard]] Checked<Ok> check_dims(const Mask& mask, const MaskContract& contract,
                                       const Buffer& buffer) const {
    const auto misfit = [&] {
      return make_diag(DiagCode::P035, {{"nest", nest_.name},
                                        {"mask", mask.call.function},
                                        {"name", buffer.name},
                                        {"wanted", contract.table ? "[batch, table]" : "[batch]"},
                                        {"found", "[" + print_dims(buffer) + "]"}});
    };
    const std::size_t tables = contract.table ? 1 : 0;
    if (buffer.dims.size() < 1 + tables) return misfit();
    for (std::size_t i = 0; i < buffer.dims.size(); ++i) {
      const auto* const axis = std::get_if<std::string>(&buffer.dims[i]);
      if (axis == nullptr) return misfit();
      const bool is_table = i + tables >= buffer.dims.size();
      if (is_table && !is_listed(nest_.whole, *axis)) {
        return make_diag(DiagCode::P036, {{"nest", nest_.name},
                                          {"mask", mask.call.function},
                                          {"buffer", buffer.name},
                                          {"name", *axis}});
      }
      if (!is_table && (!is_listed(nest_.over, *axis) || is_masked_axis(mask, contract, *axis))) {
        return misfit();
      }
    }
    return Ok{};
  }

  [[nodiscard]] static bool is_masked_axis(const Mask& mask, const MaskContract& contract,
                                           const std::string& axis) {
    const auto end = mask.call.args.begin() + static_cast<std::ptrdiff_t>(contract.axes());
    return std::find(mask.call.args.begin(), end, Scalar(Name{axis})) != end;
  }

  // The axes of a mask: its queries, if any, and its keys.
  static std::pair<std::string, std::string> axes_of_mask(const Mask& mask) {
    const MaskContract& contract = *find_mask_contract(mask.call.function);
    return {contract.queries ? print(mask.call.args[0]) : "",
            print(mask.call.args[contract.axes() - 1])};
  }

  [[nodiscard]] Checked<Ok> check_together() const {
    const Mask* first = nullptr;  // a mask with queries and keys, else any mask
    for (const Mask& mask : stmt_.masks) {
      const bool relates = find_mask_contract(mask.call.function)->queries;
      if (first == nullptr || (relates && axes_of_mask(*first).first.empty())) first = &mask;
    }
    for (const Mask& mask : stmt_.masks) {
      const auto [queries, keys] = axes_of_mask(mask);
      const auto [first_queries, first_keys] = axes_of_mask(*first);
      if (keys == first_keys && (queries.empty() || queries == first_queries)) continue;
      return make_diag(DiagCode::P023, {{"nest", nest_.name},
                                        {"name", mask.call.function},
                                        {"axes", queries.empty() ? keys : queries + ", " + keys},
                                        {"first", first->call.function}});
    }
    HP_REQUIRE_OK(check_widening());
    HP_REQUIRE_OK(check_paged());
    return check_data_once();
  }

  [[nodiscard]] Checked<Ok> check_widening() const {
    const Mask* widening = nullptr;
    for (const Mask& mask : stmt_.masks) {
      const MaskContract& contract = *find_mask_contract(mask.call.function);
      if (!contract.widens && !contract.data) return Ok{};
      if (contract.widens && widening == nullptr) widening = &mask;
    }
    if (widening == nullptr) return Ok{};
    return make_diag(DiagCode::P024, {{"nest", nest_.name}, {"name", widening->call.function}});
  }

  // With paged keys, a key's place is not its position: only `length` counts keys.
  [[nodiscard]] Checked<Ok> check_paged() const {
    const auto is_paged = [](const Mask& mask) {
      return find_mask_contract(mask.call.function)->kind == MaskKind::Paged;
    };
    if (std::ranges::none_of(stmt_.masks, is_paged)) return Ok{};
    for (const Mask& mask : stmt_.masks) {
      if (!find_mask_contract(mask.call.function)->queries) continue;
      return make_diag(DiagCode::P039, {{"nest", nest_.name}, {"name", mask.call.function}});
    }
    return Ok{};
  }

  // At most one mask of each kind on data per statement; one kind of mask per buffer in a program.
  [[nodiscard]] Checked<Ok> check_data_once() const {
    std::set<std::string> kinds;
    for (const Mask& mask : stmt_.masks) {
      const std::optional<std::string> buffer = data_of(mask);
      if (!buffer) continue;
      if (!kinds.insert(mask.call.function).second) {
        return make_diag(DiagCode::P040, {{"nest", nest_.name}, {"name", mask.call.function}});
      }
      for (const std::vector<Nest>* const nests : {&program_.nests, &program_.given}) {
        for (const Nest& nest : *nests) {
          for (const Stmt& stmt : nest.stmts) HP_REQUIRE_OK(check_same_use(mask, *buffer, stmt));
        }
      }
    }
    return Ok{};
  }

  [[nodiscard]] Checked<Ok> check_same_use(const Mask& mask, const std::string& buffer,
                                           const Stmt& other) const {
    for (const Mask& second : other.masks) {
      if (data_of(second) != buffer || second.call.function == mask.call.function) continue;
      return make_diag(DiagCode::P041, {{"nest", nest_.name},
                                        {"name", buffer},
                                        {"first", mask.call.function},
                                        {"second", second.call.function}});
    }
    return Ok{};
  }

  const Program& program_;
  const Nest& nest_;
  const Stmt& stmt_;
  std::string where_;
};

}  // namespace

Checked<Ok> check_masks(const Program& program, const Nest& nest, const Stmt& stmt) {
  return MaskChecker(program, nest, stmt).check();
}

Checked<Ok> check_mask_sizes(const Program& program, const Nest& nest, const Stmt& stmt) {
  const auto size = [&](const std::string& axis) { return size_of(*find_axis(program, axis)); };
  for (const Mask& mask : stmt.masks) {
    const MaskCall call = read_mask(mask);
    if (!call.contract->table) continue;
    const Buffer& buffer = *find_buffer(program, call.data);
    const std::int64_t table = size(std::get<std::string>(buffer.dims.back()));
    const std::int64_t keys = size(call.keys);
    if (call.contract->kind == MaskKind::Doc && (size(call.queries) != keys || table != keys)) {
      return make_diag(DiagCode::P037, {{"nest", nest.name},
                                        {"name", call.data},
                                        {"found", table},
                                        {"queries", size(call.queries)},
                                        {"keys", keys}});
    }
    if (call.contract->kind == MaskKind::Paged && keys % call.number != 0) {
      return make_diag(DiagCode::P038, {{"nest", nest.name},
                                        {"name", call.data},
                                        {"pages", keys / call.number},
                                        {"page", call.number},
                                        {"keys", keys}});
    }
  }
  return Ok{};
}

}  // namespace harpe
