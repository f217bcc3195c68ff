#include <array>

#include "explain_pages.hpp"

namespace remesh {
namespace {

constexpr std::array pages{
    Page{"RM101", "not a checkpoint", true,
         "What lies at the path is no checkpoint of any format that this build knows.",
         "Nothing can be said about tensors that are not there.",
         "A wrong path, often one directory too high or too low, or a format that is not supported "
         "yet.",
         "Look at what is there; `remesh inspect DIRECTORY` lists the checkpoints of a directory."},
    Page{"RM102", "unknown version", true,
         "The checkpoint, or the seal beside it, names a format version that this build does not "
         "know.",
         "Reading it by the rules of another version would give wrong numbers without a warning.",
         "It was written by a newer remesh, or by one from before the format was settled.",
         "Use the remesh that wrote it, or a newer one."},
    Page{"RM103", "manifest digest", true,
         "The manifest does not have the digest that COMMIT records.",
         "All sizes, names and digests come from the manifest; after a change none can be trusted.",
         "The manifest was edited, or a copy of the directory mixed two saves.",
         "Copy the checkpoint again from where it was written, or let `remesh repair` make a whole "
         "copy of what is left. A manifest is never edited by hand."},
    Page{"RM104", "signature", true,
         "The signature is by the right key's name, but not over this content, or it is malformed.",
         "Somebody may have changed the checkpoint on purpose; a CRC does not notice that.",
         "A changed manifest or signature, one that belongs to another save, or a damaged copy.",
         "Get the checkpoint and its signature from their author again."},
    Page{"RM105", "uncommitted", true,
         "The directory has parts of a checkpoint, but not the marker that is written last; or its "
         "name says that it is still being written, or was put aside ('tmp', 'old', 'corrupt').",
         "The save did not end: files may be missing or half written even though they are there.",
         "A job that was killed, a full disk, a copy that is still under way, or somebody who "
         "renamed it.",
         "If a copy is under way, wait. If a marker or a manifest was lost later, `remesh repair` "
         "makes it again. Otherwise use the save before it, and remove this one when nobody writes "
         "to it."},
    Page{"RM106", "marker missing but complete", false,
         "The commit marker is missing, but every byte that the manifest promises is there and "
         "true.",
         "Readers refuse what is not committed, so a good checkpoint lies idle.",
         "A copy that left out small or hidden files.", "Copy the marker as well."},
    Page{"RM107", "pointer behind", true,
         "A file or link that says which checkpoint of a run is the latest names another one than "
         "the newest that is whole, or none at all.",
         "A resume would start from old weights, from a save that did not end, or not at all.",
         "The job stopped between the commit and the update of the pointer, often for lack of "
         "space; or the checkpoint that it names was removed or damaged later.",
         "Resume from what `remesh latest RUN` prints, which believes no pointer, or write that "
         "name into the pointer."},
    Page{"RM108", "extra file", true,
         "The directory holds a file that the checkpoint does not list.",
         "It is not carried when the checkpoint is converted, and some loaders pick it up by its "
         "name.",
         "A file that was added later, or left over from another save in the same place.",
         "Remove it, or keep it elsewhere, if it does not belong there."},
    Page{"RM109", "mixed run or save ids", true,
         "Files of the checkpoint carry the ids of different saves.",
         "Each file is sound by itself, but together they are the weights of no step.",
         "Two saves in one directory, or a copy from two places.", "Copy all files from one save."},
    Page{"RM110", "seal damaged", true,
         "The seal beside a checkpoint does not have its own digest, or is no seal.",
         "What it says of the checkpoint cannot be trusted, so nothing tells whether a bit flipped "
         "there. The checkpoint itself may be sound.",
         "A damaged copy or download of the seal, or one that was edited.",
         "Get the seal again from where the checkpoint came from. Where there is no other, compare "
         "the checkpoint with another copy, remove the seal and write it anew with `remesh seal`."},
    Page{"RM111", "seal of other files", true,
         "The checkpoint has files, sizes or tensors that its seal does not know, or lacks some.",
         "It was changed after it was sealed: the seal is of another state of these files, or they "
         "are incomplete.",
         "A file that was edited, added or removed afterwards, a copy that left some out, or the "
         "seal of another checkpoint.",
         "Undo the change, or fetch the missing file. If the change was meant, and the files are "
         "known to be good, remove the seal and run `remesh seal` again."},
    Page{"RM201", "size implausible", true,
         "A file has a size that the checkpoint's description does not allow.",
         "Tensors would be read from places that do not exist, or from the wrong ones.",
         "An interrupted write or copy; a file of another save under the same name.",
         "Copy the file again and compare its size."},
    Page{
        "RM202", "truncated", true, "A file ends before its content does.",
        "The tensors at its end are unreadable; a loader that maps the file may see zeros instead.",
        "An interrupted copy, or a full disk when it was written.",
        "Copy the file again from where it was written; the finding names the missing bytes."},
    Page{"RM203", "listed but absent", true,
         "The checkpoint lists a file that is not there, or the name of one file says that there "
         "are others ('model-00001-of-00011').",
         "The tensors in it cannot be read.",
         "An incomplete copy or download, a save that was stopped, or an index that belongs to "
         "another set of files.",
         "Fetch the missing file, or the index that fits the files that are there. `remesh repair` "
         "makes a shard again where other ranks stored copies (`--copies 2`)."},
    Page{"RM204", "rank grid incomplete", true, "Not every rank of the mesh has its file.",
         "The pieces of the missing ranks are lost, unless another rank holds a copy.",
         "A rank that died while saving, or node-local files that were not collected.",
         "Collect the files of all nodes, or use the save before it."},
    Page{
        "RM205", "two sets or a stale set", true,
        "The directory holds two sets of weight files, or files that the index does not name.",
        "Loaders disagree on which set they take, and none of them says so.",
        "A second save with another number of files over the first, or a single file beside a set.",
        "Remove the set that is not meant; the dates and the index tell which one that is."},
    Page{"RM206", "index against content", true,
         "The index puts a tensor into a file that does not have it, or the other way round.",
         "A loader that goes by the index misses tensors without an error.",
         "An index that was copied from another model or another save.",
         "Take the index that was written with these files."},
    Page{"RM207", "digest mismatch", true,
         "Bytes do not have the digest that was recorded for them.",
         "At least one number is not what was saved. The finding says in which range of the file.",
         "A bit that flipped on the medium or on the way, or a file that was changed after the "
         "save.",
         "Copy the file again. If it still differs, the original is damaged: use another copy, or "
         "let "
         "`remesh repair` mend it from copies and from the CRCs."},
    Page{"RM208", "trailing or unclaimed bytes", true,
         "A file has bytes that belong to no tensor and to no description.",
         "Nobody reads them today; hidden content and other programs' surprises hide there.",
         "A writer that padded, an append after the save, or a file made to be two things at once.",
         "Write the file again with `remesh convert`, which leaves no byte unclaimed."},
    Page{"RM209", "overlap", true, "Two tensors claim the same bytes of a file.",
         "One of them has the other's numbers, or a change of one changes both.",
         "A writer that counted offsets wrongly, or a file made on purpose.",
         "Get the file from its author again; remesh does not read it."},
    Page{"RM210", "malformed", true,
         "A header or an index is not what its format asks for: no JSON, or JSON of another kind.",
         "Where tensors lie is said there and nowhere else, so nothing in the file can be found.",
         "A damaged file, a page of an error saved in its place, or a pointer of Git LFS.",
         "Look at its first bytes; fetch the file itself again."},
    Page{"RM211", "two views", true,
         "What libhdf5 sees in a shard is not what its index says, or libhdf5 cannot read it.",
         "remesh goes by the index, other programs by libhdf5: they would load other numbers from "
         "the same file, or none, or be taken over by it.",
         "A shard that was edited with other tools and sealed again, or a file made to be two "
         "things at once.",
         "Do not open the file with other programs. Write the checkpoint again with remesh, from a "
         "source that you trust."},
    Page{
        "RM212", "zeros", true, "A shard has zeros where its header must be.",
        "The file has its name and its size, but its content never reached the medium.",
        "A machine that lost power before the file was synced, a copy that allocates space before "
        "it writes, or a recovery that puts zeros in place of what it cannot read.",
        "Copy the file again from where it was written; if it is the original, use the save before "
        "it."},
    Page{"RM213", "shard twice", true,
         "The same shard is there under two names, and its rank has the right one.",
         "The shard whose name the copy has is missing, with the pieces that it held.",
         "A copy to the wrong name, or a script that counted ranks wrongly.",
         "Copy the missing shard again from where it was written; the shard that is there twice is "
         "good under its own name."},
};

}  // namespace

std::span<const Page> container_pages() { return pages; }

}  // namespace remesh
