// Replay of recorded calls in C++: guards, allocations, launches and autograd nodes.  See __init__.py.
//
// The GIL protects all objects.  It is released during driver calls, because a launch blocks while the queue is full.

#define PY_SSIZE_T_CLEAN
#include <ATen/EmptyTensor.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/empty_strided.h>
#include <c10/core/GradMode.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <torch/csrc/Exceptions.h>
#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/python_variable.h>
#include <torch/csrc/autograd/saved_variable.h>
#include <structmember.h>
#include <torch/csrc/autograd/variable.h>

#include <array>
#include <cstring>
#include <memory>
#include <new>
#include <unordered_map>
#include <vector>

namespace {

using at::Tensor;
using torch::autograd::Edge;
using torch::autograd::SavedVariable;
using torch::autograd::variable_list;
using Pointers = c10::SmallVector<const Tensor*, 12>;
using Tensors = c10::SmallVector<Tensor, 6>;

/// Throws the Python error that is set.
[[noreturn]] void throw_python() {
  python_error error;
  error.persist();
  throw error;
}

PyObject* checked(PyObject* x) {
  if (x == nullptr) throw_python();
  return x;
}

/// An owned reference.  It must be released with the GIL held.
class Owned {
 public:
  explicit Owned(PyObject* stolen = nullptr) : x_(stolen) {}
  Owned(Owned&& other) noexcept : x_(other.release()) {}
  Owned& operator=(Owned&& other) noexcept {
    PyObject* old = x_;
    x_ = other.release();
    Py_XDECREF(old);
    return *this;
  }
  ~Owned() { Py_XDECREF(x_); }
  static Owned share(PyObject* x) { return Owned(Py_NewRef(x)); }
  PyObject* get() const { return x_; }
  PyObject* release() {
    PyObject* x = x_;
    x_ = nullptr;
    return x;
  }

 private:
  PyObject* x_;
};

int64_t integer(PyObject* x) {
  const long long value = PyLong_AsLongLong(x);
  if (value == -1 && PyErr_Occurred()) throw_python();
  return value;
}

uint64_t unsigned_integer(PyObject* x) {
  const unsigned long long value = PyLong_AsUnsignedLongLong(x);
  if (value == ~0ULL && PyErr_Occurred()) throw_python();
  return value;
}

/// The items of a tuple or list of Python.
struct Items {
  explicit Items(PyObject* x) : fast(checked(PySequence_Fast(x, "a sequence is needed"))) {}
  size_t size() const { return static_cast<size_t>(PySequence_Fast_GET_SIZE(fast.get())); }
  PyObject* operator[](size_t i) const {
    TORCH_CHECK(i < size(), "a sequence is too short");
    return PySequence_Fast_GET_ITEM(fast.get(), static_cast<Py_ssize_t>(i));
  }
  Owned fast;
};

std::vector<int64_t> integers(PyObject* x) {
  Items items(x);
  std::vector<int64_t> made;
  for (size_t i = 0; i < items.size(); ++i) made.push_back(integer(items[i]));
  return made;
}

// ---------------------------------------------------------------------------------------------------------- launches

/// CUlaunchAttribute.
struct Attribute {
  int id;
  int padding;
  union {
    unsigned words[16];
    int flag;
  } value;
};
static_assert(sizeof(Attribute) == 72);

/// CUlaunchConfig.
struct Config {
  unsigned grid[3];
  unsigned block[3];
  unsigned shared_bytes;
  void* stream;
  Attribute* attributes;
  unsigned attribute_count;
};
static_assert(sizeof(Config) == 56);

enum { COOPERATIVE = 2, CLUSTER_DIMENSION = 4, PROGRAMMATIC_STREAM_SERIALIZATION = 6 };

using Launch = int (*)(const Config*, void*, void**, void**);
constexpr size_t MAP_BYTES = 128;
constexpr size_t MAPS = 64;  // encoded tensor maps that a parameter keeps

struct Patch {
  size_t place;  // byte in the parameter memory
  size_t argument;
  uint64_t add;
};

struct TensorMap {
  size_t parameter;
  size_t argument;
  size_t place;  // byte in the parameter memory
  Owned encode;  // encode(address) returns the host address of the map
  std::unordered_map<uint64_t, std::unique_ptr<std::array<unsigned char, MAP_BYTES>>> known;

  const unsigned char* at(uint64_t address) {
    auto found = known.find(address);
    if (found != known.end()) return found->second->data();
    Owned host(checked(PyObject_CallFunction(encode.get(), "K", static_cast<unsigned long long>(address))));
    if (known.size() >= MAPS) known.clear();
    auto bytes = std::make_unique<std::array<unsigned char, MAP_BYTES>>();
    std::memcpy(bytes->data(), reinterpret_cast<const void*>(unsigned_integer(host.get())), MAP_BYTES);
    return (known[address] = std::move(bytes))->data();
  }
};

struct Kernel {
  void* function = nullptr;
  Config config{};
  std::vector<Attribute> attributes;
  std::vector<unsigned char> memory;  // of all parameters
  std::vector<size_t> parameters;     // bytes in the memory
  std::vector<Patch> patches;
  std::vector<TensorMap> maps;
};

/// Kernels that one call of a launch runs in order, with their parameters.
struct Kernels {
  PyObject_HEAD
  vectorcallfunc call;
  Launch launch;
  std::vector<Kernel>* kernels;
  PyObject* failed;  // failed(index, code, stream, addresses) after an error of the driver

