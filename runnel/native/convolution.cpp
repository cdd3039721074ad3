// Convolutions and their gradients by oneDNN's kernels, on XLA's own threads.
//
// Arrays are channels last, (batch, *spatial, channels), and filters (*window, in, out), as in a
// graph. A call splits the batch into a part for each thread of XLA's pool (or, for the gradient of
// a filter that is larger than dy, the filter's outputs). oneDNN is told that it has one thread, so
// that it never starts a pool of its own beside XLA's: where XLA runs several operations at a time,
// they share the cores by sharing the pool. The partial gradients of a filter are added up in a fixed
// order: the result does not depend on which thread came first.
//
// oneDNN chooses the layout of filters. They are rearranged in every call, for a filter changes with
// every step; next to the convolution that is little.

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <unordered_map>
#include <vector>

#include "oneapi/dnnl/dnnl.hpp"
#include "resources.h"
#include "xla/ffi/api/ffi.h"

#if DNNL_CPU_THREADING_RUNTIME != DNNL_RUNTIME_OMP && DNNL_CPU_THREADING_RUNTIME != DNNL_RUNTIME_SEQ
#error "this oneDNN has threads that OpenMP does not control"
#endif

namespace {

namespace ffi = xla::ffi;
using dnnl::memory;
using Dims = memory::dims;
using runnel::Buffer;
using runnel::InParallel;
using runnel::OnThisThread;

enum Direction { kForward, kFilterGradient, kInputGradient };

const dnnl::engine& Cpu() {
  static const auto* engine = new dnnl::engine(dnnl::engine::kind::cpu, 0);
  return *engine;
}

// Plans -----------------------------------------------------------------------------------------

struct Shape {
  int64_t batch, channels, filters, groups;
  Dims input, output, window, strides, dilations, low, high;
};

memory::desc Images(int64_t batch, int64_t channels, const Dims& sizes) {
  Dims dims = {batch, channels}, strides = {0, 1};
  dims.insert(dims.end(), sizes.begin(), sizes.end());
  strides.resize(dims.size());
  int64_t step = channels;
  for (size_t i = sizes.size(); i-- > 0; step *= sizes[i]) strides[2 + i] = step;
  strides[0] = step;
  return memory::desc(dims, memory::data_type::f32, strides);
}

// A filter as graphs have it. Groups are contiguous blocks of its outputs.
memory::desc PlainFilter(const Shape& shape) {
  const int64_t in = shape.channels / shape.groups, out = shape.filters / shape.groups;
  Dims dims, strides;
  if (shape.groups > 1) {
    dims.push_back(shape.groups);
    strides.push_back(out);
  }
  dims.insert(dims.end(), {out, in});
  strides.insert(strides.end(), {1, shape.filters});
  const size_t spatial = dims.size();
  dims.insert(dims.end(), shape.window.begin(), shape.window.end());
  strides.resize(dims.size());
  int64_t step = in * shape.filters;
  for (size_t i = shape.window.size(); i-- > 0; step *= shape.window[i]) strides[spatial + i] = step;
  return memory::desc(dims, memory::data_type::f32, strides);
}

dnnl::primitive_attr Attributes(bool accumulate = false) {
  dnnl::primitive_attr attributes;
  // oneDNN's own scratchpads belong to the thread that made a primitive; others run it.
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  if (accumulate) {
    dnnl::post_ops sum;
    sum.append_sum(1.0f);
    attributes.set_post_ops(sum);
  }
  return attributes;
}

void Execute(const dnnl::primitive& primitive, const memory::desc& scratch,
             std::unordered_map<int, memory> arguments) {
  Buffer room(scratch.get_size());
  if (room.data() != nullptr) {
    arguments.insert({DNNL_ARG_SCRATCHPAD, memory(scratch, Cpu(), room.data())});
  }
  dnnl::stream stream(Cpu());
  primitive.execute(stream, arguments);
  stream.wait();
}

// A convolution of one part of the batch.
struct Kernel {
  dnnl::primitive primitive;
  memory::desc x, filter, y, scratch;
  bool fast;

