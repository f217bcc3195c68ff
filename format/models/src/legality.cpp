#include "remesh/models/legality.hpp"

#include <algorithm>
#include <initializer_list>
#include <iterator>
#include <utility>

#include <fmt/format.h>

#include "config.hpp"
#include "remesh/core/error.hpp"

namespace remesh {
namespace {

using detail::Config;

// What any number here may be: the product of two then fits an Index.
constexpr Index most = Index{1} << 31;

// How far from the asked value a legal one is looked for: beyond any real mesh.
constexpr Index farthest = Index{1} << 16;

constexpr const char* megatron = "Megatron-Core";
constexpr const char* torchtitan = "torchtitan";
constexpr const char* deepspeed = "DeepSpeed";

using Number = std::optional<Index>;

// ---- What config.json says

Number size_at(const Config& config, const std::string& key) {
  try {
    const Number size = config.size(key);
    return size && *size <= most ? size : std::nullopt;
  } catch (const Error&) {
    return std::nullopt;  // a list with a size for each layer, say
  }
}

Number first_of(const Config& config, std::initializer_list<const char*> keys) {
  for (const char* const prefix : {"", "text_config."}) {
    for (const char* const key : keys) {
      if (const Number size = size_at(config, std::string(prefix) + key)) return size;
    }
  }
  return std::nullopt;
}

Number product(const Number& a, const Number& b) {
  if (!a || !b || *a * *b > most) return std::nullopt;
  return *a * *b;
}

// Many mixtures say the width of an MLP that none of their layers has.
bool has_layers_without_experts(const Config& config) {
  return first_of(config, {"first_k_dense_replace"}) ||
         first_of(config, {"decoder_sparse_step", "interleave_moe_layer_step"}).value_or(1) > 1;
}

void read_widths(const Config& config, ModelSizes& model) {
  const Number said = first_of(config, {"intermediate_size", "n_inner"});
  if (!model.experts) {
    model.width = said ? said : product(4, first_of(config, {"n_embd"}));
    return;
  }
  const Number routed = first_of(config, {"moe_intermediate_size"});
  model.expert_width = routed ? routed : said;
  if (has_layers_without_experts(config)) {
    model.width = routed ? said : first_of(config, {"intermediate_size_mlp"});
  }
  model.shared_width =
      first_of(config, {"shared_expert_intermediate_size", "moe_shared_expert_intermediate_size"});
  if (!model.shared_width) {
    model.shared_width = product(first_of(config, {"n_shared_experts"}), routed);
  }
}

// ---- Numbers

bool divides(Index count, const Number& size) { return !size || *size % count == 0; }

std::string both(std::string_view name, const Number& lower, const Number& upper) {
  if (lower && upper) return fmt::format("{0}={1} and {0}={2}", name, *lower, *upper);
  const Number& one = lower ? lower : upper;
  return one ? fmt::format("{}={}", name, *one) : std::string();
}

// None of the legal ones is above `largest`.
template <typename Legal>
std::string nearest(std::string_view name, Index asked, Index largest, const Legal& legal) {
  Number lower;
  Number upper;
  const Index below = std::min(asked - 1, largest);
  for (Index at = below; at > 0 && below - at < farthest && !lower; --at) {
    if (legal(at)) lower = at;
  }
  for (Index at = asked + 1; at <= largest && at - asked < farthest && !upper; ++at) {
    if (legal(at)) upper = at;
  }
  return both(name, lower, upper);
}

std::string nearest_multiples(std::string_view name, Index asked, Index unit) {
  const Index lower = asked / unit * unit;
  return both(name, lower > 0 ? Number(lower) : std::nullopt, lower + unit);
}

// How many ranks get no row, where `rows` are dealt as torch.chunk does.
Index ranks_without(Index rows, Index ranks) {
  const Index each = (rows + ranks - 1) / ranks;
  return ranks - (rows + each - 1) / each;
}

[[noreturn]] void fail(const std::string& why) {
  throw Error(Errc::invalid_argument, "cannot judge a mesh: " + why);
}

void check_ranks(std::string_view grid, std::initializer_list<Index> sizes) {
  Index ranks = 1;
  for (const Index size : sizes) {
    ranks *= size;
    if (ranks > most) fail(fmt::format("{} is more than {} ranks", grid, most));
  }
}

// ---- The rules

class Judge {
 public:
  Judge(const ModelSizes& model, const Degrees& at, const JobShape& job, const Stages* stages)
      : model_(model), at_(at), job_(job), stages_(stages) {
    check_numbers();
    expert_grid_ = at.ep > 1 || at.etp.has_value();
    etp_ = at.etp.value_or(at.ep > 1 ? 1 : at.tp);
    check_ranks("tp * cp * dp * pp", {at.tp, at.cp, at.dp.value_or(1), at.pp});
    check_ranks("etp * ep * pp", {etp_, at.ep, at.pp});
    replica_ = at.tp * at.cp * at.pp;
    world_ = job.world ? job.world : product(replica_, at.dp);
    dp_ = world_ && *world_ % replica_ == 0 ? *world_ / replica_ : at.dp;
    // Where each head has a K and V of its own, the rule of heads says it all.
    if (!model.latent_attention && model.kv_heads != model.heads) kv_heads_ = model.kv_heads;
  }