  void run(uint64_t stream, const uint64_t* addresses, size_t count) {
    constexpr size_t SMALL = 8192;
    alignas(64) unsigned char small[SMALL];
    std::unique_ptr<unsigned char[]> large;
    void* given[64];
    for (size_t i = 0; i < kernels->size(); ++i) {
      Kernel& k = (*kernels)[i];
      unsigned char* memory = small;
      if (k.memory.size() + 64 > SMALL) {
        large.reset(new unsigned char[k.memory.size() + 64]);
        memory = reinterpret_cast<unsigned char*>((reinterpret_cast<uintptr_t>(large.get()) + 63) & ~uintptr_t(63));
      }
      std::memcpy(memory, k.memory.data(), k.memory.size());
      for (const Patch& p : k.patches) {
        const uint64_t word = addresses[p.argument] + p.add;
        std::memcpy(memory + p.place, &word, 8);
      }
      for (TensorMap& m : k.maps) std::memcpy(memory + m.place, m.at(addresses[m.argument]), MAP_BYTES);
      for (size_t n = 0; n < k.parameters.size(); ++n) given[n] = memory + k.parameters[n];
      Config config = k.config;
      config.stream = reinterpret_cast<void*>(stream);
      config.attributes = k.attributes.empty() ? nullptr : k.attributes.data();
      int code = 0;
      Py_BEGIN_ALLOW_THREADS
      code = launch(&config, k.function, given, nullptr);
      Py_END_ALLOW_THREADS
      if (code == 0) continue;
      Owned list(checked(PyTuple_New(static_cast<Py_ssize_t>(count))));
      for (size_t n = 0; n < count; ++n) {
        PyTuple_SET_ITEM(list.get(), static_cast<Py_ssize_t>(n), checked(PyLong_FromUnsignedLongLong(addresses[n])));
      }
      Owned done(checked(PyObject_CallFunction(
          failed, "niKO", static_cast<Py_ssize_t>(i), code, static_cast<unsigned long long>(stream), list.get())));
      return;
    }
  }
};

/// Returns a kernel of (function, grid, block, shared bytes, cluster or None, cooperative, pdl, buffers, patches, maps).
Kernel kernel_of(PyObject* given, size_t arguments) {
  Items x(given);
  Kernel k;
  k.function = reinterpret_cast<void*>(unsigned_integer(x[0]));
  const auto grid = integers(x[1]), block = integers(x[2]);
  TORCH_CHECK(grid.size() == 3 && block.size() == 3, "grid and block have three extents");
  for (int i = 0; i < 3; ++i) {
    k.config.grid[i] = static_cast<unsigned>(grid[i]);
    k.config.block[i] = static_cast<unsigned>(block[i]);
  }
  k.config.shared_bytes = static_cast<unsigned>(integer(x[3]));
  if (x[4] != Py_None) {
    Attribute a{CLUSTER_DIMENSION, 0, {}};
    const auto cluster = integers(x[4]);
    for (int i = 0; i < 3; ++i) a.value.words[i] = static_cast<unsigned>(cluster.at(i));
    k.attributes.push_back(a);
  }
  for (const auto& [place, id] : {std::pair(5, COOPERATIVE), std::pair(6, PROGRAMMATIC_STREAM_SERIALIZATION)}) {
    if (PyObject_IsTrue(x[place])) {
      Attribute a{id, 0, {}};
      a.value.flag = 1;
      k.attributes.push_back(a);
    }
  }
  k.config.attribute_count = static_cast<unsigned>(k.attributes.size());
  Items buffers(x[7]), patches(x[8]), maps(x[9]);
  TORCH_CHECK(buffers.size() <= 64, "a kernel has more than 64 parameters");
  std::vector<TensorMap> found;
  for (size_t i = 0; i < maps.size(); ++i) {
    Items m(maps[i]);
    TensorMap made;
    made.parameter = unsigned_integer(m[0]);
    made.argument = unsigned_integer(m[1]);
    made.encode = Owned::share(m[2]);
    TORCH_CHECK(made.argument < arguments && made.parameter < buffers.size(), "a tensor map has no argument");
    found.push_back(std::move(made));
  }
  for (size_t i = 0; i < buffers.size(); ++i) {
    char* bytes = nullptr;
    Py_ssize_t size = 0;
    if (PyBytes_AsStringAndSize(buffers[i], &bytes, &size)) throw_python();
    const size_t begin = (k.memory.size() + 63) / 64 * 64;
    size_t total = static_cast<size_t>(size);
    for (TensorMap& m : found) {
      if (m.parameter == i) {
        m.place = begin;
        total = std::max(total, MAP_BYTES);
      }
    }
    k.memory.resize(begin + total);
    std::memcpy(k.memory.data() + begin, bytes, static_cast<size_t>(size));
    k.parameters.push_back(begin);
  }
  k.memory.resize((k.memory.size() + 63) / 64 * 64);  // a patch of a 4-byte number writes 8 bytes
  for (size_t i = 0; i < patches.size(); ++i) {
    Items p(patches[i]);
    const size_t parameter = unsigned_integer(p[0]);
    TORCH_CHECK(parameter < k.parameters.size(), "a patch has no parameter");
    Patch made{k.parameters[parameter] + unsigned_integer(p[1]), unsigned_integer(p[2]),
               static_cast<uint64_t>(integer(p[3]))};
    TORCH_CHECK(made.argument < arguments && made.place + 8 <= k.memory.size(), "a patch has no argument");
    k.patches.push_back(made);
  }
  k.maps = std::move(found);
  return k;
}

PyTypeObject* KernelsType = nullptr;
PyTypeObject* RunType = nullptr;
PyTypeObject* NodeType = nullptr;
PyTypeObject* CallType = nullptr;
PyTypeObject* CallsType = nullptr;

PyObject* kernels_call(PyObject* self, PyObject* const* args, size_t flags, PyObject* names) {
  HANDLE_TH_ERRORS
  const size_t count = static_cast<size_t>(PyVectorcall_NARGS(flags));
  TORCH_CHECK(count > 0 && names == nullptr, "launch(stream, *addresses) takes positional arguments");
  c10::SmallVector<uint64_t, 16> addresses;
  for (size_t i = 1; i < count; ++i) addresses.push_back(unsigned_integer(args[i]));
  // Patches were checked against the number of arguments, so at least as many are needed.
  addresses.resize(std::max<size_t>(addresses.size(), 64), 0);
  reinterpret_cast<Kernels*>(self)->run(unsigned_integer(args[0]), addresses.data(), count - 1);
  Py_RETURN_NONE;
  END_HANDLE_TH_ERRORS
}

/// Kernels(launch, kernels, arguments, failed): `launch` is the address of cuLaunchKernelEx.
PyObject* kernels_new(PyTypeObject* type, PyObject* args, PyObject*) {
  HANDLE_TH_ERRORS
  unsigned long long launch = 0;
  PyObject *given = nullptr, *failed = nullptr;
  Py_ssize_t arguments = 0;
  if (!PyArg_ParseTuple(args, "KOnO", &launch, &given, &arguments, &failed)) return nullptr;
  TORCH_CHECK(arguments <= 64, "a launch has more than 64 arguments");
  auto kernels = std::make_unique<std::vector<Kernel>>();
  Items items(given);
  for (size_t i = 0; i < items.size(); ++i) kernels->push_back(kernel_of(items[i], static_cast<size_t>(arguments)));
  Owned self(checked(type->tp_alloc(type, 0)));
  auto* x = reinterpret_cast<Kernels*>(self.get());
  x->call = kernels_call;
  x->launch = reinterpret_cast<Launch>(launch);
  x->kernels = kernels.release();
  x->failed = Py_NewRef(failed);
  return self.release();
  END_HANDLE_TH_ERRORS
}

void kernels_free(PyObject* self) {
  auto* x = reinterpret_cast<Kernels*>(self);
  delete x->kernels;
  Py_XDECREF(x->failed);
  PyTypeObject* type = Py_TYPE(self);
  type->tp_free(self);
  Py_DECREF(type);
}

// ------------------------------------------------------------------------------------------------------------ replay

/// A part of a tensor, or one of its results.
struct Part {
  int64_t place = -1;  // -1: None
  bool whole = true;
  bool given = false;  // the offset is relative to that of the tensor
  int64_t offset = 0;
  std::vector<int64_t> sizes, strides;

