#include "extension/tensors.h"

#include <utility>

namespace harpe::python {

// Laid out as in DLPack's header from version 1.3; functions return 0, or -1 and set an exception.
struct ExchangeTable {
  struct Version {
    std::uint32_t major, minor;
  };
  struct Managed {
    Version version;
    void* owner;
    void (*deleter)(Managed*);
    std::uint64_t flags;
    nb::dlpack::dltensor tensor;
  };

  Version version;
  const void* previous;
  const void* allocate;
  const void* from_python;
  int (*to_python)(Managed*, void** object);
  int (*view)(void* object, nb::dlpack::dltensor*);  // null if there is none
  int (*current_stream)(std::int32_t device_type, std::int32_t device, void** stream);
};

namespace {

constexpr std::uint32_t kMajor = 1;
constexpr const char* kAttribute = "__dlpack_c_exchange_api__";

bool is_known(nb::dlpack::device device) {
  return device.device_type == nb::device::cpu::value ||
         device.device_type == nb::device::cuda::value;
}

// The owner of a tensor's memory.
struct Adopted {
  ExchangeTable::Managed managed;
  std::shared_ptr<std::byte> memory;
  std::vector<std::int64_t> shape, strides;
};

}  // namespace

TensorExchange::TensorExchange(nb::handle type)
    : capsule_(nb::getattr(type, kAttribute, nb::none())), table_(nullptr) {
  if (!capsule_.is_none()) {
    table_ = static_cast<const ExchangeTable*>(
        PyCapsule_GetPointer(capsule_.ptr(), "dlpack_exchange_api"));
    if (table_ == nullptr) throw nb::python_error();
  }
  if (table_ == nullptr || table_->version.major != kMajor || table_->view == nullptr) {
    throw nb::type_error("harpe.ops needs DLPack's C exchange API, which PyTorch has from 2.10 on");
  }
}

std::optional<nb::dlpack::dltensor> TensorExchange::describe(nb::handle tensor) const {
  nb::dlpack::dltensor made;
  if (table_->view(tensor.ptr(), &made) != 0) {
    PyErr_Clear();
    return std::nullopt;
  }
  if (!is_known(made.device)) return std::nullopt;
  return made;
}

void* TensorExchange::find_stream(nb::dlpack::device device) const {
  void* stream = nullptr;
  if (device.device_type == nb::device::cpu::value) return stream;
  if (table_->current_stream(device.device_type, device.device_id, &stream) != 0) {
    throw nb::python_error();
  }
  return stream;
}

nb::object TensorExchange::adopt(std::shared_ptr<std::byte> memory, nb::dlpack::dtype dtype,
                                 const std::vector<std::int64_t>& shape,
                                 nb::dlpack::device device) const {
  auto adopted = std::make_unique<Adopted>(
      Adopted{.managed = {}, .memory = std::move(memory), .shape = shape, .strides = shape});
  std::int64_t stride = 1;
  for (std::size_t axis = shape.size(); axis-- > 0; stride *= shape[axis]) {
    adopted->strides[axis] = stride;
  }
  adopted->managed = {
      .version = {kMajor, 0},
      .owner = adopted.get(),
      .deleter = [](ExchangeTable::Managed* ended) { delete static_cast<Adopted*>(ended->owner); },
      .flags = 0,
      .tensor = {}};
  adopted->managed.tensor = {.data = adopted->memory.get(),
                             .device = device,
                             .ndim = static_cast<std::int32_t>(shape.size()),
                             .dtype = dtype,
                             .shape = adopted->shape.data(),
                             .strides = adopted->strides.data(),
                             .byte_offset = 0};
  void* object = nullptr;
  if (table_->to_python(&adopted->managed, &object) != 0) throw nb::python_error();
  static_cast<void>(adopted.release());  // now owned by PyTorch
  return nb::steal(static_cast<PyObject*>(object));
}

}  // namespace harpe::python
