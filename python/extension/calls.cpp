#include "extension/calls.h"

#include <algorithm>
#include <mutex>
#include <optional>
#include <span>
#include <utility>

namespace harpe::python {
namespace {

using nb::literals::operator""_a;

std::uint64_t hash(nb::handle ask, nb::handle options, std::span<const std::int64_t> kind) {
  constexpr std::uint64_t kFactor = 0x100000001b3;  // of FNV
  const Py_hash_t of_options = PyObject_Hash(options.ptr());
  if (of_options == -1) throw nb::python_error();
  auto made = reinterpret_cast<std::uint64_t>(ask.ptr()) * kFactor;
  made = (made ^ static_cast<std::uint64_t>(of_options)) * kFactor;
  for (const std::int64_t number : kind)
    made = (made ^ static_cast<std::uint64_t>(number)) * kFactor;
  return made;
}

nb::object call_python(nb::handle function, const nb::tuple& arguments) {
  const nb::object made = nb::steal(PyObject_Call(function.ptr(), arguments.ptr(), nullptr));
  if (!made.is_valid()) throw nb::python_error();
  return made;
}

// For tensors such as sparse ones.
[[noreturn]] void refuse_tensors() {
  nb::dict fields;
  fields["argument"] = "tensors";
  fields["wanted"] = "of strides, in memory of the host or of a GPU";
  fields["found"] = "others";
  refuse("I311", fields);
}

// Makes another GPU current during its lifetime.
class OnGpu {
 public:
  OnGpu(nb::handle exchange, int gpu) : exchange_(exchange), before_(exchange(gpu)) {}
  OnGpu(const OnGpu&) = delete;
  OnGpu& operator=(const OnGpu&) = delete;
  ~OnGpu() {
    Py_XDECREF(PyObject_CallFunctionObjArgs(exchange_.ptr(), before_.ptr(), nullptr));
    PyErr_Clear();
  }

