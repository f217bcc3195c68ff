#include <array>

#include "explain_pages.hpp"

namespace remesh {
namespace {

constexpr std::array pages{
    Page{"RM301", "hole", true, "Some elements of a tensor lie in no file.",
         "They would be read as zeros or as whatever lay in memory, and training would go on.",
         "A rank that saved too little, or pieces that were taken for copies of each other.",
         "Use another save; the finding names the box that is missing, which tells the rank."},
    Page{
        "RM302", "missing name", true, "A tensor that the model needs is not in the checkpoint.",
        "Loaders that are not strict start it at random.",
        "A tied or shared tensor that was left out, or a rename between versions of the framework; "
        "where less than half of a model is there (a warning), a part that somebody chose.",
        "Compare the names with `remesh inspect CKPT -v`; for other names give `--rules FILE`."},
    Page{"RM303", "shape or dtype", true,
         "A tensor has another shape or dtype than its description says.",
         "It would be cut in the wrong places, or read as other numbers.",
         "A config.json of another model, or a tensor that was saved in pieces without saying so.",
         "Compare config.json with the model; take the one that was saved with these weights."},
    Page{"RM304", "duplicate claims", true,
         "The same elements of a tensor are claimed more than once as if they were different.",
         "One of the claims hides another tensor's data, for example another expert's.",
         "Ranks that number their experts or layers from 0 each.",
         "Save again with global numbers; remesh does not guess which claim is true."},
    Page{"RM305", "local instead of global index", true,
         "Names hold the number of a layer or expert within its rank, not within the model: the "
         "last "
         "layers that config.json counts are not there.",
         "On another mesh the same name means another layer.",
         "A framework that names modules before it knows its pipeline stage.",
         "Save with global names, or convert with a map that says the offset of each stage."},
    Page{"RM306", "empty placeholder", true,
         "A tensor has no elements although the model's has some.",
         "The weights are not in this file at all, although its digests are right.",
         "ZeRO-3 partitions that were saved without being gathered.",
         "Gather before saving, or convert from the partitions themselves."},
    Page{"RM307", "padding", false, "A buffer ends with elements that belong to no tensor.",
         "Harmless where it is known; otherwise they are taken for weights.",
         "Flat optimizer buffers that are rounded up to the number of ranks.",
         "Nothing to do: the padding is recorded and not carried into other layouts."},
    Page{"RM308", "tied", true,
         "config.json ties the output to the embedding, but the two are not the same numbers.",
         "Loaders take the one or the other, and so get different models.",
         "A copy that was stored beside the one that training went on with, and is stale.",
         "Leave the copy out that the model does not read; most often that is the output."},
    Page{"RM309", "optimizer state incomplete", true,
         "Some parameters lack optimizer state that others have, or have none at all.",
         "On resume those without start from zero moments and move too far.",
         "A save that depended on which rank held which bucket.",
         "Use another save, or drop all optimizer state on purpose with `--weights-only`."},
    Page{"RM310", "unexpected name", true, "The checkpoint has a tensor that nobody expects there.",
         "It cannot be placed on a mesh, since nobody says how it is split.",
         "A model that the map does not know, or a quantisation that adds tensors.",
         "Give a model map that names it: `--rules FILE`."},
    Page{"RM311", "other numbers", true,
         "A tensor has the same name, dtype and shape on both sides, and other numbers.",
         "The two are not the same model, or not of the same step.",
         "Another step of the run, a rounding on the way, or damage that a format without digests "
         "hides.",
         "Verify each side by itself; if both are sound, they are different saves."},
    Page{"RM401", "copies differ", true,
         "Ranks that should hold the same tensor hold different numbers. From level full on the "
         "first "
         "element that differs is named, with both values, how many ulps they are apart, ranks and "
         "files, and how many copies hold what; header and quick compare what is recorded.",
         "Only one copy survives a conversion; which one decides how training goes on.",
         "A gradient that was not reduced over all ranks, most often of a norm or a bias.",
         "Find out since when they differ; then choose with `--replicas first|majority`."},
    Page{"RM402", "copy missing", false,
         "Fewer copies of a tensor are stored than the checkpoint says.",
         "Nothing is lost yet, but the next loss may be final.",
         "A file that was removed or not copied.",
         "Copy it from the original, or write the checkpoint anew with `--copies N`."},
    Page{
        "RM403", "which copy was chosen", true,
        "Several copies of a piece were stored, they differ or one is damaged, and a job took one.",
        "What the others held is not in what was written.",
        "Data-parallel ranks that drifted apart and all saved, or a medium that lost something.",
        "If that was not meant, find out why they differ, and take `--replicas error`."},
};

}  // namespace

std::span<const Page> tensor_pages() { return pages; }

}  // namespace remesh
