#include "extension/loaded_plan.h"

#include <algorithm>
#include <mutex>

namespace harpe::python {

LoadedPlan::~LoadedPlan() {
  if (!rank_) return;
  const nb::gil_scoped_release released;
  const std::scoped_lock lock(rank_->mutex);
  executable_.reset();
}

ExecutableStatus LoadedPlan::status() const {
  return call(*rank_, [&] { return Checked(executable_->status()); });
}

// Rejects an input in place of an output, because inputs are never written.
void LoadedPlan::check_name(std::string_view name, Buffer::Role role) const {
  const auto found = std::ranges::find(tensors(), name, &LocalTensor::name);
  if (found != tensors().end() && found->role == role) return;
  std::string known;
  for (const LocalTensor& tensor : tensors()) {
    if (tensor.role == role) known += (known.empty() ? "`" : ", `") + tensor.name + "`";
  }
  nb::dict fields;
  fields["name"] = nb::str(name.data(), name.size());
  fields["program"] = program_;
  fields["hint"] = "";
  fields["known"] = known;
  refuse(role == Buffer::Role::In ? "I301" : "I305", fields);
}

void LoadedPlan::take(const nb::dict& given, Buffer::Role role, Array* arrays,
                      std::vector<Argument>& arguments) const {
  for (const auto [key, object] : given) {
    Py_ssize_t length = 0;
    const char* const text = PyUnicode_AsUTF8AndSize(key.ptr(), &length);
    if (text == nullptr) throw nb::python_error();
    const std::string_view name(text, static_cast<std::size_t>(length));
    check_name(name, role);
    arrays->take(object, name,
                 {.is_written = role == Buffer::Role::Out, .is_on_gpu = rank_->gpu.has_value()});
    arguments.emplace_back(name, arrays->view());
    ++arrays;
  }
}

void LoadedPlan::launch(const nb::dict& inputs, const nb::dict& outputs,
                        std::uintptr_t stream) const {
  std::vector<Array> arrays(inputs.size() + outputs.size());
  std::vector<Argument> arguments;
  arguments.reserve(arrays.size());
  take(inputs, Buffer::Role::In, arrays.data(), arguments);
  take(outputs, Buffer::Role::Out, arrays.data() + inputs.size(), arguments);
  launch(arguments, reinterpret_cast<void*>(stream));
}

std::vector<std::shared_ptr<std::byte>> LoadedPlan::take_results(void* stream) const {
  return call(*rank_, [&] { return executable_->take_results(stream); });
}

void LoadedPlan::launch(std::span<const Argument> arguments, void* stream) const {
  (void)call(*rank_, [&] { return executable_->launch(stream, arguments); });
}

}  // namespace harpe::python