  Tensor of(const Tensor& t) const {
    if (whole) return t;
    return t.as_strided(sizes, strides, given ? t.storage_offset() + offset : offset);
  }
};

/// Returns the part of a `replay.Slice`: (place, shape, strides, offset, given, whole); or of a number, or None.
Part part_of(PyObject* x, size_t count) {
  Part part;
  if (x == Py_None) return part;
  if (PyLong_Check(x)) {
    part.place = integer(x);
  } else {
    Items items(x);
    part.place = integer(items[0]);
    part.sizes = integers(items[1]);
    part.strides = integers(items[2]);
    part.offset = integer(items[3]);
    part.given = PyObject_IsTrue(items[4]) == 1;
    part.whole = PyObject_IsTrue(items[5]) == 1;
  }
  TORCH_CHECK(part.place >= 0 && part.place < static_cast<int64_t>(count), "a part has no tensor");
  return part;
}

struct Step {
  enum Kind { LAUNCH, COPY, FILL, CALL } kind;
  // of a launch
  Owned launch;                 // Kernels, or launch(stream, *addresses)
  std::vector<int64_t> order;   // tensors, or -1 for an address of 0
  std::vector<int64_t> offsets; // bytes; as long as `order`
  Owned more;                   // returns more addresses for a stream; may be None
  size_t behind = 0;            // addresses before those
  // of a copy or fill
  Part to, of;
  c10::Scalar value;
  // of a call of a torch operator
  Owned function;
  std::vector<std::pair<Part, Owned>> taken;  // tensors, or constants, which are not null
  Owned names;                                // of the last arguments
  size_t results = 0;                         // 0: a single tensor
};

struct Allocation {
  std::vector<int64_t> sizes, strides;
  at::ScalarType type;
};

/// A recorded call without gradients.
struct Run {
  PyObject_HEAD
  vectorcallfunc call;
  struct Body {
    size_t tensors;
    std::vector<Step> steps;
    std::vector<Allocation> made;
    std::vector<Part> returned;
    bool is_tuple;
    uint64_t mask;
    std::vector<int64_t> lows;               // of each tensor; -1: not used
    std::vector<bool> used;                  // allocations that launches use
    std::vector<std::array<int64_t, 3>> tied;   // i, j, distance
    std::vector<std::array<int64_t, 4>> apart;  // i, j, bytes of i, bytes of j
    at::Device device{at::kCPU};
    const c10::impl::DeviceGuardImplInterface* guard = nullptr;
    c10::Allocator* allocator = nullptr;
    Owned stream_of;
    bool launches = false;
    size_t called = 0;  // results of torch operators
  }* body;

  Tensor empty(const Allocation& x) const {
    const Body& b = *body;
    if (b.device.is_cpu()) return at::detail::empty_strided_cpu(x.sizes, x.strides, x.type);
    if (b.allocator != nullptr && b.guard->getDevice().index() == b.device.index()) {
      return Tensor(at::detail::empty_strided_generic(
          x.sizes, x.strides, b.allocator, c10::DispatchKeySet(c10::DispatchKey::CUDA), x.type));
    }
    return at::empty_strided(x.sizes, x.strides, at::TensorOptions().dtype(x.type).device(b.device));
  }

  /// Returns the driver's handle of the current stream.  torch's identifiers of streams are never reused.
  uint64_t stream() const {
    const Body& b = *body;
    static std::unordered_map<int64_t, uint64_t> known[64];
    const auto index = b.device.index();
    const bool caches = b.guard != nullptr && index >= 0 && index < 64;
    int64_t id = 0;
    if (caches) {
      id = b.guard->getStream(b.device).id();
      auto found = known[index].find(id);
      if (found != known[index].end()) return found->second;
    }
    Owned raw(checked(PyObject_CallFunction(b.stream_of.get(), "i", static_cast<int>(std::max<int>(index, 0)))));
    const uint64_t handle = unsigned_integer(raw.get());
    if (caches) known[index][id] = handle;
    return handle;
  }

  /// Replays the call; false, and nothing is done, if the addresses do not match.
  bool replay(const Pointers& given, Tensors& results) const {
    const Body& b = *body;
    c10::SmallVector<uint64_t, 16> addresses;
    for (const Tensor* t : given) addresses.push_back(reinterpret_cast<uint64_t>(t->data_ptr()));
    for (const auto& [i, j, distance] : b.tied) {
      if (static_cast<int64_t>(addresses[j] - addresses[i]) != distance) return false;
    }
    for (const auto& [i, j, n, m] : b.apart) {
      if (addresses[j] < addresses[i] + n && addresses[i] < addresses[j] + m) return false;
    }
    for (size_t i = 0; i < b.tensors; ++i) {
      if (b.lows[i] >= 0 && (addresses[i] & b.mask) != static_cast<uint64_t>(b.lows[i])) return false;
    }
    Tensors made;
    Pointers all(given.begin(), given.end());
    made.reserve(b.made.size() + b.called);
    for (size_t i = 0; i < b.made.size(); ++i) {
      made.push_back(empty(b.made[i]));
      all.push_back(&made.back());
      addresses.push_back(reinterpret_cast<uint64_t>(made.back().data_ptr()));
      if (b.used[i] && (addresses.back() & b.mask)) return false;
    }
    const uint64_t raw = b.launches ? stream() : 0;
    for (const Step& s : b.steps) {
      if (s.kind == Step::LAUNCH) {
        launch(s, raw, addresses.data());
      } else if (s.kind == Step::COPY) {
        s.to.of(*all[s.to.place]).copy_(s.of.of(*all[s.of.place]));
      } else if (s.kind == Step::FILL) {
        s.to.of(*all[s.to.place]).fill_(s.value);
      } else {
        const size_t before = made.size();
        call_operator(s, all, made);
        for (size_t i = before; i < made.size(); ++i) {
          all.push_back(&made[i]);
          addresses.push_back(reinterpret_cast<uint64_t>(made[i].data_ptr()));
        }
      }
    }
    for (const Part& p : b.returned) results.push_back(p.place < 0 ? Tensor() : p.of(*all[p.place]));
    return true;
  }

  /// Calls a torch operator, and appends its results.
  void call_operator(const Step& s, const Pointers& all, Tensors& made) const {
    std::vector<Owned> given;
    c10::SmallVector<PyObject*, 8> args;
    for (const auto& [part, constant] : s.taken) {
      if (constant.get() != nullptr) given.push_back(Owned::share(constant.get()));
      else given.emplace_back(checked(THPVariable_Wrap(part.of(*all[part.place]))));
      args.push_back(given.back().get());
    }
    const size_t named = static_cast<size_t>(PyTuple_GET_SIZE(s.names.get()));
    Owned done(checked(PyObject_Vectorcall(s.function.get(), args.data(), args.size() - named, s.names.get())));
    if (s.results == 0) {
      made.push_back(THPVariable_Unpack(done.get()));
      return;
    }
    Items items(done.get());
    for (size_t i = 0; i < s.results; ++i) made.push_back(THPVariable_Unpack(items[i]));
  }

