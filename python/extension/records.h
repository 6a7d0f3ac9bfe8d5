#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <exception>
#include <tuple>
#include <vector>

#include "harpe/harpe.h"

// Converts values of the library to Python objects. A struct becomes the class of the same name in
// harpe/_values.py, called with its fields by name.
namespace harpe::python {

namespace nb = nanobind;

template <class Class, class Member>
struct Field {
  const char* name;
  Member Class::* member;
};

// The Python class and the fields of a struct.
template <class T>
struct Record;

template <class T>
concept HasClass = requires { Record<T>::name; };

template <class T>
[[nodiscard]] nb::dict list_fields(const T& value) {
  nb::dict out;
  std::apply(
      [&](const auto&... field) { ((out[field.name] = nb::cast(value.*field.member)), ...); },
      Record<T>::fields);
  return out;
}

// The exception for an error; raises nothing.
[[nodiscard]] nb::object to_exception(const Error& error);

}  // namespace harpe::python

namespace nanobind::detail {

template <class T>
struct type_caster<T, enable_if_t<harpe::python::HasClass<T>>> {
  NB_TYPE_CASTER(T, const_name("harpe._values.") + harpe::python::Record<T>::name)

  static handle from_cpp(const T& value, rv_policy /*policy*/, cleanup_list* /*cleanup*/) noexcept {
    try {
      const object values = module_::import_("harpe._values");
      return values.attr(harpe::python::Record<T>::name.text)(**harpe::python::list_fields(value))
          .release();
    } catch (python_error& error) {
      error.restore();
      return {};
    }
  }
};

template <>
struct type_caster<harpe::DType> {
  NB_TYPE_CASTER(harpe::DType, const_name("str"))

  static handle from_cpp(harpe::DType dtype, rv_policy policy, cleanup_list* cleanup) noexcept {
    return make_caster<std::string>::from_cpp(harpe::print(dtype), policy, cleanup);
  }
};

// A rectangle becomes an index into an array.
template <>
struct type_caster<harpe::Rectangle> {
  NB_TYPE_CASTER(harpe::Rectangle, const_name("tuple[slice, ...]"))

  static handle from_cpp(const harpe::Rectangle& rectangle, rv_policy /*policy*/,
                         cleanup_list* /*cleanup*/) noexcept {
    try {
      list slices;
      for (const harpe::Range& range : rectangle) {
        slices.append(steal(PySlice_New(int_(range.begin).ptr(), int_(range.end).ptr(), nullptr)));
      }
      return nanobind::tuple(slices).release();
    } catch (python_error& error) {
      error.restore();
      return {};
    }
  }
};

template <>
struct type_caster<harpe::Error> {
  NB_TYPE_CASTER(harpe::Error, const_name("harpe._errors.Error"))

  static handle from_cpp(const harpe::Error& error, rv_policy /*policy*/,
                         cleanup_list* /*cleanup*/) noexcept {
    try {
      return harpe::python::to_exception(error).release();
    } catch (python_error& raised) {
      raised.restore();
      return {};
    }
  }
};

}  // namespace nanobind::detail