  void Run(Direction direction, float* x_data, void* filter_data, float* y_data) const {
    const bool forward = direction == kForward;
    const int x_name = direction == kInputGradient ? DNNL_ARG_DIFF_SRC : DNNL_ARG_SRC;
    const int filter_name =
        direction == kFilterGradient ? DNNL_ARG_DIFF_WEIGHTS : DNNL_ARG_WEIGHTS;
    const int y_name = forward ? DNNL_ARG_DST : DNNL_ARG_DIFF_DST;
    Execute(primitive, scratch,
            {{x_name, memory(x, Cpu(), x_data)},
             {filter_name, memory(filter, Cpu(), filter_data)},
             {y_name, memory(y, Cpu(), y_data)}});
  }
};

template <typename Primitive, typename Description>
Kernel KernelOf(const Description& description, const memory::desc& x, const memory::desc& filter,
                const memory::desc& y) {
  // oneDNN has a reference implementation for what it has no kernel for: correct, and very slow.
  const bool fast = std::string(description.impl_info_str()).rfind("ref", 0) != 0;
  return {Primitive(description), x, filter, y, description.scratchpad_desc(), fast};
}

Kernel MakeKernel(Direction direction, const Shape& shape, int64_t batch) {
  const auto algorithm = dnnl::algorithm::convolution_direct;
  const memory::desc x = Images(batch, shape.channels, shape.input);
  const memory::desc y = Images(batch, shape.filters, shape.output);
  const memory::desc filter(PlainFilter(shape).get_dims(), memory::data_type::f32,
                            memory::format_tag::any);
  Dims gaps = shape.dilations;
  for (auto& gap : gaps) gap -= 1;
  const auto attributes = Attributes();
  const dnnl::convolution_forward::primitive_desc forward(
      Cpu(), dnnl::prop_kind::forward_training, algorithm, x, filter, y, shape.strides, gaps,
      shape.low, shape.high, attributes);
  if (direction == kForward) {
    return KernelOf<dnnl::convolution_forward>(forward, x, forward.weights_desc(), y);
  }
  if (direction == kFilterGradient) {
    const dnnl::convolution_backward_weights::primitive_desc gradient(
        Cpu(), algorithm, x, filter, y, shape.strides, gaps, shape.low, shape.high, forward,
        attributes);
    return KernelOf<dnnl::convolution_backward_weights>(gradient, x, gradient.diff_weights_desc(),
                                                        y);
  }
  const dnnl::convolution_backward_data::primitive_desc gradient(
      Cpu(), algorithm, x, filter, y, shape.strides, gaps, shape.low, shape.high, forward,
      attributes);
  return KernelOf<dnnl::convolution_backward_data>(gradient, x, gradient.weights_desc(), y);
}

// Moves a filter from one layout to another, a block of its outputs (or groups) in each thread.
class Rearrangement {
 public:
  Rearrangement(const memory::desc& from, const memory::desc& to, bool accumulate,
                int64_t threads) {
    const int64_t outputs = from.get_dims()[0];
    const bool splits = from.get_size() > kSmall && outputs % (threads * kBlock) == 0;
    try {
      Add(from, to, accumulate, splits ? threads : 1);
    } catch (const dnnl::error&) {  // a layout that cannot be cut there
      parts_.clear();
      Add(from, to, accumulate, 1);
    }
  }

  void Run(ffi::ThreadPool& pool, void* from, void* to) const {
    InParallel(pool, parts_.size(), [&](int64_t i) { RunPart(i, from, to); });
  }

  void RunPart(int64_t i, void* from, void* to) const {
    const Part& part = parts_[i];
    Execute(part.primitive, part.scratch,
            {{DNNL_ARG_FROM, memory(part.from, Cpu(), from)},
             {DNNL_ARG_TO, memory(part.to, Cpu(), to)}});
  }

 private:
  static constexpr size_t kSmall = 1 << 18;
  static constexpr int64_t kBlock = 64;  // a multiple of the blocks of every layout

  struct Part {
    dnnl::primitive primitive;
    memory::desc from, to, scratch;
  };

  void Add(const memory::desc& from, const memory::desc& to, bool accumulate, int64_t count) {
    Dims size = from.get_dims(), start(size.size(), 0);
    size[0] /= count;
    for (; start[0] < from.get_dims()[0]; start[0] += size[0]) {
      const auto source = from.submemory_desc(size, start), target = to.submemory_desc(size, start);
      const dnnl::reorder::primitive_desc description(Cpu(), source, Cpu(), target,
                                                      Attributes(accumulate));
      parts_.push_back(
          {dnnl::reorder(description), source, target, description.scratchpad_desc()});
    }
  }