  void launch(const Step& s, uint64_t raw, const uint64_t* addresses) const {
    c10::SmallVector<uint64_t, 64> values;
    auto add_more = [&]() {
      Owned found(checked(PyObject_CallFunction(s.more.get(), "K", static_cast<unsigned long long>(raw))));
      Items items(found.get());
      for (size_t i = 0; i < items.size(); ++i) values.push_back(unsigned_integer(items[i]));
    };
    for (size_t i = 0; i < s.order.size(); ++i) {
      if (i == s.behind && s.more.get() != Py_None) add_more();
      values.push_back(s.order[i] < 0 ? 0 : addresses[s.order[i]] + s.offsets[i]);
    }
    if (s.behind >= s.order.size() && s.more.get() != Py_None) add_more();
    const size_t n = values.size();
    if (Py_TYPE(s.launch.get()) == KernelsType) {
      TORCH_CHECK(n <= 64, "a launch has more than 64 arguments");
      values.resize(64, 0);  // patches were checked against the number of arguments
      reinterpret_cast<Kernels*>(s.launch.get())->run(raw, values.data(), n);
      return;
    }
    Owned args(checked(PyTuple_New(static_cast<Py_ssize_t>(n + 1))));
    PyTuple_SET_ITEM(args.get(), 0, checked(PyLong_FromUnsignedLongLong(raw)));
    for (size_t i = 0; i < n; ++i) {
      PyTuple_SET_ITEM(args.get(), static_cast<Py_ssize_t>(i + 1), checked(PyLong_FromUnsignedLongLong(values[i])));
    }
    Owned done(checked(PyObject_CallObject(s.launch.get(), args.get())));
  }

  /// Returns a result of Python: a tensor, an argument itself, or None.
  PyObject* wrapped(size_t i, const Tensor& t, PyObject* const* given) const {
    const Part& p = body->returned[i];
    if (p.place < 0) return Py_NewRef(Py_None);
    if (given != nullptr && p.whole && p.place < static_cast<int64_t>(body->tensors)) return Py_NewRef(given[p.place]);
    return checked(THPVariable_Wrap(t));
  }

  /// Returns the result of Python for arguments of Python; None if the addresses do not match.
  PyObject* replayed(PyObject* const* args) const {
    Pointers given;
    for (size_t i = 0; i < body->tensors; ++i) given.push_back(&THPVariable_Unpack(args[i]));
    Tensors results;
    if (!replay(given, results)) Py_RETURN_NONE;
    if (!body->is_tuple) return wrapped(0, results[0], args);
    Owned tuple(checked(PyTuple_New(static_cast<Py_ssize_t>(results.size()))));
    for (size_t i = 0; i < results.size(); ++i) {
      PyTuple_SET_ITEM(tuple.get(), static_cast<Py_ssize_t>(i), wrapped(i, results[i], args));
    }
    return tuple.release();
  }
};

/// Raises TypeError unless a function gets this number of tensors.
bool takes_tensors(PyObject* const* args, size_t flags, PyObject* names, size_t count) {
  const size_t given = static_cast<size_t>(PyVectorcall_NARGS(flags));
  bool fits = given == count && names == nullptr;
  for (size_t i = 0; fits && i < count; ++i) fits = THPVariable_CheckExact(args[i]);
  if (!fits) PyErr_Format(PyExc_TypeError, "run() takes %zu tensors, got %zu arguments", count, given);
  return fits;
}

PyObject* run_call(PyObject* self, PyObject* const* args, size_t flags, PyObject* names) {
  HANDLE_TH_ERRORS
  auto* run = reinterpret_cast<Run*>(self);
  if (!takes_tensors(args, flags, names, run->body->tensors)) return nullptr;
  return run->replayed(args);
  END_HANDLE_TH_ERRORS
}

/// Run(tensors, steps, made, like, stream_of, mask, returned, is_tuple, lows, tied, apart).
///
/// `like` is a tensor on the device.  A step is (launch, order, offsets, more, behind), (to, of), (to, value, None), or (operator,
/// arguments, names, results) with arguments (True, part) or (False, constant).
/// An allocation is (sizes, strides, empty tensor of its type).
PyObject* run_new(PyTypeObject* type, PyObject* args, PyObject*) {
  HANDLE_TH_ERRORS
  Py_ssize_t tensors = 0;
  PyObject *steps, *made, *like, *stream_of, *returned, *lows, *tied, *apart;
  unsigned long long mask = 0;
  int is_tuple = 0;
  if (!PyArg_ParseTuple(args, "nOOOOKOpOOO", &tensors, &steps, &made, &like, &stream_of, &mask, &returned, &is_tuple,
                        &lows, &tied, &apart)) {
    return nullptr;
  }
  auto body = std::make_unique<Run::Body>();
  body->tensors = static_cast<size_t>(tensors);
  body->mask = mask;
  body->is_tuple = is_tuple != 0;
  body->stream_of = Owned::share(stream_of);
  const Tensor& one = THPVariable_Unpack(like);
  body->device = one.device();
  if (!body->device.is_cpu()) {
    body->guard = c10::impl::getDeviceGuardImpl(body->device.type());
    if (body->device.is_cuda()) body->allocator = one.storage().allocator();
  }
  Items allocations(made);
  for (size_t i = 0; i < allocations.size(); ++i) {
    Items x(allocations[i]);
    body->made.push_back({integers(x[0]), integers(x[1]), THPVariable_Unpack(x[2]).scalar_type()});
  }
  size_t count = body->tensors + body->made.size();
  body->used.assign(body->made.size(), false);
  Items list(steps);
  for (size_t i = 0; i < list.size(); ++i) {
    Items x(list[i]);
    Step s;
    if (x.size() == 5) {
      s.kind = Step::LAUNCH;
      s.launch = Owned::share(x[0]);
      s.order = integers(x[1]);
      s.offsets = integers(x[2]);
      s.more = Owned::share(x[3]);
      s.behind = unsigned_integer(x[4]);
      TORCH_CHECK(s.order.size() <= 60 || Py_TYPE(x[0]) != KernelsType, "a launch has more than 60 arguments");
      s.offsets.resize(s.order.size(), 0);
      for (int64_t place : s.order) {
        TORCH_CHECK(place < static_cast<int64_t>(count), "a launch has no argument");
        const size_t n = static_cast<size_t>(place - tensors);
        if (place >= tensors && n < body->made.size()) body->used[n] = true;
      }
      body->launches = true;
    } else if (x.size() == 4) {
      s.kind = Step::CALL;
      s.function = Owned::share(x[0]);
      Items taken(x[1]);
      for (size_t n = 0; n < taken.size(); ++n) {
        Items pair(taken[n]);
        if (pair[0] == Py_True) s.taken.emplace_back(part_of(pair[1], count), Owned());
        else s.taken.emplace_back(Part(), Owned::share(pair[1]));
      }
      s.names = Owned::share(x[2]);
      TORCH_CHECK(PyTuple_Check(x[2]), "names are a tuple");
      s.results = unsigned_integer(x[3]);
      body->called += std::max<size_t>(1, s.results);
      count += std::max<size_t>(1, s.results);
    } else {
      s.kind = x.size() == 2 ? Step::COPY : Step::FILL;
      s.to = part_of(x[0], count);
      if (s.kind == Step::COPY) s.of = part_of(x[1], count);
      else if (PyFloat_Check(x[1])) s.value = c10::Scalar(PyFloat_AS_DOUBLE(x[1]));
      else s.value = c10::Scalar(integer(x[1]));
    }
    body->steps.push_back(std::move(s));
  }
  Items results(returned);
  for (size_t i = 0; i < results.size(); ++i) body->returned.push_back(part_of(results[i], count));
  TORCH_CHECK(body->is_tuple || body->returned.size() == 1, "a call has one result or a tuple");
  body->lows = integers(lows);
  TORCH_CHECK(body->lows.size() == body->tensors, "each tensor has low bits of its address");
  Items ties(tied), aparts(apart);
  for (size_t i = 0; i < ties.size(); ++i) {
    const auto x = integers(ties[i]);
    body->tied.push_back({x.at(0), x.at(1), x.at(2)});
  }
  for (size_t i = 0; i < aparts.size(); ++i) {
    const auto x = integers(aparts[i]);
    body->apart.push_back({x.at(0), x.at(1), x.at(2), x.at(3)});
  }
  Owned self(checked(type->tp_alloc(type, 0)));
  auto* x = reinterpret_cast<Run*>(self.get());
  x->call = run_call;
  x->body = body.release();
  return self.release();
  END_HANDLE_TH_ERRORS
}

void run_free(PyObject* self) {
  delete reinterpret_cast<Run*>(self)->body;
  PyTypeObject* type = Py_TYPE(self);
  type->tp_free(self);
  Py_DECREF(type);
}

// ------------------------------------------------------------------------------------------------------------- calls

/// Properties of a tensor that torch's own guards compare.
struct Guard {
  PyTypeObject* type;
  uint64_t keys;
  at::ScalarType element;
  at::Device device;
  bool gradient;
  std::vector<int64_t> sizes, strides;
  size_t first;  // index at which the same tensor is passed first

