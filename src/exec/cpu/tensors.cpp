#include "exec/cpu/tensors.h"

#include <cstring>

#include "exec/actions/partials.h"
#include "exec/actions/tensors.h"
#include "exec/cpu/run_action.h"
#include "support/check.h"

namespace harpe::cpu {
namespace {

using actions::Assign;
using actions::Direction;
using actions::HomeMoves;
using actions::Setting;

void assign_now(const Assign& assign) {
  actions::TaskWork work;
  work.actions.emplace_back(assign);
  run(work);
}

// Whether both sides hold the same bits.
bool equal_bits(const Assign& assign) {
  const std::int64_t size = size_in_bytes(assign.to.dtype);
  const auto bytes = static_cast<std::size_t>(assign.rows.length() * size);
  bool equal = true;
  assign.rows.for_each([&](const auto& walk) {
    equal = equal && std::memcmp(assign.to.data + walk.offset(0) * size,
                                 assign.from.data + walk.offset(1) * size, bytes) == 0;
  });
  return equal;
}

// From the ranks whose coordinate along the buffer's partial axes is `part`.
HostTensor gather_part(const Setting& setting, const std::string& buffer, std::int64_t part) {
  const Buffer* declared = find_buffer(setting.plan.program, buffer);
  HostTensor tensor = make_tensor(actions::table_of(setting, buffer).dtype,
                                  shape_of(setting.plan.program, *declared));
  std::int64_t elements = 0;
  for (const HomeMoves& home :
       home_moves(setting, buffer, tensor.data.data(), Direction::ToTensor)) {
    if (home.part != part) continue;
    if (!home.is_copy) elements += home.elements;
    for (const Assign& assign : home.assigns) {
      if (!home.is_copy) {
        assign_now(assign);
      } else {
        HP_CHECK(equal_bits(assign), "homes of `" + buffer + "` on several ranks are equal, rank " +
                                         std::to_string(home.rank.value) + " included");
      }
    }
  }
  HP_CHECK(elements == element_count(tensor), "the homes of `" + buffer + "` hold all of it");
  return tensor;
}

}  // namespace

void scatter(const Setting& setting, const processes::Partition& partition,
             const std::string& buffer, const HostTensor& tensor) {
  HostTensor rounded = convert(tensor, actions::table_of(setting, buffer).dtype);
  for (const HomeMoves& home :
       home_moves(setting, buffer, rounded.data.data(), Direction::ToHomes)) {
    if (!partition.is_own(home.rank)) continue;
    for (const Assign& assign : home.assigns) assign_now(assign);
  }
}

HostTensor gather(const Setting& setting, const std::string& buffer) {
  if (actions::table_of(setting, buffer).partial_axes.empty()) {
    return gather_part(setting, buffer, 0);
  }
  return actions::combine_parts(setting, buffer, [&](const std::string& name, std::int64_t part) {
    return gather_part(setting, name, part);
  });
}

}  // namespace harpe::cpu
