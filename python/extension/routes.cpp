#include "extension/routes.h"

#include <nanobind/stl/string_view.h>

#include <algorithm>
#include <string_view>

namespace harpe::python {
namespace {

using nb::literals::operator""_a;

// Never freed.
PyObject* name(const char* text) { return PyUnicode_InternFromString(text); }

bool is_true(nb::object answer) {
  if (!answer.is_valid()) throw nb::python_error();
  const int truth = PyObject_IsTrue(answer.ptr());
  if (truth < 0) throw nb::python_error();
  return truth != 0;
}

bool ask(nb::handle function) { return is_true(nb::steal(PyObject_CallNoArgs(function.ptr()))); }

bool requires_gradient(nb::handle tensor) {
  static PyObject* const kName = name("requires_grad");
  return is_true(nb::steal(PyObject_GetAttr(tensor.ptr(), kName)));
}

bool is_meta(nb::handle tensor) {
  static PyObject* const kName = name("is_meta");
  return is_true(nb::steal(PyObject_GetAttr(tensor.ptr(), kName)));
}

bool is_negated(nb::handle tensor) {
  static PyObject* const kName = name("is_neg");
  PyObject* const arguments[] = {tensor.ptr()};
  return is_true(nb::steal(
      PyObject_VectorcallMethod(kName, arguments, 1 | PY_VECTORCALL_ARGUMENTS_OFFSET, nullptr)));
}

// The arguments of find_ways that come from PyTorch.
struct Torch {
  explicit Torch(const nb::tuple& given)
      : tensor(given[0]), parameter(given[1]), is_casting(given[2]), has_gradients(given[3]) {}

  nb::handle tensor, parameter, is_casting, has_gradients;
};
constexpr std::size_t kWatchers = 4;  // index of the first watcher; all later ones are too

// Negated views need the dispatcher, which resolves them.
int find_of_tensor(const Torch& torch, nb::handle tensor) {
  const nb::handle type = tensor.type();
  const bool is_plain = type.is(torch.tensor) || type.is(torch.parameter);
  if (!is_plain) {
    const int is_one = PyObject_IsInstance(tensor.ptr(), torch.tensor.ptr());
    if (is_one < 0) throw nb::python_error();
    if (is_one == 0) return kWrong;
  }
  const int gradient = requires_gradient(tensor) ? kGradient : 0;
  return is_plain && !is_negated(tensor) ? gradient : gradient | kWatched;
}

int find_of(const Torch& torch, char kind, nb::handle argument) {
  if (kind == '.') return 0;
  if (kind == 't') return find_of_tensor(torch, argument);
  if (kind == 'o') return argument.is_none() ? 0 : find_of_tensor(torch, argument);
  if (!nb::isinstance<nb::list>(argument)) return kWrong;
  int ways = 0;
  for (const nb::handle each : nb::borrow<nb::list>(argument)) ways |= find_of_tensor(torch, each);
  return ways;
}

int find_ways(const nb::tuple& given, std::string_view kinds, const nb::tuple& arguments) {
  const Torch torch(given);
  int ways = 0;
  for (std::size_t at = 0; at < std::min(kinds.size(), arguments.size()); ++at) {
    ways |= find_of(torch, kinds[at], arguments[at]);
  }
  if ((ways & kWrong) != 0) return ways;
  if ((ways & kGradient) != 0 && !ask(torch.has_gradients)) ways &= ~kGradient;
  for (std::size_t at = kWatchers; at < given.size(); ++at) {
    if (ask(given[at])) ways |= kWatched;
  }
  if (is_meta(arguments[0])) ways |= kWatched;
  return ask(torch.is_casting) ? ways | kCast : ways;
}

}  // namespace

void bind_routes(nb::module_& module) {
  module.def("find_ways", &find_ways, "torch"_a, "kinds"_a, "arguments"_a);
  module.attr("GRADIENT") = static_cast<int>(kGradient);
  module.attr("WATCHED") = static_cast<int>(kWatched);
  module.attr("CAST") = static_cast<int>(kCast);
  module.attr("WRONG") = static_cast<int>(kWrong);
}

}  // namespace harpe::python