  bool holds(const Tensor& t, const c10::impl::LocalDispatchKeySet& local) const {
    const c10::DispatchKeySet seen = (t.key_set() | local.included_) - local.excluded_;
    return seen.raw_repr() == keys && t.scalar_type() == element && t.device() == device &&
        t.requires_grad() == gradient && t.sizes() == at::IntArrayRef(sizes) &&
        t.strides() == at::IntArrayRef(strides);
  }
};

/// A recorded call and its guard.
struct Call {
  PyObject_HEAD
  std::vector<Guard>* guards;
  PyObject* how;
  PyObject* run;        // Run, Node, or a function of Python
  int gradients;        // whether gradients must be enabled; -1: either
  PyObject* allowed;    // the value that tf32() must return; None: any
  PyObject* tf32;
  PyObject* current;    // its attribute `recording` must be None
  PyObject* mismatch;   // the exception of a function of Python for other addresses

  /// Returns true if the same tensors are passed several times as in the recorded call.
  bool repeats_alike(const Pointers& given) const {
    size_t size = 16;
    while (size < 2 * given.size()) size *= 2;
    c10::SmallVector<uint32_t, 64> table(size, 0);  // by a hash of the tensor, the index at which it is first, plus 1
    for (size_t i = 0; i < given.size(); ++i) {
      const auto* t = given[i]->unsafeGetTensorImpl();
      size_t at = (reinterpret_cast<uintptr_t>(t) * 0x9E3779B97F4A7C15ULL) >> 20 & (size - 1);
      while (table[at] != 0 && given[table[at] - 1]->unsafeGetTensorImpl() != t) at = (at + 1) & (size - 1);
      if (table[at] == 0) table[at] = static_cast<uint32_t>(i + 1);
      if (table[at] - 1 != (*guards)[i].first) return false;
    }
    return true;
  }

  /// Returns true if a call is like the recorded one.  `types` may be null.
  bool is_like(PyObject* other, const Pointers& given, PyObject* const* types) const {
    if (given.size() != guards->size()) return false;
    if (other != how) {
      const int same = PyObject_RichCompareBool(other, how, Py_EQ);
      if (same < 0) throw_python();
      if (same == 0) return false;
    }
    const auto local = c10::impl::tls_local_dispatch_key_set();
    for (size_t i = 0; i < given.size(); ++i) {
      const Guard& g = (*guards)[i];
      if (types != nullptr && Py_TYPE(types[i]) != g.type) return false;
      if (!g.holds(*given[i], local)) return false;
    }
    if (!repeats_alike(given)) return false;
    if (gradients >= 0 && c10::GradMode::is_enabled() != (gradients != 0)) return false;
    if (allowed != Py_None) {
      Owned now(checked(PyObject_CallNoArgs(tf32)));
      if (now.get() != allowed) return false;
    }
    static PyObject* name = PyUnicode_InternFromString("recording");
    Owned recording(checked(PyObject_GetAttr(current, name)));
    return recording.get() == Py_None;
  }
};

/// Call(how, tensors, run, gradients, allowed, tf32, current, mismatch).
PyObject* call_new(PyTypeObject* type, PyObject* args, PyObject*) {
  HANDLE_TH_ERRORS
  PyObject *how, *tensors, *run, *gradients, *allowed, *tf32, *current, *mismatch;
  if (!PyArg_ParseTuple(args, "OOOOOOOO", &how, &tensors, &run, &gradients, &allowed, &tf32, &current, &mismatch)) {
    return nullptr;
  }
  auto guards = std::make_unique<std::vector<Guard>>();
  Items items(tensors);
  const auto local = c10::impl::tls_local_dispatch_key_set();
  for (size_t i = 0; i < items.size(); ++i) {
    TORCH_CHECK(THPVariable_CheckExact(items[i]), "a call takes plain tensors");
    const Tensor& t = THPVariable_Unpack(items[i]);
    size_t first = 0;
    while (items[first] != items[i]) ++first;
    const c10::DispatchKeySet keys = (t.key_set() | local.included_) - local.excluded_;
    guards->push_back({Py_TYPE(items[i]), keys.raw_repr(), t.scalar_type(), t.device(), t.requires_grad(),
                       t.sizes().vec(), t.strides().vec(), first});
  }
  Owned self(checked(type->tp_alloc(type, 0)));
  auto* x = reinterpret_cast<Call*>(self.get());
  x->guards = guards.release();
  x->how = Py_NewRef(how);
  x->run = Py_NewRef(run);
  x->gradients = gradients == Py_None ? -1 : PyObject_IsTrue(gradients);
  x->allowed = Py_NewRef(allowed);
  x->tf32 = Py_NewRef(tf32);
  x->current = Py_NewRef(current);
  x->mismatch = Py_NewRef(mismatch);
  return self.release();
  END_HANDLE_TH_ERRORS
}

void call_free(PyObject* self) {
  auto* x = reinterpret_cast<Call*>(self);
  for (PyObject* y : {x->how, x->run, x->allowed, x->tf32, x->current, x->mismatch}) Py_XDECREF(y);
  delete x->guards;
  PyTypeObject* type = Py_TYPE(self);
  type->tp_free(self);
  Py_DECREF(type);
}

/// The calls that a cache of calls saw last.
struct Calls {
  PyObject_HEAD
  vectorcallfunc call;
  std::vector<Owned>* calls;  // the latest first
  PyObject* otherwise;        // otherwise(how, *tensors), for other calls