  std::vector<Part> parts_;
};

// A convolution of a whole batch.
class Plan {
 public:
  virtual ~Plan() = default;
  virtual bool fast() const = 0;
  virtual void Run(ffi::ThreadPool& pool, float* x, float* filter, float* y) const = 0;
};

// Each thread takes a part of the batch.
class PlanByExamples : public Plan {
 public:
  PlanByExamples(Direction direction, const Shape& shape, int64_t threads)
      : direction_(direction) {
    const int64_t wanted = std::min(shape.batch, threads);
    const int64_t each = (shape.batch + wanted - 1) / wanted;
    parts_ = (shape.batch + each - 1) / each;
    const int64_t rest = shape.batch - each * (parts_ - 1);
    kernels_.push_back(MakeKernel(direction, shape, each));
    kernels_.push_back(rest == each ? kernels_[0] : MakeKernel(direction, shape, rest));
    const memory::desc plain = PlainFilter(shape), &arranged = kernels_[0].filter;
    if (!(kernels_[1].filter == arranged)) {
      throw std::runtime_error("oneDNN wants different layouts for parts of a batch");
    }
    is_plain_ = arranged == plain;
    if (direction == kFilterGradient) {
      rearrangements_.emplace_back(arranged, plain, false, threads);
      rearrangements_.emplace_back(arranged, plain, true, threads);
    } else if (!is_plain_) {
      rearrangements_.emplace_back(plain, arranged, false, threads);
    }
  }

  bool fast() const override { return kernels_[0].fast && kernels_[1].fast; }

  void Run(ffi::ThreadPool& pool, float* x, float* filter, float* y) const override {
    const size_t room = (kernels_[0].filter.get_size() + 63) / 64 * 64;
    if (direction_ != kFilterGradient) {
      Buffer arranged(is_plain_ ? 0 : room);
      if (!is_plain_) rearrangements_[0].Run(pool, filter, arranged.data());
      void* used = is_plain_ ? static_cast<void*>(filter) : arranged.data();
      InParallel(pool, parts_, [&](int64_t i) { RunPart(i, x, used, y); });
      return;
    }
    Buffer partial(room * parts_);
    InParallel(pool, parts_, [&](int64_t i) { RunPart(i, x, partial.data() + i * room, y); });
    for (int64_t i = 0; i < parts_; ++i) {
      rearrangements_[i > 0].Run(pool, partial.data() + i * room, filter);
    }
  }

 private:
  void RunPart(int64_t i, float* x, void* filter, float* y) const {
    kernels_[i == parts_ - 1].Run(direction_, x + i * kernels_[0].x.get_size() / sizeof(float),
                                  filter, y + i * kernels_[0].y.get_size() / sizeof(float));
  }

  Direction direction_;
  bool is_plain_;
  int64_t parts_;
  std::vector<Kernel> kernels_;  // for a part, and for the last one, which may be smaller
  std::vector<Rearrangement> rearrangements_;
};

// The gradient of a large filter: each thread takes some of its outputs. A copy of their part of dy
// costs less than partial gradients of the whole filter.
class PlanByOutputs : public Plan {
 public:
  static bool Pays(const Shape& shape, int64_t threads) {
    const int64_t dy = Images(shape.batch, shape.filters, shape.output).get_size();
    const int64_t filter = PlainFilter(shape).get_size();
    return shape.groups == 1 && shape.filters % (threads * kLanes) == 0 && filter > dy;
  }

  PlanByOutputs(const Shape& shape, int64_t threads)
      : filters_(shape.filters), each_(shape.filters / threads), kernel_(MakePart(shape, each_)) {
    const memory::desc plain = PlainFilter(shape);
    Dims size = plain.get_dims(), start(size.size(), 0);
    for (size[0] = each_; start[0] < filters_; start[0] += each_) {
      rearrangements_.emplace_back(kernel_.filter, plain.submemory_desc(size, start), false, 1);
    }
  }

  bool fast() const override { return kernel_.fast; }

  void Run(ffi::ThreadPool& pool, float* x, float* filter, float* y) const override {
    InParallel(pool, rearrangements_.size(), [&](int64_t i) {
      Buffer narrow(kernel_.y.get_size()), gradient(kernel_.filter.get_size());
      const int64_t stops = kernel_.y.get_size() / sizeof(float) / each_;
      auto* to = reinterpret_cast<float*>(narrow.data());
      const float* from = y + i * each_;
      for (int64_t stop = 0; stop < stops; ++stop, to += each_, from += filters_) {
        std::memcpy(to, from, each_ * sizeof(float));
      }
      kernel_.Run(kFilterGradient, x, gradient.data(), reinterpret_cast<float*>(narrow.data()));
      rearrangements_[i].RunPart(0, gradient.data(), filter);
    });
  }

 private:
  static constexpr int64_t kLanes = 16;

  static Kernel MakePart(Shape shape, int64_t filters) {
    shape.filters = filters;
    return MakeKernel(kFilterGradient, shape, shape.batch);
  }