  std::vector<BrokenRule> all() {
    judge_world();
    judge_expert_world();
    judge_heads();
    judge_kv_heads();
    judge_head_dim();
    judge_width("width", "the MLP is", model_.width);
    judge_width("shared-width", "the shared experts are", model_.shared_width);
    judge_expert_width();
    judge_experts();
    judge_stages();
    judge_vocabulary();
    judge_empty_shards();
    judge_sequence();
    judge_expert_sequence_parallel();
    judge_batch();
    return std::move(broken_);
  }

 private:
  void check_numbers() const {
    // clang-format off
    const std::pair<const char*, Number> numbers[] = {
        {"tp", at_.tp}, {"cp", at_.cp}, {"dp", at_.dp}, {"pp", at_.pp}, {"ep", at_.ep}, {"etp", at_.etp},
        {"vpp", at_.vpp}, {"world", job_.world}, {"sequence", job_.sequence}, {"shards", job_.shards},
        {"global_batch", job_.global_batch}, {"micro_batch", job_.micro_batch},
        {"layers", model_.layers}, {"hidden", model_.hidden}, {"heads", model_.heads},
        {"kv_heads", model_.kv_heads}, {"head_dim", model_.head_dim}, {"width", model_.width},
        {"shared_width", model_.shared_width}, {"expert_width", model_.expert_width},
        {"experts", model_.experts}, {"vocabulary", model_.vocabulary},
    };
    // clang-format on
    for (const auto& [name, number] : numbers) {
      if (!number || (*number >= 1 && *number <= most)) continue;
      fail(fmt::format("{} is {}, but 1 to {} is expected", name, *number, most));
    }
  }

  template <typename... Args>
  void impossible(const char* rule, const std::string& values, fmt::format_string<Args...> message,
                  Args&&... args) {
    broken_.push_back({rule, fmt::format(message, std::forward<Args>(args)...), values, true, {}});
  }

  template <typename... Args>
  void refused(const char* rule, const std::vector<std::string>& by, const std::string& values,
               fmt::format_string<Args...> message, Args&&... args) {
    broken_.push_back({rule, fmt::format(message, std::forward<Args>(args)...), values, false, by});
  }

  void judge_world() {
    if (!job_.world) return;
    const Index world = *job_.world;
    if (at_.dp) {
      judge_data_parallel(world, replica_ * *at_.dp);
    } else if (world % replica_ != 0) {
      impossible("world", nearest_multiples("world", world, replica_),
                 "the world of {} is no multiple of tp {} * cp {} * pp {} = {}", world, at_.tp,
                 at_.cp, at_.pp, replica_);
    }
  }

  void judge_data_parallel(Index world, Index ranks) {
    if (ranks == world) return;
    const bool divided = world % replica_ == 0;
    const bool of_experts = *at_.dp * etp_ * at_.ep * at_.pp == world;
    impossible(
        "world", divided ? both("dp", dp_, {}) : both("world", ranks, {}),
        "tp {} * cp {} * dp {} * pp {} is {} ranks, but the world is {}{}", at_.tp, at_.cp, *at_.dp,
        at_.pp, ranks, world,
        of_experts ? fmt::format("; dp {} looks like that of the experts (edp)", *at_.dp) : "");
  }

  // What the world and `other` leave of a stage's ranks, which the rest of the experts' grid must
  // divide; nothing where they leave no whole number, or the world is not known.
  Number left_by(Index other) const {
    if (!world_ || *world_ % at_.pp != 0 || *world_ / at_.pp % other != 0) return std::nullopt;
    return *world_ / at_.pp / other;
  }