  static constexpr size_t LIMIT = 16;

  /// Returns a call like this one, or null.  A guard may run Python, so another thread may add calls meanwhile.
  Owned like(PyObject* how, const Pointers& given, PyObject* const* types) const {
    for (size_t i = 0; i < calls->size(); ++i) {
      Owned call = Owned::share((*calls)[i].get());
      if (reinterpret_cast<const Call*>(call.get())->is_like(how, given, types)) return call;
    }
    return Owned();
  }
};

PyObject* calls_call(PyObject* self, PyObject* const* args, size_t flags, PyObject* names) {
  HANDLE_TH_ERRORS
  auto* calls = reinterpret_cast<Calls*>(self);
  const size_t count = static_cast<size_t>(PyVectorcall_NARGS(flags));
  bool fits = names == nullptr && count > 0;
  Pointers given;
  for (size_t i = 1; fits && i < count; ++i) {
    fits = THPVariable_CheckExact(args[i]);
    if (fits) given.push_back(&THPVariable_Unpack(args[i]));
  }
  Owned like = fits ? calls->like(args[0], given, args + 1) : Owned();
  if (like.get() != nullptr) {
    const auto* call = reinterpret_cast<const Call*>(like.get());
    Owned done;
    try {
      if (Py_TYPE(call->run) == RunType) done = Owned(reinterpret_cast<Run*>(call->run)->replayed(args + 1));
      else done = Owned(checked(PyObject_Vectorcall(call->run, args + 1, count - 1, nullptr)));
    } catch (python_error& error) {
      error.restore();
      if (!PyErr_ExceptionMatches(call->mismatch)) return nullptr;
      PyErr_Clear();
    }
    if (done.get() != nullptr && done.get() != Py_None) return done.release();
  }
  Owned otherwise = Owned::share(calls->otherwise);
  return PyObject_Vectorcall(otherwise.get(), args, flags & ~PY_VECTORCALL_ARGUMENTS_OFFSET, names);
  END_HANDLE_TH_ERRORS
}

/// Calls(otherwise).
PyObject* calls_new(PyTypeObject* type, PyObject* args, PyObject*) {
  HANDLE_TH_ERRORS
  PyObject* otherwise = nullptr;
  if (!PyArg_ParseTuple(args, "O", &otherwise)) return nullptr;
  Owned self(checked(type->tp_alloc(type, 0)));
  auto* x = reinterpret_cast<Calls*>(self.get());
  x->call = calls_call;
  x->calls = new std::vector<Owned>();
  x->otherwise = Py_NewRef(otherwise);
  return self.release();
  END_HANDLE_TH_ERRORS
}

/// Makes a call the first one, unless it is there already.  The oldest call leaves if there are too many.
PyObject* calls_add(PyObject* self, PyObject* call) {
  HANDLE_TH_ERRORS
  TORCH_CHECK(Py_TYPE(call) == CallType, "add() takes a Call");
  auto& calls = *reinterpret_cast<Calls*>(self)->calls;
  for (const Owned& x : calls) {
    if (x.get() == call) Py_RETURN_NONE;
  }
  Owned oldest;
  if (calls.size() >= Calls::LIMIT) {
    oldest = std::move(calls.back());
    calls.pop_back();
  }
  calls.insert(calls.begin(), Owned::share(call));
  Py_RETURN_NONE;
  END_HANDLE_TH_ERRORS
}

int calls_traverse(PyObject* self, visitproc visit, void* arg) {
  auto* x = reinterpret_cast<Calls*>(self);
  Py_VISIT(Py_TYPE(self));
  Py_VISIT(x->otherwise);
  return 0;
}

int calls_clear(PyObject* self) {
  auto* x = reinterpret_cast<Calls*>(self);
  PyObject* otherwise = Py_NewRef(Py_None);  // it leads back to the cache of the calls
  std::swap(x->otherwise, otherwise);
  Py_XDECREF(otherwise);
  return 0;
}

void calls_free(PyObject* self) {
  PyObject_GC_UnTrack(self);
  auto* x = reinterpret_cast<Calls*>(self);
  delete x->calls;
  Py_XDECREF(x->otherwise);
  PyTypeObject* type = Py_TYPE(self);
  type->tp_free(self);
  Py_DECREF(type);
}

// ------------------------------------------------------------------------------------------------------------- nodes

/// Properties of all nodes of a recording.
struct Form {
  Owned calls;      // the cache of the backward pass
  Owned gradients;  // gradients(needs, saved, grads) computes the backward pass
  Owned needs;      // whether each tensor needs a gradient
  Owned settings;   // returns the settings of torch on which the backward pass depends; None: there are none
  Owned absent;     // whether each output is missing in the node; None if it has all
  bool materializes = false;
  std::vector<bool> aliases;      // whether the gradient of each tensor is that of the result; empty: computed
  std::vector<int64_t> returned;  // outputs that the node has
  size_t outputs = 0;             // outputs of the recorded call

  ~Form() {
    if (!Py_IsInitialized()) {
      for (Owned* x : {&calls, &gradients, &needs, &settings, &absent}) x->release();
      return;
    }
    pybind11::gil_scoped_acquire gil;
    for (Owned* x : {&calls, &gradients, &needs, &settings, &absent}) *x = Owned();
  }

  /// Returns the key of the backward pass in `calls`, as `gradients` computes it.
  Owned how() const {
    Owned key = Owned::share(needs.get());
    if (settings.get() != Py_None) {
      Owned now(checked(PyObject_CallNoArgs(settings.get())));
      key = Owned(checked(PyTuple_Pack(2, key.get(), now.get())));
    }
    if (absent.get() == Py_None) return key;
    return Owned(checked(PyTuple_Pack(2, key.get(), absent.get())));
  }
};

struct ReplayedBackward : public torch::autograd::Node {
  std::shared_ptr<Form> form;
  std::vector<SavedVariable> saved;

  std::string name() const override { return "ReplayedBackward"; }