  int64_t filters_, each_;
  Kernel kernel_;
  std::vector<Rearrangement> rearrangements_;
};

std::shared_ptr<const Plan> MakePlan(Direction direction, const Shape& shape, int64_t threads) {
  OnThisThread serial;
  threads = std::max<int64_t>(1, threads);
  if (direction == kFilterGradient && threads > 1 && PlanByOutputs::Pays(shape, threads)) {
    return std::make_shared<PlanByOutputs>(shape, threads);
  }
  return std::make_shared<PlanByExamples>(direction, shape, threads);
}

std::shared_ptr<const Plan> FindPlan(Direction direction, const Shape& shape, int64_t threads) {
  static auto* mutex = new std::mutex;
  static auto* plans = new std::map<std::vector<int64_t>, std::shared_ptr<const Plan>>;
  std::vector<int64_t> key = {direction,     threads,       shape.batch,
                              shape.channels, shape.filters, shape.groups};
  for (const Dims* dims : {&shape.input, &shape.output, &shape.window, &shape.strides,
                           &shape.dilations, &shape.low, &shape.high}) {
    key.insert(key.end(), dims->begin(), dims->end());
  }
  std::lock_guard<std::mutex> hold(*mutex);
  auto& found = (*plans)[key];
  if (found == nullptr) found = MakePlan(direction, shape, threads);
  return found;
}

// What XLA calls --------------------------------------------------------------------------------

using Array = ffi::Buffer<ffi::F32>;
using Result = ffi::Result<Array>;
using Numbers = ffi::Span<const int64_t>;

Dims Copy(Numbers numbers) { return Dims(numbers.begin(), numbers.end()); }

// The operands are (x, filter), (x, dy) or (filter, dy).
template <Direction direction>
ffi::Error Convolve(ffi::ThreadPool pool, Array first, Array second, Result result,
                    Numbers strides, Numbers dilations, Numbers low, Numbers high) {
  Array& x = direction == kInputGradient ? *result : first;
  Array& filter = direction == kForward ? second : direction == kInputGradient ? first : *result;
  Array& y = direction == kForward ? *result : second;
  const auto x_dims = x.dimensions(), filter_dims = filter.dimensions(), y_dims = y.dimensions();
  const Shape shape{x_dims[0],
                    x_dims.back(),
                    y_dims.back(),
                    x_dims.back() / filter_dims[filter_dims.size() - 2],
                    Dims(x_dims.begin() + 1, x_dims.end() - 1),
                    Dims(y_dims.begin() + 1, y_dims.end() - 1),
                    Dims(filter_dims.begin(), filter_dims.end() - 2),
                    Copy(strides),
                    Copy(dilations),
                    Copy(low),
                    Copy(high)};
  try {
    FindPlan(direction, shape, pool.num_threads())
        ->Run(pool, x.typed_data(), filter.typed_data(), y.typed_data());
  } catch (const std::exception& error) {
    return ffi::Error::Internal(std::string("a convolution by oneDNN failed: ") + error.what());
  }
  return ffi::Error::Success();
}

auto Binding() {
  return ffi::Ffi::Bind()
      .Ctx<ffi::ThreadPool>()
      .Arg<Array>()
      .Arg<Array>()
      .Ret<Array>()
      .Attr<Numbers>("strides")
      .Attr<Numbers>("dilations")
      .Attr<Numbers>("low")
      .Attr<Numbers>("high");
}

}  // namespace

XLA_FFI_DEFINE_HANDLER_SYMBOL(runnel_conv_forward, Convolve<kForward>, Binding());
XLA_FFI_DEFINE_HANDLER_SYMBOL(runnel_conv_filter_gradient, Convolve<kFilterGradient>, Binding());
XLA_FFI_DEFINE_HANDLER_SYMBOL(runnel_conv_input_gradient, Convolve<kInputGradient>, Binding());

// Whether oneDNN has a fast kernel. `sizes` has, for each of the spatial axes, the input's size, the
// output's, the window's, stride, dilation, and the padding before and after.
extern "C" int runnel_conv_has_kernel(int direction, int64_t threads, int64_t batch,
                                      int64_t channels, int64_t filters, int64_t groups, int rank,
                                      const int64_t* sizes) {
  Shape shape{batch, channels, filters, groups, {}, {}, {}, {}, {}, {}, {}};
  for (int axis = 0; axis < rank; ++axis) {
    for (Dims* dims : {&shape.input, &shape.output, &shape.window, &shape.strides,
                       &shape.dilations, &shape.low, &shape.high}) {
      dims->push_back(*sizes++);
    }
  }
  try {
    return FindPlan(static_cast<Direction>(direction), shape, threads)->fast();
  } catch (const std::exception&) {
    return 0;
  }
}