  std::string nearest_in(const char* axis, Index asked, const Number& size, Index other) const {
    const Number ranks = left_by(other);
    return nearest(axis, asked, std::min(ranks.value_or(most), size.value_or(most)),
                   [&](Index count) { return divides(count, size) && divides(count, ranks); });
  }

  std::string nearest_ep() const { return nearest_in("ep", at_.ep, model_.experts, etp_); }
  std::string nearest_etp() const { return nearest_in("etp", etp_, model_.expert_width, at_.ep); }

  void judge_expert_world() {
    if (!expert_grid_ || divides(etp_ * at_.ep * at_.pp, world_)) return;
    // Another ep will do unless etp alone is too much; then another etp may.
    impossible("expert-world",
               left_by(etp_)     ? nearest_ep()
               : left_by(at_.ep) ? nearest_etp()
                                 : "",
               "the world of {} is no multiple of the experts' etp {} * ep {} * pp {} = {}",
               *world_, etp_, at_.ep, at_.pp, etp_ * at_.ep * at_.pp);
  }

  bool shares_kv_heads(Index tp) const { return divides(tp, kv_heads_) || tp % *kv_heads_ == 0; }

  bool fits_model(Index tp) const {
    return divides(tp, model_.heads) && shares_kv_heads(tp) && divides(tp, model_.width) &&
           divides(tp, model_.shared_width) && (expert_grid_ || divides(tp, model_.expert_width));
  }

  std::string nearest_tp(Index largest = most) const {
    for (const Number& size : {model_.heads, model_.width, model_.shared_width}) {
      largest = std::min(largest, size.value_or(most));
    }
    if (!expert_grid_) largest = std::min(largest, model_.expert_width.value_or(most));
    return nearest("tp", at_.tp, largest, [&](Index tp) { return fits_model(tp); });
  }

  // DeepSpeed's AutoTP deals whole heads unevenly, as it does widths.
  void judge_heads() {
    if (divides(at_.tp, model_.heads)) return;
    refused("heads", {megatron, torchtitan}, nearest_tp(),
            "the model has {} attention heads, which tp {} does not divide", *model_.heads, at_.tp);
  }

  void judge_kv_heads() {
    if (divides(at_.tp, kv_heads_)) return;
    if (!shares_kv_heads(at_.tp)) {
      refused("kv-heads", {megatron, torchtitan}, nearest_tp(),
              "the model has {0} KV heads, and tp {1} neither divides {0} nor is a multiple of it",
              *kv_heads_, at_.tp);
      return;
    }
    refused("kv-heads", {torchtitan}, nearest_tp(*kv_heads_),
            "the model has {} KV heads, so that {} ranks of tp {} share each; Megatron-Core takes "
            "this from v0.16 on",
            *kv_heads_, at_.tp / *kv_heads_, at_.tp);
  }

  void judge_head_dim() {
    if (!model_.heads || model_.head_dim || model_.latent_attention) return;
    if (divides(*model_.heads, model_.hidden)) return;
    refused("head-dim", {megatron}, {},
            "the hidden size is {}, which {} attention heads do not divide; no head_dim is said",
            *model_.hidden, *model_.heads);
  }

  // DTensors and AutoTP have uneven shares.
  void judge_width(const char* rule, const char* what, const Number& width) {
    if (divides(at_.tp, width)) return;
    refused(rule, {megatron}, nearest_tp(), "{} {} wide, which tp {} does not divide", what, *width,
            at_.tp);
  }

  void judge_expert_width() {
    if (divides(etp_, model_.expert_width)) return;
    refused("expert-width", {megatron}, expert_grid_ ? nearest_etp() : nearest_tp(),
            "an expert is {} wide, which {} {} does not divide", *model_.expert_width,
            expert_grid_ ? "etp" : "tp", etp_);
  }

  void judge_experts() {
    if (divides(at_.ep, model_.experts)) return;
    impossible("experts", nearest_ep(), "a layer has {} experts, which ep {} does not divide",
               *model_.experts, at_.ep);
  }