  void release_variables() override {
    std::lock_guard<std::mutex> lock(mutex_);
    for (SavedVariable& x : saved) x.reset_data();
  }

  variable_list apply(variable_list&& grads) override {
    const size_t count = num_outputs();
    bool is_whole = true;
    for (size_t i = 0; i < grads.size(); ++i) {
      if (!grads[i].defined() && form->materializes) grads[i] = input_metadata(i).zeros_like();
      is_whole = is_whole && grads[i].defined();
    }
    variable_list made(count);
    if (!form->aliases.empty()) {
      for (size_t i = 0; i < count; ++i) {
        if (form->aliases[i]) made[i] = grads[0];
      }
      return made;
    }
    Tensors unpacked;
    {
      std::lock_guard<std::mutex> lock(mutex_);
      for (const SavedVariable& x : saved) unpacked.push_back(x.unpack(getptr()));
    }
    pybind11::gil_scoped_acquire gil;
    if (is_whole && replay(unpacked, grads, made)) return made;
    compute(unpacked, grads, made);
    return made;
  }

  /// Replays the backward pass if it is among those that were seen last.
  bool replay(const Tensors& unpacked, const variable_list& grads, variable_list& made) const {
    static PyObject* name = PyUnicode_InternFromString("again");
    Owned again(checked(PyObject_GetAttr(form->calls.get(), name)));
    if (Py_TYPE(again.get()) != CallsType) return false;
    Pointers given;
    for (const Tensor& t : unpacked) given.push_back(&t);
    for (const Tensor& t : grads) given.push_back(&t);
    Owned like = reinterpret_cast<Calls*>(again.get())->like(form->how().get(), given, nullptr);
    if (like.get() == nullptr) return false;
    const auto* call = reinterpret_cast<const Call*>(like.get());
    Tensors results;
    if (Py_TYPE(call->run) != RunType || !reinterpret_cast<Run*>(call->run)->replay(given, results)) return false;
    TORCH_INTERNAL_ASSERT(results.size() == made.size());
    for (size_t i = 0; i < made.size(); ++i) made[i] = std::move(results[i]);
    return true;
  }

