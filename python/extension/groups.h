#pragma once

#include "extension/plan_records.h"

namespace harpe::python {

// Groups of ranks, and executables of plans on a rank's arrays.
void bind_groups(nb::module_& module);

template <>
struct Record<GroupStatus> {
  static constexpr auto name = const_name("GroupStatus");
  static constexpr std::tuple fields = {Field{"heap_bytes", &GroupStatus::heap_bytes},
                                        Field{"tensor_bytes", &GroupStatus::tensor_bytes},
                                        Field{"executables", &GroupStatus::executables}};
};

template <>
struct Record<LocalTensor> {
  static constexpr auto name = const_name("LocalTensor");
  static constexpr std::tuple fields = {
      Field{"name", &LocalTensor::name}, Field{"role", &LocalTensor::role},
      Field{"dtype", &LocalTensor::dtype}, Field{"shape", &LocalTensor::shape},
      Field{"place", &LocalTensor::place}};
};

}  // namespace harpe::python

namespace nanobind::detail {

template <>
struct type_caster<harpe::LocalTensor::Place> {
  NB_TYPE_CASTER(harpe::LocalTensor::Place, const_name("str"))

  static handle from_cpp(harpe::LocalTensor::Place place, rv_policy policy,
                         cleanup_list* cleanup) noexcept {
    const bool is_anywhere = place == harpe::LocalTensor::Place::Anywhere;
    return make_caster<const char*>::from_cpp(is_anywhere ? "anywhere" : "heap", policy, cleanup);
  }
};

}  // namespace nanobind::detail