 private:
  nb::handle exchange_;
  nb::object before_;
};

// The dimensions up to `last` merged into one, with its extent and stride.
struct Merged {
  std::int64_t extent = 1, stride = 1;
  bool is_one = true;
};
Merged merge(const nb::dlpack::dltensor& tensor, int last) {
  Merged merged;
  for (int axis = last; axis >= 0; --axis) {
    const std::int64_t extent = tensor.shape[axis], stride = tensor.strides[axis];
    if (extent != 1 && merged.extent == 1) merged.stride = stride;
    merged.is_one &= extent == 1 || stride == merged.stride * merged.extent;
    merged.extent *= extent;
  }
  return merged;
}

// Drops the first `without` dimensions; the library refuses too many of the rest.
View view_of(const nb::dlpack::dltensor& tensor, int without) {
  // Operators have already refused other types.
  View view{.data = static_cast<std::byte*>(tensor.data) + tensor.byte_offset,
            .dtype = find_dtype(tensor.dtype).value_or(DType::Bool),
            .axes = static_cast<std::size_t>(tensor.ndim - without),
            .shape = {},
            .strides = {}};
  const std::size_t axes = std::min(view.axes, kMostAxes);
  std::copy_n(tensor.shape + without, axes, view.shape.begin());
  std::copy_n(tensor.strides + without, axes, view.strides.begin());
  return view;
}

bool equal(nb::handle one, nb::handle other) {
  const int is_equal = PyObject_RichCompareBool(one.ptr(), other.ptr(), Py_EQ);
  if (is_equal < 0) throw nb::python_error();
  return is_equal != 0;
}

}  // namespace

Calls::Calls(nb::handle tensor_type, nb::object empty_on_host, nb::object empty_on_gpu,
             nb::object exchange_gpu)
    : empty_on_host_(std::move(empty_on_host)),
      empty_on_gpu_(std::move(empty_on_gpu)),
      exchange_gpu_(std::move(exchange_gpu)),
      exchange_(tensor_type) {}

nb::object Calls::execute(nb::handle prepare, nb::handle ranks, nb::handle ask,
                          const nb::tuple& tensors, nb::handle options) {
  Described described;
  std::vector<std::int64_t> kind;
  const bool is_described = describe(tensors, described, kind);
  std::shared_ptr<Call> call;
  const std::uint64_t key = is_described ? hash(ask, options, kind) : 0;
  if (is_described) call = find(key, ask, options, kind);
  if (call == nullptr) {
    call = read(prepare(ranks, ask, tensors, options));
    call->ask = nb::borrow(ask);
    call->options = nb::borrow(options);
    call->kind = std::move(kind);
    if (is_described) known_.emplace(key, call);
  }
  call->last = ++count_;
  if (call->plan == nullptr) {
    call->answer.attr("miss")();  // raises if misses are errors
    if (warming == 0 || !is_described) return nb::none();
  }
  if (!is_described) refuse_tensors();
  return run(*call, tensors, described);
}

std::shared_ptr<Calls::Call> Calls::find(std::uint64_t key, nb::handle ask, nb::handle options,
                                         std::span<const std::int64_t> kind) const {
  const auto [begin, end] = known_.equal_range(key);
  const auto found = std::find_if(begin, end, [&](const auto& each) {
    return each.second->ask.is(ask) && std::ranges::equal(each.second->kind, kind) &&
           equal(each.second->options, options);
  });
  return found == end ? nullptr : found->second;
}

nb::object Calls::run(Call& call, const nb::tuple& tensors, const Described& described) const {
  const nb::dlpack::device device = described.front().device;
  void* const stream = exchange_.find_stream(device);
  std::optional<Held> held;  // keeps other launches out
  if (call.has_shared) held.emplace(call.plan->rank());
  try {
    const nb::tuple results = make_results(call, device, stream);
    if (warming > 0) {
      for (const nb::handle each : results) each.attr("zero_")();
    } else {
      launch(call, tensors, described, results, stream);
    }
    return results;
  } catch (nb::python_error& error) {
    call.answer.attr("note")(error.value());
    throw;
  }
}

void Calls::forget(nb::handle answer) {
  std::erase_if(known_, [&](const auto& each) { return each.second->answer.is(answer); });
}

std::int64_t Calls::find_last(nb::handle answer) const {
  std::int64_t last = 0;
  for (const auto& [key, call] : known_) {
    if (call->answer.is(answer)) last = std::max(last, call->last);
  }
  return last;
}

bool Calls::describe(const nb::tuple& tensors, Described& described,
                     std::vector<std::int64_t>& kind) const {
  constexpr std::size_t kUsual = 5;  // typical number of values per tensor
  described.reserve(tensors.size());
  kind.reserve(tensors.size() * (kUsual + 2));
  for (const nb::handle tensor : tensors) {
    if (tensor.is_none()) {
      kind.push_back(-1);
      continue;
    }
    const auto one = exchange_.describe(tensor);
    if (!one) return false;
    kind.push_back(std::int64_t{one->device.device_type} << 32 | one->device.device_id);
    kind.push_back(std::int64_t{one->dtype.code} << 32 | one->dtype.bits << 16 | one->dtype.lanes);
    kind.push_back(one->ndim);
    kind.insert(kind.end(), one->shape, one->shape + one->ndim);
    described.push_back(*one);
  }
  return true;
}

std::shared_ptr<Calls::Call> Calls::read(const nb::object& made) const {
  const auto read_seen = [](nb::handle given) {
    Seen seen{.given = nb::borrow(given), .name = {}};
    if (given.is_none()) return seen;
    seen.name = nb::cast<std::string>(given.attr("name"));
    seen.merged = nb::cast<int>(given.attr("merged"));
    seen.dropped = nb::cast<int>(given.attr("dropped"));
    return seen;
  };
  auto call = std::make_shared<Call>();
  call->answer = made.attr("answer");
  call->executable = call->answer.attr("handle");
  if (!call->executable.is_none()) call->plan = nb::cast<LoadedPlan*>(call->executable);
  for (const nb::handle each : made.attr("inputs")) call->inputs.push_back(read_seen(each));
  for (const nb::handle each : made.attr("results")) {
    Result& result = call->results.emplace_back();
    result.seen = read_seen(each.attr("seen"));
    result.arguments = nb::make_tuple(each.attr("shape"), each.attr("stride"), each.attr("dtype"));
    result.shape = nb::cast<std::vector<std::int64_t>>(each.attr("shape"));
    const nb::tuple of_none =
        nb::make_tuple(nb::make_tuple(0), nb::make_tuple(1), each.attr("dtype"));
    result.dtype = exchange_.describe(call_python(empty_on_host_, of_none)).value().dtype;
    if (call->plan == nullptr) continue;
    const std::vector<LocalTensor>& known = call->plan->tensors();
    const auto found = std::ranges::find(known, result.seen.name, &LocalTensor::name);
    result.at = static_cast<std::size_t>(found - known.begin());
    const bool is_empty = std::ranges::find(result.shape, 0) != result.shape.end();
    result.is_shared = found->place == LocalTensor::Place::Heap && !is_empty;
    call->has_shared |= result.is_shared;
  }
  return call;
}

// Results that other ranks write are in the heap, if it has room.
nb::tuple Calls::make_results(Call& call, nb::dlpack::device device, void* stream) const {
  const nb::tuple results = nb::steal<nb::tuple>(PyTuple_New(std::ssize(call.results)));
  std::vector<std::shared_ptr<std::byte>> taken;
  if (call.has_shared && warming == 0) taken = call.plan->take_results(stream);
  for (std::size_t at = 0; at < call.results.size(); ++at) {
    const Result& each = call.results[at];
    const bool is_taken = !taken.empty() && taken[each.at] != nullptr;
    nb::object made = is_taken ? exchange_.adopt(taken[each.at], each.dtype, each.shape, device)
                               : make_result(each, device);
    PyTuple_SetItem(results.ptr(), static_cast<Py_ssize_t>(at), made.release().ptr());
    if (!each.is_shared || is_taken || warming > 0) continue;
    if (!std::exchange(call.is_told, true)) call.answer.attr("tell_copied")();
  }
  return results;
}

nb::object Calls::make_result(const Result& result, nb::dlpack::device device) const {
  if (device.device_type == nb::device::cpu::value) {
    return call_python(empty_on_host_, result.arguments);
  }
  nb::object made = call_python(empty_on_gpu_, result.arguments);  // on the current GPU
  if (exchange_.describe(made)->device.device_id == device.device_id) return made;
  const OnGpu there(exchange_gpu_, device.device_id);
  return call_python(empty_on_gpu_, result.arguments);
}

void Calls::launch(const Call& call, const nb::tuple& tensors, const Described& described,
                   const nb::tuple& results, void* stream) const {
  std::vector<Argument> arguments;
  arguments.reserve(call.inputs.size() + call.results.size());
  std::vector<nb::object> copies;
  auto next = described.begin();
  for (std::size_t at = 0; at < tensors.size(); ++at) {
    const nb::handle tensor = tensors[at];
    if (tensor.is_none()) continue;
    nb::object copy;
    arguments.push_back(see(call.inputs[at], tensor, *next++, copy));
    if (copy.is_valid()) copies.push_back(std::move(copy));
  }
  for (std::size_t at = 0; at < call.results.size(); ++at) {
    nb::object copy;  // unused: results are dense
    const auto made = exchange_.describe(results[at]);
    arguments.push_back(see(call.results[at].seen, results[at], *made, copy));
  }
  call.plan->launch(arguments, stream);
}

Argument Calls::see(const Seen& seen, nb::handle tensor, const nb::dlpack::dltensor& described,
                    nb::object& holder) const {
  if (seen.merged == 0) return {seen.name, view_of(described, seen.dropped)};
  const Merged merged = merge(described, seen.merged);
  if (merged.is_one) {
    View view = view_of(described, seen.merged);
    view.shape[0] = merged.extent;
    view.strides[0] = merged.stride;
    return {seen.name, view};
  }
  holder = seen.given.attr("flatten")(tensor);
  return {seen.name, view_of(exchange_.describe(holder).value(), 0)};
}

void bind_calls(nb::module_& module) {
  nb::class_<Calls>(module, "Calls")
      .def(nb::init<nb::handle, nb::object, nb::object, nb::object>(), "tensor_type"_a,
           "empty_on_host"_a, "empty_on_gpu"_a, "exchange_gpu"_a)
      .def("execute", &Calls::execute)
      .def("forget", &Calls::forget, "answer"_a)
      .def("find_last", &Calls::find_last, "answer"_a)
      .def_rw("warming", &Calls::warming);
}

}  // namespace harpe::python