  /// Computes the backward pass in Python.
  void compute(const Tensors& unpacked, const variable_list& grads, variable_list& made) const {
    auto wrapped = [](const Tensor& t) { return t.defined() ? checked(THPVariable_Wrap(t)) : Py_NewRef(Py_None); };
    Owned tensors(checked(PyTuple_New(static_cast<Py_ssize_t>(unpacked.size()))));
    for (size_t i = 0; i < unpacked.size(); ++i) PyTuple_SET_ITEM(tensors.get(), i, wrapped(unpacked[i]));
    Owned given(checked(PyTuple_New(static_cast<Py_ssize_t>(form->outputs))));
    for (size_t i = 0; i < form->outputs; ++i) PyTuple_SET_ITEM(given.get(), i, Py_NewRef(Py_None));
    for (size_t i = 0; i < grads.size(); ++i) {
      PyObject* grad = wrapped(grads[i]);
      Py_DECREF(PyTuple_GET_ITEM(given.get(), form->returned[i]));
      PyTuple_SET_ITEM(given.get(), form->returned[i], grad);
    }
    Owned found(checked(PyObject_CallFunctionObjArgs(
        form->gradients.get(), form->needs.get(), tensors.get(), given.get(), nullptr)));
    Items items(found.get());
    TORCH_CHECK(items.size() == made.size(), "the backward pass computed another number of gradients");
    for (size_t i = 0; i < made.size(); ++i) {
      if (items[i] != Py_None) made[i] = THPVariable_Unpack(items[i]);
    }
  }
};

struct Source {
  enum Kind { ARGUMENT, RESULT } kind;
  size_t index;
};

/// A recorded call with gradients.
struct NodeRun {
  PyObject_HEAD
  vectorcallfunc call;
  struct Body {
    size_t tensors;
    Owned run;                     // Run, or a function of Python; returns a tuple of all outputs and more tensors
    std::vector<Source> saved;     // arguments, and results of `run`
    std::vector<bool> constant;    // of each returned output
    bool is_single;                // the node has one output, which is not in a tuple
    Owned pick;                    // takes the outputs; None: they are the result; a number: the result is one of them
    std::shared_ptr<Form> form;
  }* body;
};

/// Runs the forward pass without gradients; false if the addresses do not match.
bool forward(const NodeRun::Body& b, PyObject* const* args, const Pointers& given, Tensors& results) {
  c10::AutoGradMode without(false);
  if (Py_TYPE(b.run.get()) == RunType) return reinterpret_cast<Run*>(b.run.get())->replay(given, results);
  Owned found(checked(PyObject_Vectorcall(b.run.get(), args, b.tensors, nullptr)));
  if (found.get() == Py_None) return false;
  Items items(found.get());
  for (size_t i = 0; i < items.size(); ++i) results.push_back(THPVariable_Unpack(items[i]));
  return true;
}

template <typename Pointer = std::decay_t<decltype(std::declval<Edge>().function)>>
auto new_node() {
  if constexpr (std::is_same_v<Pointer, std::shared_ptr<torch::autograd::Node>>) {  // until torch 2.12
    return std::shared_ptr<ReplayedBackward>(new ReplayedBackward(), [](auto* node) { deleteNode(node); });
  } else {
    return c10::make_intrusive<ReplayedBackward>();
  }
}

PyObject* node_call(PyObject* self, PyObject* const* args, size_t flags, PyObject* names) {
  HANDLE_TH_ERRORS
  const NodeRun::Body& b = *reinterpret_cast<NodeRun*>(self)->body;
  const Form& form = *b.form;
  if (!takes_tensors(args, flags, names, b.tensors)) return nullptr;
  if (!c10::GradMode::is_enabled()) Py_RETURN_NONE;
  Pointers given;
  for (size_t i = 0; i < b.tensors; ++i) {
    given.push_back(&THPVariable_Unpack(args[i]));
    if (given.back()->_fw_grad(0).defined()) Py_RETURN_NONE;  // of forward-mode differentiation
  }
  Tensors results;
  if (!forward(b, args, given, results)) Py_RETURN_NONE;
  auto node = new_node();
  torch::autograd::edge_list edges;
  edges.reserve(b.tensors);
  for (const Tensor* t : given) edges.push_back(torch::autograd::impl::gradient_edge(*t));
  node->set_next_edges(std::move(edges));
  node->form = b.form;
  for (size_t i = 0; i < form.returned.size(); ++i) {
    if (b.constant[i]) {
      node->add_input_metadata(torch::autograd::Node::undefined_input());
    } else {
      Tensor& t = results[form.returned[i]];
      torch::autograd::impl::set_gradient_edge(t, {node, node->add_input_metadata(t)});
    }
  }
  node->saved.reserve(b.saved.size());
  for (const Source& s : b.saved) {
    const Tensor& t = s.kind == Source::ARGUMENT ? *given[s.index] : results[s.index];
    const bool is_output = s.kind == Source::RESULT && t.grad_fn().get() == node.get();
    node->saved.emplace_back(t, is_output);
  }
  if (b.is_single) {
    Owned found(checked(THPVariable_Wrap(results[form.returned[0]])));
    return b.pick.get() == Py_None ? found.release() : PyObject_CallOneArg(b.pick.get(), found.get());
  }
  if (PyLong_Check(b.pick.get())) return checked(THPVariable_Wrap(results[form.returned[integer(b.pick.get())]]));
  Owned found(checked(PyTuple_New(static_cast<Py_ssize_t>(form.returned.size()))));
  for (size_t i = 0; i < form.returned.size(); ++i) {
    PyTuple_SET_ITEM(found.get(), static_cast<Py_ssize_t>(i), checked(THPVariable_Wrap(results[form.returned[i]])));
  }
  if (b.pick.get() == Py_None) return found.release();
  return PyObject_CallOneArg(b.pick.get(), found.get());
  END_HANDLE_TH_ERRORS
}

/// Node(tensors, run, saved, constants, returned, outputs, is_single, pick, materializes, aliases, needs, settings, absent,
/// calls, gradients): a saved tensor is the index of an argument, or -1 - i for result i of `run`.
PyObject* node_new(PyTypeObject* type, PyObject* args, PyObject*) {
  HANDLE_TH_ERRORS
  Py_ssize_t tensors = 0, outputs = 0;
  PyObject *run, *saved, *constants, *returned, *pick, *aliases, *needs, *settings, *absent, *calls, *gradients;
  int is_single = 0, materializes = 0;
  if (!PyArg_ParseTuple(args, "nOOOOnpOpOOOOOO", &tensors, &run, &saved, &constants, &returned, &outputs, &is_single,
                        &pick, &materializes, &aliases, &needs, &settings, &absent, &calls, &gradients)) {
    return nullptr;
  }
  auto body = std::make_unique<NodeRun::Body>();
  body->form = std::make_shared<Form>();
  Form& form = *body->form;
  body->tensors = static_cast<size_t>(tensors);
  body->run = Owned::share(run);
  body->is_single = is_single != 0;
  body->pick = Owned::share(pick);
  form.outputs = static_cast<size_t>(outputs);
  form.materializes = materializes != 0;
  form.returned = integers(returned);
  form.needs = Owned::share(needs);
  form.settings = Owned::share(settings);
  form.absent = Owned::share(absent);
  form.calls = Owned::share(calls);
  form.gradients = Owned::share(gradients);
  for (int64_t x : integers(aliases)) form.aliases.push_back(x != 0);
  TORCH_CHECK(form.aliases.empty() || form.aliases.size() == body->tensors, "aliases are given for each tensor");
  for (int64_t x : integers(saved)) {
    const Source s{x >= 0 ? Source::ARGUMENT : Source::RESULT, static_cast<size_t>(x >= 0 ? x : -1 - x)};
    TORCH_CHECK(s.kind == Source::RESULT || s.index < body->tensors, "a saved tensor is not an argument");
    body->saved.push_back(s);
  }
  for (int64_t x : integers(constants)) body->constant.push_back(x != 0);
  TORCH_CHECK(body->constant.size() == form.returned.size(), "constants are given for each returned output");
  for (int64_t x : form.returned) TORCH_CHECK(x >= 0 && x < outputs, "an output is missing");
  Owned self(checked(type->tp_alloc(type, 0)));
  auto* x = reinterpret_cast<NodeRun*>(self.get());
  x->call = node_call;
  x->body = body.release();
  return self.release();
  END_HANDLE_TH_ERRORS
}

void node_free(PyObject* self) {
  delete reinterpret_cast<NodeRun*>(self)->body;
  PyTypeObject* type = Py_TYPE(self);
  type->tp_free(self);
  Py_DECREF(type);
}

// ------------------------------------------------------------------------------------------------------------ module

PyTypeObject* type_of(PyObject* module, const char* name, size_t size, std::vector<PyType_Slot> slots,
                      Py_ssize_t call = 0, unsigned flags = 0) {
  PyMemberDef members[] = {{"__vectorcalloffset__", T_PYSSIZET, call, READONLY, nullptr}, {nullptr, 0, 0, 0, nullptr}};
  if (call != 0) {
    slots.push_back({Py_tp_call, reinterpret_cast<void*>(PyVectorcall_Call)});
    slots.push_back({Py_tp_members, members});
    flags |= Py_TPFLAGS_HAVE_VECTORCALL;
  }
  slots.push_back({0, nullptr});
  PyType_Spec spec{name, static_cast<int>(size), 0, Py_TPFLAGS_DEFAULT | flags, slots.data()};
  PyObject* type = checked(PyType_FromModuleAndSpec(module, &spec, nullptr));
  if (PyModule_AddType(module, reinterpret_cast<PyTypeObject*>(type))) throw_python();
  return reinterpret_cast<PyTypeObject*>(type);
}

template <typename F>
PyType_Slot slot(int id, F* function) {
  return {id, reinterpret_cast<void*>(function)};
}

PyMethodDef calls_methods[] = {{"add", calls_add, METH_O, nullptr}, {nullptr, nullptr, 0, nullptr}};

PyModuleDef definition = {PyModuleDef_HEAD_INIT, "cute_replay", "Replay of recorded calls in C++.", -1, nullptr};

}  // namespace

PyMODINIT_FUNC PyInit_cute_replay() {
  HANDLE_TH_ERRORS
  Owned module(checked(PyModule_Create(&definition)));
  PyObject* m = module.get();
  KernelsType = type_of(m, "cute_replay.Kernels", sizeof(Kernels),
                        {slot(Py_tp_new, kernels_new), slot(Py_tp_dealloc, kernels_free)}, offsetof(Kernels, call));
  RunType = type_of(m, "cute_replay.Run", sizeof(Run), {slot(Py_tp_new, run_new), slot(Py_tp_dealloc, run_free)},
                    offsetof(Run, call));
  CallType = type_of(m, "cute_replay.Call", sizeof(Call),
                     {slot(Py_tp_new, call_new), slot(Py_tp_dealloc, call_free)});
  CallsType = type_of(
      m, "cute_replay.Calls", sizeof(Calls),
      {slot(Py_tp_new, calls_new), slot(Py_tp_dealloc, calls_free), slot(Py_tp_traverse, calls_traverse),
       slot(Py_tp_clear, calls_clear), {Py_tp_methods, calls_methods}},
      offsetof(Calls, call), Py_TPFLAGS_HAVE_GC);
  NodeType = type_of(m, "cute_replay.Node", sizeof(NodeRun),
                     {slot(Py_tp_new, node_new), slot(Py_tp_dealloc, node_free)}, offsetof(NodeRun, call));
  return module.release();
  END_HANDLE_TH_ERRORS
}