  void judge_stages() {
    if (at_.vpp > 1 && at_.pp == 1) {
      impossible("stages", "vpp=1",
                 "vpp is {}, but pp is 1; virtual stages are for pipelines of 2 and more", at_.vpp);
    } else if (stages_ != nullptr) {
      judge_listed_stages();
    } else if (model_.layers) {
      judge_even_stages(*model_.layers, at_.pp * at_.vpp);
    }
  }

  std::string stages_text() const {
    if (at_.vpp == 1) return fmt::format("pp {}", at_.pp);
    return fmt::format("pp {} * vpp {} = {}", at_.pp, at_.vpp, at_.pp * at_.vpp);
  }

  void judge_listed_stages() {
    const std::vector<Index>& listed = stages_->layers;
    if (std::ssize(listed) != at_.pp * at_.vpp) {
      impossible("stages", {}, "{} stages are listed, but there are {}", listed.size(),
                 stages_text());
    }
    const auto empty = std::ranges::find_if(listed, [](Index count) { return count < 1; });
    if (empty != listed.end()) {
      impossible("stages", {}, "stage {} of the list has no layer", empty - listed.begin());
    }
    if (model_.layers && stages_->num_layers() != *model_.layers) {
      impossible("stages", {}, "the listed stages have {} layers, but the model has {}",
                 stages_->num_layers(), *model_.layers);
    }
  }

  void judge_even_stages(Index layers, Index stages) {
    const Index pp = layers / at_.vpp;
    const std::string fewer = pp > 1 || at_.vpp == 1 ? both("pp", pp, {}) : "";
    if (stages > layers + 2) {
      impossible("stages", fewer, "the model has {} layers, fewer than the stages of {}", layers,
                 stages_text());
    } else if (stages > layers) {  // as Llama 3 405B: 126 layers, pp 16 and vpp 8
      refused("stages", {megatron}, fewer,
              "the model has {} layers, fewer than the stages of {}; {}, as remesh does with "
              "--stages balanced",
              layers, stages_text(), how_megatron_takes(layers, stages));
    } else if (layers % stages != 0) {
      refused("layers-vpp", {megatron}, nearest_stages(layers),
              "the model has {} layers, which {} does not divide; {}", layers, stages_text(),
              how_megatron_takes(layers, stages));
    }
  }

  static const char* how_megatron_takes(Index layers, Index stages) {
    if ((layers + 1) % stages == 0) {
      return "Megatron-Core takes it where the embedding or the loss counts as a layer";
    }
    if ((layers + 2) % stages == 0) {
      return "Megatron-Core takes it where the embedding and the loss count as a layer each";
    }
    return "Megatron-Core must be told the layers of the first or last stage, or a layout string";
  }

  std::string nearest_stages(Index layers) const {
    if (at_.vpp > 1 && layers % at_.pp == 0) {
      return nearest("vpp", at_.vpp, layers / at_.pp,
                     [&](Index vpp) { return layers % (at_.pp * vpp) == 0; });
    }
    return nearest("pp", at_.pp, layers, [&](Index pp) {
      return (pp > 1 || at_.vpp == 1) && layers % (pp * at_.vpp) == 0;
    });
  }

  void judge_vocabulary() {
    if (divides(at_.tp, model_.vocabulary)) return;
    const Index unit = 128 * at_.tp;
    refused("vocabulary", {}, {},
            "the vocabulary has {} rows, which tp {} does not divide; Megatron-Core pads it to {}, "
            "a multiple of 128 * tp",
            *model_.vocabulary, at_.tp, (*model_.vocabulary + unit - 1) / unit * unit);
  }

  // Of the tensors that have fewest rows, as the first rank of tp has them.
  void judge_empty_shards() {
    Number head_dim = model_.head_dim;
    if (!head_dim && model_.heads && model_.hidden) head_dim = *model_.hidden / *model_.heads;
    judge_rows("a norm", model_.hidden);
    if (!model_.latent_attention) judge_rows("K", product(model_.kv_heads, head_dim), at_.tp);
    judge_rows("the MLP", model_.width, at_.tp);
  }

  void judge_rows(const char* of, const Number& all, Index tp = 1) {
    if (!job_.shards || !all) return;
    const Index rows = (*all + tp - 1) / tp;
    const Index idle = ranks_without(rows, *job_.shards);
    if (idle == 0) return;
    const auto legal = [rows](Index shards) { return ranks_without(rows, shards) == 0; };
    refused("empty-shards", {}, nearest("shards", *job_.shards, rows, legal),
            "{} shards of the {} rows of {}{} leave {} without any", *job_.shards, rows, of,
            tp > 1 ? fmt::format(" on tp {}", tp) : "", idle);
  }