namespace harpe::python {

using nb::detail::const_name;

template <>
struct Record<Explanation> {
  static constexpr auto name = const_name("Explanation");
  static constexpr std::tuple fields = {
      Field{"code", &Explanation::code}, Field{"verdict", &Explanation::verdict},
      Field{"message", &Explanation::message}, Field{"meaning", &Explanation::meaning},
      Field{"remedy", &Explanation::remedy}};
};

template <>
struct Record<ParameterInfo> {
  static constexpr auto name = const_name("ParameterInfo");
  static constexpr std::tuple fields = {Field{"name", &ParameterInfo::name},
                                        Field{"kind", &ParameterInfo::kind},
                                        Field{"value", &ParameterInfo::value}};
};

template <>
struct Record<BufferInfo> {
  static constexpr auto name = const_name("BufferInfo");
  static constexpr std::tuple fields = {
      Field{"name", &BufferInfo::name}, Field{"role", &BufferInfo::role},
      Field{"dtype", &BufferInfo::dtype}, Field{"shape", &BufferInfo::shape},
      Field{"condition", &BufferInfo::condition}};
};

template <>
struct Record<OperatorInfo> {
  static constexpr auto name = const_name("OperatorInfo");
  static constexpr std::tuple fields = {
      Field{"name", &OperatorInfo::name}, Field{"summary", &OperatorInfo::summary},
      Field{"parameters", &OperatorInfo::parameters}, Field{"buffers", &OperatorInfo::buffers},
      Field{"text", &OperatorInfo::text}};
};

template <>
struct Record<MachineInfo> {
  static constexpr auto name = const_name("MachineInfo");
  static constexpr std::tuple fields = {
      Field{"name", &MachineInfo::name}, Field{"summary", &MachineInfo::summary},
      Field{"processors", &MachineInfo::processors}, Field{"levels", &MachineInfo::levels},
      Field{"text", &MachineInfo::text}};
};

template <>
struct Record<ScheduleInfo> {
  static constexpr auto name = const_name("ScheduleInfo");
  static constexpr std::tuple fields = {Field{"name", &ScheduleInfo::name},
                                        Field{"summary", &ScheduleInfo::summary},
                                        Field{"refusal", &ScheduleInfo::refusal}};
};

template <>
struct Record<Script> {
  static constexpr auto name = const_name("Script");
  static constexpr std::tuple fields = {Field{"name", &Script::name}, Field{"mesh", &Script::mesh},
                                        Field{"steps", &Script::steps},
                                        Field{"text", &Script::text}, Field{"form", &Script::form}};
};

template <>
struct Record<HostFacts> {
  static constexpr auto name = const_name("HostFacts");
  static constexpr std::tuple fields = {
      Field{"name", &HostFacts::name}, Field{"cores", &HostFacts::cores},
      Field{"vectors", &HostFacts::vectors}, Field{"free_bytes", &HostFacts::free_bytes},
      Field{"products", &HostFacts::products}};
};

template <>
struct Record<GpuFacts> {
  static constexpr auto name = const_name("GpuFacts");
  static constexpr std::tuple fields = {Field{"id", &GpuFacts::id},
                                        Field{"name", &GpuFacts::name},
                                        Field{"capability", &GpuFacts::capability},
                                        Field{"multiprocessors", &GpuFacts::multiprocessors},
                                        Field{"memory_bytes", &GpuFacts::memory_bytes},
                                        Field{"free_bytes", &GpuFacts::free_bytes},
                                        Field{"peers", &GpuFacts::peers},
                                        Field{"problem", &GpuFacts::problem}};
};

template <>
struct Record<LibraryFacts> {
  static constexpr auto name = const_name("LibraryFacts");
  static constexpr std::tuple fields = {
      Field{"name", &LibraryFacts::name}, Field{"path", &LibraryFacts::path},
      Field{"version", &LibraryFacts::version}, Field{"problem", &LibraryFacts::problem},
      Field{"cost", &LibraryFacts::cost}};
};

template <>
struct Record<TransportFacts> {
  static constexpr auto name = const_name("TransportFacts");
  static constexpr std::tuple fields = {
      Field{"name", &TransportFacts::name}, Field{"is_there", &TransportFacts::is_there},
      Field{"is_tested", &TransportFacts::is_tested}, Field{"ordering", &TransportFacts::ordering}};
};

template <>
struct Record<Doctor> {
  static constexpr auto name = const_name("Doctor");
  static constexpr std::tuple fields = {Field{"host", &Doctor::host}, Field{"gpus", &Doctor::gpus},
                                        Field{"libraries", &Doctor::libraries},
                                        Field{"transports", &Doctor::transports}};
};

}  // namespace harpe::python