  void judge_sequence() {
    // Each rank of cp has two pieces, one from either end: the causal mask makes them equal work.
    if (at_.cp > 1) divide_sequence("sequence-cp", fmt::format("2 * cp {}", at_.cp), 2 * at_.cp);
    if (at_.tp > 1 && job_.sequence_parallel.value_or(false)) {
      divide_sequence("sequence-tp", fmt::format("cp {} * tp {}", at_.cp, at_.tp), at_.cp * at_.tp);
    }
  }

  void divide_sequence(const char* rule, const std::string& over, Index unit) {
    if (divides(unit, job_.sequence)) return;
    refused(rule, {megatron, torchtitan}, nearest_multiples("sequence", *job_.sequence, unit),
            "the sequence of {} is no multiple of {} = {}", *job_.sequence, over, unit);
  }

  void judge_expert_sequence_parallel() {
    if (at_.ep == 1 || at_.tp == 1 || job_.sequence_parallel.value_or(true)) return;
    refused("expert-sequence-parallel", {megatron}, {},
            "ep {} beside tp {} needs sequence parallelism, which is off", at_.ep, at_.tp);
  }

  void judge_batch() {
    if (!job_.global_batch || !job_.micro_batch || !dp_) return;
    const Index step = *job_.micro_batch * *dp_;
    if (divides(step, job_.global_batch)) return judge_micro_batches(step);
    refused("batch", {megatron, deepspeed},
            nearest_multiples("global_batch", *job_.global_batch, step),
            "the global batch of {} is no multiple of micro batch {} * dp {} = {}",
            *job_.global_batch, *job_.micro_batch, *dp_, step);
  }

  void judge_micro_batches(Index step) {
    const Index count = *job_.global_batch / step;
    if (at_.vpp == 1 || count % at_.pp == 0) return;
    refused("micro-batches", {megatron},
            nearest_multiples("global_batch", *job_.global_batch, step * at_.pp),
            "a pipeline has {} micro batches, no multiple of pp {}, as interleaving (vpp {}) asks",
            count, at_.pp, at_.vpp);
  }

  const ModelSizes& model_;
  const Degrees& at_;
  const JobShape& job_;
  const Stages* stages_;
  bool expert_grid_ = false;
  Index etp_ = 1;
  Index replica_ = 1;  // ranks that have one replica of the model, as dp counts them
  Number world_;
  Number dp_;
  Number kv_heads_;  // those that are not one for each head
  std::vector<BrokenRule> broken_;
};

}  // namespace

ModelSizes model_sizes(std::string_view config_json) {
  const Config config = Config::parse(config_json);
  ModelSizes model;
  model.layers = first_of(config, {"num_hidden_layers", "n_layer"});
  model.hidden = first_of(config, {"hidden_size", "n_embd"});
  model.heads = first_of(config, {"num_attention_heads", "n_head"});
  model.head_dim = first_of(config, {"head_dim"});
  model.experts = first_of(config, {"num_experts", "n_routed_experts", "num_local_experts"});
  model.vocabulary = first_of(config, {"vocab_size"});
  model.latent_attention = first_of(config, {"kv_lora_rank"}).has_value();
  if (!model.latent_attention) model.kv_heads = first_of(config, {"num_key_value_heads"});
  read_widths(config, model);
  return model;
}

Degrees degrees_of(const Mesh& mesh) {
  Degrees at;
  at.tp = mesh.size("tp");
  at.cp = mesh.size("cp");
  at.pp = mesh.size("pp");
  at.dp = mesh.num_ranks() / (at.tp * at.cp * at.pp);
  at.vpp = mesh.virtual_stages();
  if (mesh.expert_axes().empty()) return at;
  at.ep = mesh.size("ep");
  at.etp = mesh.size("etp");
  return at;
}

std::vector<BrokenRule> broken_rules(const ModelSizes& model, const Degrees& degrees,
                                     const JobShape& job, const Stages* stages) {
  return Judge(model, degrees, job, stages).all();
}

std::vector<BrokenRule> broken_rules(const ModelSizes& model, const Mesh& mesh, const JobShape& job,
                                     const Stages* stages) {
  return broken_rules(model, degrees_of(mesh), job, stages);
}

}  // namespace remesh
